"""A snapshot that is written is read back, and under other names it is planned the same."""

import dataclasses
import json
import pathlib

import ddt
import fixtures
import testtools
import yaml

from kronos_nova.cycle.options import EngineOptions
from kronos_nova.record import anonymise
from kronos_nova.record import replay
from kronos_nova.record import writer
from tests.unit.record.clouds import Cloud

EVERYTHING = EngineOptions(
    aggregates=None, include_unassigned_hosts=True, planning_time_limit=600.0,
    evacuate_disabled_hosts=True, enforce_hard_affinity=True, enforce_soft_affinity=True)
NO_COOLDOWN = replay.Durations(aggregate=0, instance=0, quarantine=0)


def taken_from(folder):
    recording, policy_set = replay.read(folder)
    bodies = {(path.parent.name, path.stem): path.read_bytes()
              for path in pathlib.Path(folder).glob('metrics/*/*.json')}
    return writer.Taken(snapshot=recording.snapshot, bodies=bodies, kronos_version='0',
                        policies=(pathlib.Path(folder) / 'policies.yaml').read_bytes()), policy_set


def rows(snapshot):
    return {table: sorted(map(repr, getattr(snapshot, table)))
            for table in ('hosts', 'instances', 'aggregates', 'server_groups', 'moves_under_way',
                          'shared_providers', 'flavors')}


def planned(folder, simple=False):
    """The decisions of the simple planners or the default ones, with hosts,
    instances and aggregates as positions in their order."""
    recording, policy_set = replay.read(folder)
    snapshot = recording.snapshot
    host = {h.name: n for n, h in enumerate(sorted(snapshot.hosts, key=lambda h: h.name))}
    instance = {i.uuid: n for n, i in enumerate(sorted(snapshot.instances, key=lambda i: i.uuid))}
    options = EVERYTHING if not simple else dataclasses.replace(
        EVERYTHING, spread_planner='greedy', pack_planner='ffd')
    report = replay.replay(recording, policy_set, options, NO_COOLDOWN)
    return [(
        aggregate.outcome,
        [(row.name, row.state, row.imbalance_before, row.imbalance_after)
         for row in aggregate.policies],
        [(move.phase, instance[move.instance_uuid], host[move.source], host[move.destination],
          move.combined_after, move.depends_on) for move in aggregate.moves],
        [(skip.reason, sorted(instance[uuid] for uuid in skip.instances))
         for skip in aggregate.not_moved],
        sorted(host[name] for name in aggregate.hosts_emptied)) for aggregate in report.aggregates]


@ddt.ddt
class RoundTripTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    @ddt.data(*((seed, mode) for seed in range(1, 3) for mode in ('spread', 'pack')))
    @ddt.unpack
    def test_a_cloud(self, seed, mode):
        self.check(Cloud(seed, mode))

    @ddt.data(*((seed, mode) for seed in range(6, 8) for mode in ('spread', 'pack')))
    @ddt.unpack
    def test_a_cloud_of_which_placement_tells_more(self, seed, mode):
        snapshot = self.check(Cloud(seed, mode).know_what_placement_holds())
        self.assertEqual((3, 1), (len(snapshot.moves_under_way), len(snapshot.shared_providers)))
        self.assertTrue(all(host.used is not None for host in snapshot.hosts))

    def test_a_move_whose_allocations_are_on_its_destination(self):
        """Nova gives the allocations on the source to the migration, so those of the server are
        on the destination alone."""
        cloud = Cloud(6, 'spread').know_what_placement_holds()
        moves = cloud.inventory['moves_under_way']
        moves[0]['arrived'] = {'VCPU': 2, 'CUSTOM_ACME': 1}
        for each in cloud.inventory['instances']:
            if each['uuid'] == moves[0]['instance_uuid']:
                each['resources'] = {}
        snapshot = self.check(cloud)
        self.assertEqual([{'VCPU': 2, 'CUSTOM_ACME': 1}],
                         [move.arrived for move in snapshot.moves_under_way if move.arrived])
        self.assertEqual(0, len(snapshot.after_moves().moves_under_way))
        written = (self.folder / 'anonymous' / 'inventory.json').read_text().lower()
        self.assertIn('"arrived"', written)
        self.assertNotIn('custom_acme', written)

    @ddt.data('spread', 'pack')
    def test_a_cloud_with_all_that_rules_go_by(self, mode):
        snapshot = self.check(Cloud(9, mode).know_what_rules_go_by())
        self.assertEqual({'room': 'room0', 'rack': 'rack0'},
                         next(h for h in snapshot.hosts if h.name == 'cmp0').domains)
        self.assertEqual(3, len({i.flavor.name for i in snapshot.instances}))
        self.assertEqual([3, 3], [
            json.loads((self.folder / name / 'meta.json').read_text())['format']
            for name in ('again', 'anonymous')])
        written = (self.folder / 'anonymous' / 'inventory.json').read_text().lower()
        self.assertEqual([], [word for word in ('rack0', 'room1', 'small', 'acme', 'tag1')
                              if word in written])

    @ddt.data(*((seed, mode) for seed in range(10, 12) for mode in ('spread', 'pack')))
    @ddt.unpack
    def test_a_cloud_whose_servers_require_something_of_hosts(self, seed, mode):
        snapshot = self.check(Cloud(seed, mode).know_requirements())
        written = json.loads((self.folder / 'again' / 'meta.json').read_text())
        self.assertEqual(3, written['format'])
        self.assertTrue(any(each.live.can == 'no' for each in snapshot.instances))
        self.assertTrue(any(each.requires.traits for each in snapshot.instances))

    @ddt.data(*((seed, mode) for seed in range(1, 3) for mode in ('spread', 'pack')))
    @ddt.unpack
    def test_a_cloud_with_cells_and_devices(self, seed, mode):
        snapshot = self.check(Cloud(seed, mode).know_cells())
        self.assertTrue(any(each.on_cells == (0, 1) for each in snapshot.instances))
        (flavor,) = snapshot.flavors
        self.assertEqual([(4, True)] * 2, [(each.cpus, each.pinned) for each in flavor.cells])
        written = (self.folder / 'anonymous' / 'inventory.json').read_text().lower()
        self.assertNotIn('acme', written)
        self.assertNotIn('custom_nic', written)

    def test_a_cloud_with_a_resource_of_which_nothing_may_be_allocated(self):
        """Placement accepts an allocation ratio of 0."""
        Cloud(1).write(self.folder)
        path = self.folder / 'inventory.json'
        tree = json.loads(path.read_text())
        tree['hosts'][0]['inventory']['CUSTOM_LICENSE'] = {
            'total': 4, 'reserved': 0, 'allocation_ratio': 0.0}
        path.write_text(json.dumps(tree))
        [found] = [host.inventory['CUSTOM_LICENSE'] for host in taken_from(
            self.folder)[0].snapshot.hosts if 'CUSTOM_LICENSE' in host.inventory]
        self.assertEqual(0, found.capacity)

    @ddt.data('must_run_on: {hosts: gone}', 'unmovable: leave', 'unmovable: stop')
    def test_a_cloud_with_a_rule(self, relation):
        folder = Cloud(9).know_what_rules_go_by().write(self.folder / 'original')
        path = folder / 'policies.yaml'
        servers = [each.uuid for each in taken_from(folder)[0].snapshot.instances]
        tree = yaml.safe_load(path.read_text()) | {'rules': [{
            'name': 'some', 'servers': {'uuid': servers[::7]}, **yaml.safe_load(relation)}]}
        path.write_text(yaml.safe_dump(tree))
        self.check_folder(folder)
        [rule] = taken_from(self.folder / 'anonymous')[1].rules
        self.assertEqual(yaml.safe_load(relation).keys(), {rule.relation})

    def check(self, cloud):
        """:returns: the snapshot as it was read back"""
        return self.check_folder(cloud.write(self.folder / 'original'))

    def check_folder(self, folder):
        taken, policy_set = taken_from(folder)
        writer.write(taken, self.folder / 'again')
        again, _ = taken_from(self.folder / 'again')
        self.assertEqual(rows(taken.snapshot), rows(again.snapshot))
        self.assertEqual(dataclasses.replace(taken, snapshot=again.snapshot), again)

        writer.write(anonymise.anonymise(taken, policy_set), self.folder / 'anonymous')
        for simple in (True, False):
            plan = planned(self.folder / 'again', simple)
            self.assertEqual(plan, planned(self.folder / 'anonymous', simple))
            if simple:  # the default ones of pack move nothing that empties no host
                self.assertTrue(any(moves for _outcome, _policies, moves, *_ in plan))
        return again.snapshot
