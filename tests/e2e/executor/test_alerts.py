"""Every alert fires when what it is about happens, and is resolved once that is over.

Alertmanager is asked. The rules are those that are shipped, but for their durations: see
``tests/alert_rules.py``.
"""

import contextlib
import os
import pathlib
import re
import signal

from oslo_utils import uuidutils

from kronos_nova import clock
from kronos_nova.db import engine as db_engine
from kronos_nova.db.switches import SwitchBoard
from kronos_nova.objects import automation
from tests import alert_rules
from tests.e2e.box import prometheus
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base
from tools import dashboards

POLICIES = """
policies:
- name: count
  mode: spread
  weight: 1.0
  imbalance_query: >-
    (count by (host) (libvirt_domain_info_virtual_cpus)
    or 0 * sum by (host) (machine_cpu_cores)) / 20
  vm_profile_query: libvirt_domain_info_virtual_cpus / 20
  vm_profile_label: uuid
  vm_profile_label_type: uuid
  threshold: 0.15
  max_migrations_per_cycle: 20
"""

FIRES, RESOLVED = 150, 150
"""Seconds; what is evaluated takes its time where the machine has other things to do."""

EVALUATED = 'time() - kronos_last_good_cycle_timestamp_seconds < 20'

BACKLOG = 100
QUARANTINED = 16
"""Servers of which Kronos tries to move half, and then half of the rest, and so on: more
than the ten that are an alert."""


OF_FORECASTS = re.compile(r'kronos_(forecast|imbalance_ahead)_')
"""Metrics of policies with a forecast alone, and after two days."""


class AlertsTestCase(base.ExecutorTestCase):
    computes, conductors, workers = 4, 1, 1
    alerting = True
    executor = {'max_retries': 0, 'max_concurrent_migrations': 20,
                'max_concurrent_per_source': 20, 'max_concurrent_per_destination': 20}
    nova_conf = {
        'DEFAULT': {'max_concurrent_live_migrations': 20},
        'kronos': {'aggregates': 'gpu, web', 'include_unassigned_hosts': False,
                   'evaluation_interval': 6, 'cooldown': 0, 'instance_cooldown': 1,
                   'notification_topics': 'kronos_notifications',
                   'notification_backlog': BACKLOG}}

    @classmethod
    def prepare(cls, conf):
        policies, own_rules = (cls.cloud.root / name for name in ('policies.yaml', 'rules.yaml'))
        policies.write_text(POLICIES)
        own_rules.write_text(alert_rules.hastened(prometheus.RULES.read_text()))
        cls.cloud.monitoring.rules = own_rules
        conf['kronos']['policies_file'] = policies
        cls.cloud.configure(nova_conf=conf)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cloud.client.create_flavor('pinned', vcpus=1, ram=64,
                                       extra_specs={'kronos:move': 'never'})
        cls.cloud.client.create_aggregate('gpu', ['compute1', 'compute2'])
        cls.cloud.client.create_aggregate('web', ['compute3', 'compute4'])

    def setUp(self):
        super().setUp()
        self.cloud.wait_hosts()
        wait_for(self.is_healthy, RESOLVED, lambda: f'not healthy: {self.firing()}', interval=0.5)

    def is_healthy(self):
        """Return whether nothing fires or is about to, and every host takes servers."""
        services = self.cloud.client.services().values()
        return (not self.firing() and not self.cloud.monitoring.query('ALERTS')
                and {each['status'] for each in services} == {'enabled'}
                and len(self.cloud.monitoring.query(EVALUATED)) == 2)

    def firing(self):
        return self.cloud.alerting.alerts()

    def boot_pinned(self, count, host):
        uuids = [self.cloud.client.create(self.cloud.image, host=host, flavor='pinned')
                 for _number in range(count)]
        self.cloud.client.wait_active(uuids, 120)
        self.addCleanup(self._delete, uuids)
        return uuids

    def wait_fired(self, *names, meanwhile=lambda: None):
        """Wait until Alertmanager has had all of these alerts."""
        heard = set()

        def all_were():
            meanwhile()
            heard.update(self.firing())
            return heard >= {*names}
        wait_for(all_were, FIRES, lambda: f'{names}: only {heard} fired', interval=0.05)

    def wait_resolved(self, *names):
        wait_for(lambda: not {*names} & self.firing(), RESOLVED,
                 lambda: f'the fault is over, but these still fire: {self.firing()}', interval=0.5)

    @contextlib.contextmanager
    def fault(self, *names, meanwhile=lambda: None):
        """None of these alerts fires before the block, and all are resolved after it.

        :param meanwhile: called again and again while they are waited for
        :returns: what the block calls to wait until all of them have fired
        """
        self.assertEqual(set(), {*names} & self.firing())
        yield lambda: self.wait_fired(*names, meanwhile=meanwhile)
        self.wait_resolved(*names)

    def leak(self):
        """A uuid that holds something and that Nova does not know."""
        consumer = uuidutils.generate_uuid()
        provider = next(uuid for uuid, name in self.cloud.client.providers().items()
                        if name == 'compute4')
        self.cloud.client.placement('PUT', f'/allocations/{consumer}', json={
            'allocations': {provider: {'resources': {'VCPU': 1}}}, 'project_id': consumer,
            'user_id': consumer, 'consumer_generation': None, 'consumer_type': 'INSTANCE'})
        return consumer


class AlertsTest(AlertsTestCase):
    def test_the_exporter_is_away(self):
        with self.fault('KronosExporterDown') as wait_fired:
            self.cloud.alerting.exporter.stop()
            wait_fired()
            self.cloud.alerting.exporter.start()

    def test_the_database_is_away(self):
        with self.fault('KronosDatabaseDown') as wait_fired:
            self.cloud.database.process.stop(30)
            wait_fired()
            self.cloud.database.process.start()
            self.cloud.database.process.wait_ready(60)

    def test_the_broker_is_away(self):
        board = SwitchBoard(db_engine.Database(self.database.engine, announces=True))
        self.addCleanup(self.cloud.manage, 'automation', 'set', 'auto', '--aggregate', 'web')
        with self.fault('KronosNotificationsWait', 'KronosNotificationsLost') as wait_fired:
            self.cloud.broker.server.stop(30)
            for number in range(BACKLOG + 10):
                board.set(automation.Switch(
                    kind=automation.LEVEL, aggregate='web', value=automation.AUTO,
                    set_at=clock.utcnow(), set_by='the test', reason=str(number)))
            wait_fired()
            self.cloud.broker.server.start()
            self.cloud.broker.server.wait_ready(60)

    def test_the_conductors_are_away(self):
        [conductor] = self.cloud.nova.conductors
        with self.fault('KronosNoExecutor', 'KronosNotEvaluated') as wait_fired:
            conductor.process.kill()
            wait_fired()
            conductor.start()

    def test_planning_processes_die(self):
        with self.fault('KronosPlannerFails', meanwhile=self.kill_planner) as wait_fired:
            wait_fired()

    def kill_planner(self):
        """End what is planning, in the middle of it."""
        if self.cloud.database.query('kronos', 'SELECT aggregate FROM cycles WHERE '
                                     'finished_at IS NULL OR finished_at < started_at'):
            for pid in self.planners():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def planners(self):
        """Pids of the planning processes of this cloud."""
        wanted = (b'kronos_nova.plugin.cycle', os.fsencode(self.cloud.root))
        for folder in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                words = (folder / 'cmdline').read_bytes()
                if all(word in words for word in wanted):
                    yield int(folder.name)

    def test_the_load_is_not_measured_any_more(self):
        with self.fault('KronosBlind', 'KronosPolicyWithoutData') as wait_fired:
            self.cloud.monitoring.exporter.stop()
            wait_fired()
            self.cloud.monitoring.exporter.start()

    def test_moves_fail(self):
        self.orders(default={'seconds': 1, 'outcome': 'fail'})
        with self.fault('KronosMovesFail', 'KronosQuarantineGrows') as wait_fired:
            self.boot(QUARANTINED, 'compute1')
            wait_fired()
            self.orders(default={'seconds': 1})
            for uuid in self.cooldowns.quarantined(clock.utcnow()):
                self.cooldowns.release(uuid)

    def test_hosts_stay_unbalanced(self):
        with self.fault('KronosImbalanceStays') as wait_fired:
            servers = self.boot_pinned(5, 'compute1')
            wait_fired()
            self._delete(servers)

    def test_a_plan_waits(self):
        self.cloud.manage('automation', 'set', 'approve', '--aggregate', 'web')
        self.addCleanup(self.cloud.manage, 'automation', 'set', 'auto', '--aggregate', 'web')
        self.boot(5, 'compute3')
        with self.fault('KronosPlanWaits') as wait_fired:
            wait_fired()
            [plan] = self.journal.open_plans()
            self.cloud.manage('plan', 'approve', plan.uuid)

    def test_a_drain_is_blocked(self):
        [server] = self.boot_pinned(1, 'compute2')
        with self.fault('KronosDrainBlocked') as wait_fired:
            self.cloud.manage('host', 'drain', '--force', 'compute2')
            self.addCleanup(self.cloud.manage, 'host', 'release', 'compute2')
            wait_fired()
            self._delete([server])

    def test_it_is_paused_for_long(self):
        with self.fault('KronosPausedForLong') as wait_fired:
            self.cloud.manage('pause', '--aggregate', 'web', '--reason', 'the test')
            wait_fired()
            self.cloud.manage('resume', '--aggregate', 'web')

    def test_a_host_cannot_be_lost(self):
        """Nova evacuates no server that is paused."""
        [(server, _host)] = self.boot(1, 'compute3')
        with self.fault('KronosHostLossNotCovered') as wait_fired:
            self.cloud.client.compute('POST', f'/servers/{server}/action', json={'pause': None})
            wait_fired()
            self.cloud.client.compute('POST', f'/servers/{server}/action', json={'unpause': None})

    def test_an_audit_finds_something(self):
        with self.fault('KronosAllocationsWrong') as wait_fired:
            consumer = self.leak()
            self.cloud.manage('allocations', 'audit', '--grace', '0', check=False)
            wait_fired()
            self.cloud.client.placement('DELETE', f'/allocations/{consumer}')
            self.cloud.manage('allocations', 'audit', '--grace', '0', check=False)


class DashboardsTest(AlertsTestCase):
    def test_every_query_of_the_dashboards_has_data(self):
        unanswered = {target['expr'].replace('$aggregate', '.*')
                      for *_name, rows in dashboards.DASHBOARDS for row in rows
                      for panel in row for target in panel['targets']
                      if not OF_FORECASTS.search(target['expr'])}

        def all_answered():
            unanswered.difference_update(
                [query for query in unanswered if self.cloud.monitoring.query(query)])
            return not unanswered

        self.leak()
        self.cloud.manage('allocations', 'heal', '--grace', '0', '--apply', '--unknown')
        self.cloud.manage('allocations', 'audit', '--grace', '0', check=False)
        servers = self.boot(8, 'compute3')
        # Half of all are moved: of the first half some fail, and some of the others do not.
        self.orders(default={'seconds': 6}, instances={
            uuid: {'seconds': 2, 'outcome': 'fail'} for uuid, _host in servers[:6]})
        wait_for(lambda: all_answered() or self.journal.durations(), 180, 'no move completes')
        self.boot(3, 'compute2')
        self.cloud.manage('host', 'drain', 'compute2')
        self.addCleanup(self.cloud.manage, 'host', 'release', 'compute2')
        wait_for(all_answered, 180, lambda: f'no data for {sorted(unanswered)}', interval=0.5)
