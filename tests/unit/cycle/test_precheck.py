"""Questions about moves before they are planned for good, and what is made of the answers."""

import dataclasses

import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.requirements import HostRequirements
from kronos_nova.cycle.precheck import Precheck
from kronos_nova.cycle.precheck import RequestTime
from kronos_nova.model import Model
from kronos_nova.objects import snapshot
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.objects.dry_run import NOTHING_BEFORE
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.planners.base import Limits
from tests.unit.planners import clouds

HOSTS = 30


def moves(*places, depends_on=()):
    """Moves (instance, source, destination) in this order, of which the last depends on others."""
    return [PlannedMove(order=order, phase='spread', instance_uuid=uuid, source=source,
                        destination=host, memory_mb=1, combined_after=0.0, reason='',
                        depends_on=depends_on if order == len(places) - 1 else ())
            for order, (uuid, source, host) in enumerate(places)]


class PrecheckTest(testtools.TestCase):
    """Servers v0 to v3 are on h0; v3 is of another kind, and v2 in a server group."""

    def setUp(self):
        super().setUp()
        self.asked, self.before, self.refuses, self.room = [], [], set(), HOSTS
        self.problem = clouds.idle([0, 0, 0, 0], hosts=HOSTS)
        known = clouds.snapshot_of(self.problem)
        instances = [dataclasses.replace(each, project_id='p') for each in known.instances]
        instances[3] = dataclasses.replace(instances[3], memory_mb=1024)
        self.snapshot = dataclasses.replace(
            known, instances=tuple(instances), server_groups=(snapshot.ServerGroup(
                uuid='g', name='g', policy='anti-affinity', members=('v2',)),))

    def precheck(self, refused_lately=None, **requires):
        first = dataclasses.replace(self.snapshot.instances[0],
                                    requires=snapshot.Requirements(**requires))
        self.snapshot = dataclasses.replace(
            self.snapshot, instances=(first, *self.snapshot.instances[1:]))
        model = Model(self.problem, HostRequirements.compile(self.problem, self.snapshot,
                                                             ConstraintRules()))
        return Precheck(self.answer, self.snapshot, model, RequestTime(Limits(budget=1), 0.0),
                        refused_lately)

    def answer(self, move, instance, destination, before):
        self.asked.append((instance.uuid, destination.name))
        self.before.append(before)
        if before.alike >= self.room:
            return Verdict(refused='no device left')
        return Verdict(refused='no') if destination.name in self.refuses else AGREED

    def ask(self, precheck, *pairs):
        """Orders, from 0, of the moves that are refused."""
        return sorted(precheck.refused(moves(*((uuid, 'h0', host) for uuid, host in pairs))))

    def test_a_refusal_holds_for_all_of_the_kind_without_another_question(self):
        self.refuses = {'h1'}
        precheck = self.precheck()
        self.assertEqual([0, 1, 2, 3], self.ask(precheck, *((f'v{n}', 'h1') for n in range(4))))
        self.assertEqual([('v0', 'h1'), ('v2', 'h1'), ('v3', 'h1')], self.asked)
        self.assertEqual({('v0', 'h1'), ('v1', 'h1'), ('v2', 'h1'), ('v3', 'h1')},
                         precheck.vetoes().keys())
        self.assertEqual(['v0', 'v2', 'v3'],
                         [each.instance_uuid for each in precheck.refusals()])

    def test_three_refusals_are_enough_for_one_that_could_go_anywhere(self):
        self.refuses = {f'h{number}' for number in range(1, HOSTS)}
        precheck = self.precheck()
        self.ask(precheck, ('v0', 'h1'), ('v1', 'h2'))
        self.assertEqual([False, False], [each.is_final for each in precheck.refusals()])
        self.ask(precheck, ('v0', 'h3'))
        self.assertEqual([True, True], [each.is_final for each in precheck.refusals()])
        vetoes = precheck.vetoes()
        self.assertEqual('3 other hosts are refused: no', vetoes['v1', 'h20'])
        self.assertEqual('no', vetoes['v1', 'h3'])
        self.assertNotIn(('v3', 'h1'), vetoes)

    def test_one_that_few_hosts_can_hold_rests_when_all_of_these_have_refused(self):
        self.refuses = {'h1', 'h2', 'h3'}
        hosts = [dataclasses.replace(host, traits=('GPU',) if number < 6 else ())
                 for number, host in enumerate(self.snapshot.hosts)]
        self.snapshot = dataclasses.replace(self.snapshot, hosts=tuple(hosts))
        precheck = self.precheck(traits=('GPU',))
        self.ask(precheck, ('v0', 'h1'), ('v0', 'h2'), ('v0', 'h3'))
        self.assertEqual([False], [each.is_final for each in precheck.refusals()])
        self.assertEqual([], self.ask(precheck, ('v0', 'h4')))
        self.refuses |= {'h4', 'h5'}
        precheck = self.precheck(traits=('GPU',))
        self.ask(precheck, *(('v0', f'h{number}') for number in range(1, 6)))
        self.assertEqual([True], [each.is_final for each in precheck.refusals()])

    def test_what_was_refused_at_its_start_holds_for_all_of_the_kind(self):
        precheck = self.precheck({'v0': {'h1': 'no CPU', 'gone': 'no'}, 'deleted': {'h2': 'no'}})
        self.assertEqual({('v0', 'h1'), ('v1', 'h1')}, precheck.vetoes().keys())
        self.assertEqual([0], self.ask(precheck, ('v1', 'h1'), ('v3', 'h1')))
        self.assertEqual([('v3', 'h1')], self.asked)
        self.assertEqual([('v0', ('h1',), 'a move there was refused lately: no CPU', False)], [
            (each.instance_uuid, each.hosts, each.reason, each.is_final)
            for each in precheck.refusals()])

    def test_three_refused_starts_are_enough(self):
        precheck = self.precheck({'v0': {'h1': 'no CPU'},
                                  'v1': {'h2': 'no CPU', 'h3': 'no CPU'}})
        self.assertEqual([('v0', True), ('v1', True)], [
            (each.instance_uuid, each.is_final) for each in precheck.refusals()])

    def test_without_a_refusal_nothing_is_out(self):
        precheck = self.precheck()
        self.assertEqual([], self.ask(precheck, ('v0', 'h1')))
        self.assertEqual({}, precheck.vetoes())

    def test_of_a_kind_as_many_go_to_a_host_as_it_takes(self):
        """The scheduler agrees to the last device for each of them, as long as none is there."""
        self.room = 1
        precheck = self.precheck()
        self.assertEqual([1, 4], self.ask(precheck, ('v0', 'h1'), ('v1', 'h1'), ('v3', 'h1'),
                                          ('v2', 'h1'), ('v1', 'h1')))
        self.assertEqual([('v0', 'h1'), ('v1', 'h1'), ('v3', 'h1'), ('v2', 'h1')], self.asked)
        self.assertEqual([0, 1, 0, 0], [before.alike for before in self.before])
        self.assertEqual({('v0', 'h1'), ('v1', 'h1')}, precheck.vetoes().keys())
        self.assertEqual([('v1', False)], [(each.instance_uuid, each.is_final)
                                           for each in precheck.refusals()])
        self.assertEqual([], self.ask(precheck, ('v1', 'h2')))

    def test_a_refused_move_is_not_before_the_next(self):
        self.refuses = {'h1'}
        precheck = self.precheck()
        self.ask(precheck, ('v0', 'h1'), ('v3', 'h1'))
        self.assertEqual([NOTHING_BEFORE] * 2, self.before)

    def test_what_leaves_counts_where_the_move_waits_for_it(self):
        waits = moves(('v0', 'h1', 'h2'), ('v1', 'h1', 'h3'), ('v3', 'h0', 'h1'), depends_on=(0,))
        precheck = self.precheck()
        precheck.refused(waits)
        self.assertEqual([(), (), ('v0',)], [
            tuple(each.uuid for each in before.leaving) for before in self.before])
        precheck.refused(waits)
        self.assertEqual(3, len(self.asked))

    def test_it_rests_for_each_of_a_kind_by_the_hosts_that_are_open_to_it(self):
        """v0 can go to four other hosts, for its own has a new hypervisor, and v1 to all."""
        self.problem = clouds.idle([0, 10, 0, 0], hosts=HOSTS)
        known = clouds.snapshot_of(self.problem)
        self.snapshot = dataclasses.replace(
            known, server_groups=(), instances=tuple(
                dataclasses.replace(each, project_id='p') for each in known.instances),
            hosts=tuple(dataclasses.replace(host, hypervisor_version=2 if number < 5 else 1)
                        for number, host in enumerate(known.hosts)))
        self.refuses = {'h11', 'h12', 'h13'}
        precheck = self.precheck()
        every = moves(*(('v1', 'h10', f'h{number}') for number in (11, 12, 13, 14)))
        self.assertEqual({0, 1, 2, 3}, precheck.refused(every))
        vetoes = precheck.vetoes()
        self.assertIn(('v1', 'h14'), vetoes)
        self.assertNotIn(('v0', 'h1'), vetoes)
        self.assertEqual([('v1', True)], [(each.instance_uuid, each.is_final)
                                          for each in precheck.refusals()])
