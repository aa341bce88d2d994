"""Hosts that an operator wants empty become empty, whatever tenants and exporters do: by cycles
that evacuate disabled hosts, and by drains."""

import dataclasses

import ddt
import testtools

from kronos_nova.db import cooldowns
from kronos_nova.drain.states import Drain
from kronos_nova.objects import eligibility
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from tests.hostile import fakes_cloud as clouds
from tests.unit.db import fixtures

SERVERS = ('vm1', 'vm2', 'vm3')


def metadata(word):
    def spoil(control):
        for uuid in SERVERS:
            control.change(uuid, metadata={eligibility.KEY: word})
    return spoil


def lock(control):
    for uuid in SERVERS:
        control.change(uuid, locked=True)


def cool(control):
    fixtures.cool(control.database, cooldowns.INSTANCE, SERVERS,
                  control.clock.now.replace(year=2030))


def quarantine(control):
    for uuid in SERVERS:
        control.cooldowns.quarantine(uuid, -1, 'it failed', control.clock())


def share_names(control):
    for uuid in SERVERS:
        control.change(uuid, display_name='web')
        control.cloud.server(f'{uuid}-twin', 'b', display_name='web', project_id='other')


def silence_the_host(control):
    control.cloud.silent = {'a'}


def silence_another(control):
    control.cloud.silent = {'b'}


def silence_all(control):
    control.cloud.silent = set('abc')


def load_the_others(control):
    """So that every destination is past the threshold of the policy, and near its limit."""
    for host in 'bc':
        control.cloud.server(f'heavy-{host}', host, load=0.9)


def keep_together(control):
    """One that an affinity group wants nowhere else, as long as all of it is there."""
    control.cloud.groups = (snapshot.ServerGroup(
        uuid='g', name='together', policy='soft-affinity', members=SERVERS),)


def keep_from_the_others(control):
    for host in 'bc':
        control.cloud.server(f'member-{host}', host)
    control.cloud.groups = tuple(snapshot.ServerGroup(
        uuid=f'g-{uuid}', name='apart', policy='soft-anti-affinity',
        members=(uuid, 'member-b', 'member-c')) for uuid in SERVERS)


def claim_more_than_there_is(control):
    for uuid in SERVERS:
        control.cloud.load[uuid] = 7.0


SPOILT = {'metadata never': metadata('never'), 'metadata only-evacuate': metadata('only-evacuate'),
          'metadata always': metadata('always'), 'metadata nonsense': metadata('\x1b[2J'),
          'lock': lock, 'cooldown': cool, 'quarantine': quarantine, 'shared names': share_names,
          'its exporter': silence_the_host, "another's exporter": silence_another,
          'every exporter': silence_all, 'threshold': load_the_others,
          'profile out of range': claim_more_than_there_is}
SOFT_GROUPS = {'soft affinity': keep_together, 'soft anti-affinity': keep_from_the_others}
UNKNOWN = ('its exporter', 'every exporter', 'shared names', 'profile out of range')


class Emptying(clouds.Control):
    def change(self, uuid, **values):
        self.cloud.instances[uuid] = dataclasses.replace(self.cloud.instances[uuid], **values)


@ddt.ddt
class EmptyingTest(testtools.TestCase):
    def begin(self, **policy):
        control = Emptying(self, label='display_name', **policy)
        for uuid in SERVERS:
            control.cloud.server(uuid, 'a')
        control.cloud.hosts['a'] = clouds.DISABLED
        return control

    def spread_and_pack(self):
        yield {}
        yield {'mode': 'pack', 'more': 'capacity_query: full, capacity_threshold: 0.8'}

    @ddt.data(*SPOILT)
    def test_a_disabled_host_is_emptied_whatever(self, name):
        for policy in self.spread_and_pack():
            control = self.begin(**policy)
            SPOILT[name](control)
            report = control.run()
            self.assertEqual(plans.PLANNED, report.outcome, policy)
            moved = {move.instance_uuid for move in report.moves if move.phase == plans.EVACUATE}
            self.assertEqual(set(SERVERS), moved)
            control.carry_out()
            self.assertEqual(set(), control.cloud.on('a'))

    @ddt.data(*SOFT_GROUPS)
    def test_soft_groups_keep_servers_on_a_disabled_host_until_they_cost(self, name):
        control = self.begin()
        SOFT_GROUPS[name](control)
        report = control.run()
        self.assertEqual((), report.moves)
        self.assertTrue(any('soft-' in warning for warning in report.warnings), report.warnings)
        control.options = dataclasses.replace(control.options, soft_group_cost=0.02)
        self.assertEqual(set(SERVERS), {move.instance_uuid for move in control.run().moves})

    @ddt.data(*SPOILT, *SOFT_GROUPS)
    def test_a_host_is_drained_whatever(self, name):
        for policy in self.spread_and_pack():
            control = self.begin(**policy)
            (SPOILT | SOFT_GROUPS)[name](control)
            now = control.clock()
            control.drains.request([Drain(uuid='d', host='a', aggregate='gpu', state='draining',
                                          requested_by='jane', requested_at=now)])
            control.run()
            control.carry_out()
            self.assertEqual(set(), control.cloud.on('a'))

    @ddt.data(*UNKNOWN)
    def test_where_load_is_not_known_room_decides_and_that_is_said(self, name):
        control = self.begin()
        for number in range(6):
            control.cloud.server(f'b{number}', 'b', load=0.0)
        SPOILT[name](control)
        moves = [move for move in control.run().moves if move.phase == plans.EVACUATE]
        self.assertEqual({'c'}, {move.destination for move in moves})
        for move in moves:
            self.assertIn('its load is not known, so room alone decides', move.reason)

    def test_without_an_exporter_on_the_way_load_decides(self):
        control = self.begin()
        control.cloud.server('c1', 'c', load=0.5)
        for number in range(6):
            control.cloud.server(f'b{number}', 'b', load=0.0)
        moves = control.run().moves
        self.assertEqual({('b', False)}, {
            (move.destination, 'not known' in move.reason) for move in moves
            if move.phase == plans.EVACUATE})

    def test_a_host_that_is_not_measured_takes_what_fits_nowhere_else(self):
        control = self.begin()
        control.options = dataclasses.replace(control.options, min_coverage=0.5)
        for number in range(control.cloud.room):
            control.cloud.server(f'b{number}', 'b', load=0.01)
        control.cloud.silent = {'c'}
        moves = control.run().moves
        self.assertEqual({(uuid, 'c') for uuid in SERVERS},
                         {(move.instance_uuid, move.destination) for move in moves})
        self.assertIn('of no host with room is the load known', moves[0].reason)

    def test_of_an_aggregate_of_which_no_host_can_be_read_that_is_said(self):
        control = self.begin()
        found = dataclasses.replace(control.cloud.read(), hosts=(), instances=(),
                                    unread={'gpu': '3 of its hosts could not be read'})
        control.cloud.read = lambda scopes=None, moves=(): found
        report = control.run()
        self.assertEqual(plans.NO_DATA, report.outcome)
        self.assertIn('3 of its hosts could not be read', report.warnings)

    def test_what_fails_again_and_again_does_not_keep_the_others_from_their_turn(self):
        control = self.begin(budget=2)
        for uuid in SERVERS[:2]:
            control.cooldowns.quarantine(uuid, -1, 'it failed', control.clock())
        self.assertEqual('vm3', control.run().moves[0].instance_uuid)

    @ddt.data({}, {'metadata': {eligibility.KEY: 'always'}},
              {'flavor_extra_specs': {eligibility.KEY: 'always'}})
    def test_what_the_operator_forbids_stays(self, values):
        control = self.begin()
        for uuid in SERVERS:
            control.change(uuid, **values)
        control.options = dataclasses.replace(control.options, opt_out=eligibility.OptOut(
            never_projects=frozenset({'p'})))
        self.assertEqual((), control.run().moves)
        self.assertEqual(set(SERVERS), control.cloud.on('a'))

    def test_always_of_a_tenant_does_not_move_what_the_flavor_forbids(self):
        control = self.begin()
        for uuid in SERVERS:
            control.change(uuid, metadata={eligibility.KEY: 'always'},
                           flavor_extra_specs={eligibility.KEY: 'never'})
        report = control.run()
        self.assertEqual((), report.moves)
        self.assertEqual(3, len(control.cloud.on('a')))


@ddt.ddt
class HintsTest(testtools.TestCase):
    """Hints that each mode heeds, by ``[kronos] move_hints``."""

    def may(self, hints, verb, **values):
        control = Emptying(self)
        control.cloud.server('vm', 'a', **values)
        return eligibility.may(control.cloud.instances['vm'], eligibility.OptOut(
            never_projects=frozenset({'forbidden'}),
            only_evacuate_projects=frozenset({'settled'}),
            heeded=eligibility.heeded(hints)), verb)

    NEVER = {eligibility.KEY: 'never'}
    CASES = (
        # values, hint, heeded when balancing, heeded when a host is emptied
        ({'project_id': 'forbidden'}, 'project', True, True),
        ({'project_id': 'forbidden'}, 'project:balance', True, False),
        ({'project_id': 'forbidden'}, 'project:evacuate', False, True),
        ({'project_id': 'settled'}, 'project', True, False),
        ({'flavor_extra_specs': NEVER}, 'flavor', True, True),
        ({'flavor_extra_specs': NEVER}, 'flavor:balance', True, False),
        ({'flavor_extra_specs': NEVER}, 'flavor:evacuate', False, True),
        ({'metadata': NEVER}, 'metadata', True, False),
        ({'metadata': NEVER}, 'metadata:balance', True, False))

    @ddt.data(*CASES)
    @ddt.unpack
    def test_who_has_a_say_in_what(self, values, hint, balancing, emptying):
        others = sorted({'project', 'flavor', 'metadata'} - {hint.partition(':')[0]})
        for hints in ([hint], [hint, *others]):
            self.assertEqual((not balancing, not emptying), (
                self.may(hints, 'balance', **values), self.may(hints, 'evacuate', **values)))
        for hints in ([], others):
            self.assertEqual((True, True), (
                self.may(hints, 'balance', **values), self.may(hints, 'evacuate', **values)))
