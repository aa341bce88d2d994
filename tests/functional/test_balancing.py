"""Kronos in a whole Nova: it reads, plans, migrates and verifies, all through its real parts.

Prometheus is the one part that is recorded: it answers with the load of the hosts by their servers.
"""

import dataclasses
import pathlib
import time
from unittest import mock

import fixtures
import nova.conf
from nova import objects
from nova.virt import fake

from kronos_nova import clock
from kronos_nova import conf as kronos_conf
from kronos_nova.cycle import evaluation
from kronos_nova.cycle import options
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import journal as db_journal
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.objects import metrics
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from kronos_nova.plugin import compute_api
from kronos_nova.plugin import dry_run
from kronos_nova.plugin import inventory
from kronos_nova.plugin import scheduler
from kronos_nova.policies import loader
from tests.functional import base
from tests.unit.db import fixtures as db_fixtures
from tests.unit.executor import fakes_executor

POLICIES = """
policies:
- name: count
  mode: spread
  weight: 1.0
  imbalance_query: load of hosts
  vm_profile_query: load of servers
  vm_profile_label: uuid
  vm_profile_label_type: uuid
  threshold: 0.05
  max_migrations_per_cycle: 10
"""
LOAD = 0.1
CONF = nova.conf.CONF


class QemuDriver(fake.MediumFakeDriver):
    """The fake driver under the name that libvirt's hypervisors have."""

    def get_available_resource(self, nodename):
        return {**super().get_available_resource(nodename), 'hypervisor_type': 'QEMU'}


class CountingMetrics:
    """Every server is a tenth of a host."""

    def __init__(self, read):
        self.read = read

    def query(self, query):
        found = self.read()
        if query.kind == metrics.VM_PROFILE:
            return self.vector('uuid', {i.uuid: LOAD for i in found.instances})
        load = dict.fromkeys((host.name for host in found.hosts), 0.0)
        for instance in found.instances:
            load[instance.host] += LOAD
        return self.vector('host', load)

    @staticmethod
    def vector(label, values):
        now = clock.utcnow().timestamp()
        return metrics.Vector(tuple(
            metrics.Sample({label: name}, value, now) for name, value in values.items()))


class BalancingTestCase(base.NovaTestCase):
    hosts = ('host1', 'host2', 'host3')

    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch('nova.virt.fake.MediumFakeDriver', QemuDriver))
        super().setUp()
        kronos_conf.register_opts(CONF)
        self.flags(automation='auto', include_unassigned_hosts=True, group='kronos')
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.journal = db_journal.Journal(self.database, 'tester')
        self.inventory = inventory.InProcessInventory()
        self.worker = fakes_executor.Worker(
            self.journal, compute_api.InProcessComputeApi(), cooldowns.Cooldowns(self.database),
            ExecutorOptions.from_conf(CONF), clock.utcnow)

    def cycle(self, **ports):
        """Evaluate the one aggregate: its report."""
        [report] = self.evaluate(**ports)
        return report

    def evaluate(self, **ports):
        """Evaluate: the reports of the aggregates in which no host is drained."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'policies.yaml')
        path.write_text(POLICIES)
        ports = evaluation.CyclePorts.over(
            self.database, self.journal, inventory=self.inventory,
            metrics=CountingMetrics(self.inventory.read), **ports)
        cycles.Cycles(self.database).begin(snapshot.UNASSIGNED, 'tester', clock.utcnow(), 1)
        return evaluation.Cycle(
            ports, loader.load(path), options.from_conf(CONF),
            evaluation.CycleRules.from_conf(CONF), clock.utcnow).run().aggregates

    def carry_out(self):
        """Tick until no plan is open; the MoveRecords as they ended."""
        with fixtures.Timeout(60, gentle=True):
            while self.journal.aggregates_with_open_plans():
                self.worker.tick()
                time.sleep(0.2)
        return self.journal.moves()

    def hosts_of(self, servers):
        return sorted(self.api.get_server(s['id'])['OS-EXT-SRV-ATTR:host'] for s in servers)


class BalancingTest(BalancingTestCase):
    def test_servers_are_spread_and_every_one_holds_one_allocation(self):
        servers = [self.boot('host1') for _ in range(6)]
        report = self.cycle()
        self.assertEqual(plans.PLANNED, report.outcome)
        done = self.carry_out()
        self.assertEqual([moves.COMPLETED] * 4, [move.state for move in done])
        self.assertEqual(['host1', 'host1', 'host2', 'host2', 'host3', 'host3'],
                         self.hosts_of(servers))
        for server in servers:
            host = self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']
            self.assertEqual([host], list(self.held_by(server['id'])))
        for move in done:
            self.assert_holds(move.migration_uuid, {})

    def test_new_servers_go_where_the_measured_load_is_low(self):
        self.flags(automation='observe', group='kronos')
        view = scheduler.LastRead()
        self.useFixture(fixtures.MonkeyPatch('kronos_nova.plugin.scheduler.VIEW', view))
        [self.boot('host1') for _ in range(3)]
        self.boot('host2')
        self.cycle()
        scheduler.refresh(view, self.database, 60)
        self.assertAlmostEqual(0.3, view.score('host1'))
        weigher = scheduler.KronosWeigher()
        by_weight = sorted(self.hosts, key=lambda host: weigher._weigh_object(
            mock.Mock(host=host), None), reverse=True)
        self.assertEqual(['host3', 'host2', 'host1'], by_weight)

    def test_new_servers_keep_off_hosts_that_are_emptied(self):
        view = scheduler.LastRead()
        self.useFixture(fixtures.MonkeyPatch('kronos_nova.plugin.scheduler.VIEW', view))
        report = db_fixtures.report([('vm1', 'host1', 'host2')])
        evacuation = dataclasses.replace(
            report, moves=tuple(dataclasses.replace(m, phase=plans.EVACUATE) for m in report.moves))
        now = clock.utcnow()
        self.journal.record_plan(evacuation, plans.EXECUTING, now, now)
        scheduler.refresh(view, self.database, 60)
        self.assertEqual({'host1'}, view.emptied)
        kept = scheduler.KronosFilter()
        self.assertFalse(kept.host_passes(mock.Mock(host='host1'), objects.RequestSpec(
            force_hosts=None, requested_destination=None)))
        self.assertTrue(kept.host_passes(mock.Mock(host='host1'), objects.RequestSpec(
            force_hosts=['host1'], requested_destination=None)))

    def test_where_the_scheduler_would_refuse_another_host_is_taken(self):
        [self.boot('host1') for _ in range(2)]
        written = self.placement_fixture.writes_of_allocations()
        # Filters know what nothing in a snapshot tells.
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.filters.compute_filter.ComputeFilter.host_passes',
            lambda _self, host, _spec: host.host != 'host2'))
        report = self.cycle(dry_run=dry_run.SchedulerDryRun())
        self.assertEqual(['host3'], [move.destination for move in report.moves])
        self.assertEqual(written, self.placement_fixture.writes_of_allocations())

    def test_nothing_moves_where_it_only_observes(self):
        self.flags(automation='observe', group='kronos')
        servers = [self.boot('host1') for _ in range(3)]
        self.assertEqual(plans.PLANNED, self.cycle().outcome)
        self.assertEqual([], self.carry_out())
        self.assertEqual(['host1'] * 3, self.hosts_of(servers))
        self.assertEqual([plans.OBSERVED], [plan.state for plan in self.journal.plans()])

    def test_what_was_read_is_what_nova_says(self):
        server = self.boot('host2')
        found = self.inventory.read()
        self.assertEqual(list(self.hosts), sorted(host.name for host in found.hosts))
        [instance] = found.instances
        self.assertEqual((server['id'], 'host2', 'ACTIVE'),
                         (instance.uuid, instance.host, instance.status))
        self.assertEqual(self.held_by(server['id'])['host2'], instance.resources)
