"""Requests of plans."""

import dataclasses
import pathlib

import testtools

import kronos_nova
from kronos_nova.cycle import steps
from kronos_nova.cycle.requests import BALANCING
from kronos_nova.drain.planning import DrainRequest
from kronos_nova.drain.progress import HostDrains
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from tests.unit.cycle import test_evaluation
from tests.unit.test_layers import imports_of

DRAIN = DrainRequest(sources=frozenset('ab'), include_stopped=frozenset('a'),
                     avoid=frozenset('c'), give_up=frozenset({'tried'}))


def host(name, state='up', status='enabled', forced_down=False):
    return snapshot.Host(name=name, uuid=name, inventory={}, service=snapshot.Service(
        state=state, status=status, forced_down=forced_down))


def server(uuid, on):
    return snapshot.Instance(
        uuid=uuid, name=uuid, display_name=uuid, host=on, project_id='p', status='ACTIVE',
        vcpus=1, memory_mb=1, disk_gb=1)


class RequestTest(testtools.TestCase):
    def test_balancing_uses_enabled_hosts_and_empties_disabled_ones(self):
        for each, expected in ((host('a'), (True, False)),
                               (host('a', status='disabled'), (False, True)),
                               (host('a', state='down'), (False, False)),
                               (host('a', status='disabled', forced_down=True), (False, False))):
            self.assertEqual(expected, (BALANCING.takes(each), BALANCING.empties(each)))
        self.assertEqual(('ACTIVE', 'PAUSED'), BALANCING.statuses(server('vm', 'a')))

    def test_a_drain_empties_its_sources_and_nothing_else(self):
        for status in ('enabled', 'disabled'):
            self.assertTrue(DRAIN.empties(host('a', status=status)))
            self.assertFalse(DRAIN.takes(host('a', status=status)))
            self.assertFalse(DRAIN.empties(host('d', status=status)))
        self.assertFalse(DRAIN.empties(host('a', state='down')))
        self.assertFalse(DRAIN.empties(host('a', forced_down=True)))

    def test_hosts_that_are_emptied_later_take_nothing(self):
        self.assertEqual([False, True, False], [DRAIN.takes(each) for each in (
            host('c'), host('d'), host('d', status='disabled'))])

    def test_stopped_servers_leave_where_that_is_asked_for(self):
        self.assertEqual([
            ('ACTIVE', 'PAUSED', 'SHUTOFF'), ('ACTIVE', 'PAUSED'), ('ACTIVE', 'PAUSED'), ()], [
            DRAIN.statuses(each) for each in (
                server('vm', 'a'), server('vm', 'b'), server('vm', 'd'), server('tried', 'a'))])


@dataclasses.dataclass(frozen=True)
class RestRequest:
    """A toy request: one host rests, which means that it is empty and takes nothing."""

    planner = ''

    host: str

    def takes(self, each):
        return each.name != self.host

    def empties(self, each):
        return each.name == self.host

    def statuses(self, _instance):
        return ('ACTIVE',)

    def may_stop(self, _instance):
        return False


class Rest:
    """The requester of the toy."""

    persisted = []

    def __init__(self, cycle_ports, policies, options, rules, utcnow):
        self.policies = policies
        self.options = dataclasses.replace(options, evacuate_disabled_hosts=True)

    def wanted(self, aggregates):
        return {'gpu': ['b']} if 'gpu' in aggregates else {}

    def note_missing(self, aggregates):
        pass

    def plan(self, seen, planner_ports, measurements, aggregate, wanted):
        options = dataclasses.replace(self.options, aggregates=(aggregate,),
                                      include_unassigned_hosts=False)
        return steps.plan_cycle(seen, self.policies, options, planner_ports,
                                measurements=measurements, request=RestRequest(*wanted))

    def persist(self, seen, aggregate, wanted, outcome):
        self.persisted.append((aggregate, outcome.aggregates[0]))


class NewRequestTest(test_evaluation.CycleTestCase):
    """A new kind of request is one module that has what is above, a word in each of the two places
    that start planning workers, a document and a release note: five files."""

    WIRING = {'cmd/cycle.py', 'plugin/cycle.py'}

    def ports(self, history=()):
        return dataclasses.replace(super().ports(history), requesters=(Rest,))

    def test_a_toy_request_is_planned_in_the_place_of_balancing(self):
        self.patch(Rest, 'persisted', [])
        self.assertEqual((), self.run_cycle().aggregates)
        [(aggregate, report)] = Rest.persisted
        self.assertEqual(('gpu', plans.PLANNED), (aggregate, report.outcome))
        self.assertEqual([('vm4', plans.EVACUATE)],
                         [(move.instance_uuid, move.phase) for move in report.moves])
        self.assertEqual(('b',), report.hosts_emptied)

    def test_the_drains_are_wired_in_no_other_place(self):
        root = pathlib.Path(kronos_nova.__file__).parent
        name = f'{HostDrains.__module__}.{HostDrains.__name__}'
        self.assertEqual(self.WIRING, {
            path.relative_to(root).as_posix() for path in root.rglob('*.py')
            if name in imports_of(path)})
