"""kronos-engine and kronos-executor outside Nova, with an API that misbehaves."""

import datetime
import os
import signal
import time

from kronos_nova import clock
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.e2e.box import auth
from tests.e2e.box import conffile
from tests.e2e.box.processes import Process
from tests.e2e.box.processes import wait_for
from tests.e2e.box.settings import command
from tests.e2e.executor import base
from tests.e2e.executor import proxy

TROUBLE_SECONDS = 15
HTTP_ERROR = 500

END_SECONDS = 20
"""Longer than an executor continues its moves (``drain_timeout``) and a message that cannot be sent
is tried again; shorter than the time after which a daemon that hangs is killed."""

POLICIES = """
policies:
- name: count
  mode: spread
  weight: 1.0
  imbalance_query: count by (host) (libvirt_domain_info_virtual_cpus) / 10
  vm_profile_query: libvirt_domain_info_virtual_cpus / 10
  vm_profile_label: uuid
  vm_profile_label_type: uuid
  threshold: 0.15
  max_migrations_per_cycle: 4
"""


class DaemonsTest(base.ExecutorTestCase):
    computes, conductors, workers = 3, 1, 1
    executor = {'max_retries': 5, 'drain_timeout': 2}
    nova_conf = {'kronos': {'run_in': 'daemons', 'evaluation_interval': 5, 'cooldown': 0}}

    def setUp(self):
        super().setUp()
        self.api = self.useFixture(proxy.Proxy(self.cloud.nova_api.url))
        self.policies = self.cloud.root / 'policies.yaml'
        self.policies.write_text(POLICIES)
        self.own_conf = self.cloud.root / 'etc' / 'kronos.conf'
        self.configure()

    def configure(self, **kronos):
        conffile.write(self.own_conf, {
            'kronos': {'policies_file': self.policies, **kronos},
            'kronos_nova': {
                'auth_type': 'admin_token', 'token': auth.TOKEN, 'endpoint': self.api.url,
                'endpoint_override': f'{self.api.url}/v2.1', 'timeout': 5,
                'placement_endpoint_override': self.cloud.placement.url}})

    def daemon(self, name, program, *arguments):
        process = Process(name, [
            *command('kronos-nova', program), '--config-file', self.cloud.nova.conf,
            '--config-file', self.own_conf, *arguments], self.cloud.root)
        process.start()
        self.addCleanup(lambda: process.alive() and process.stop(15))
        return process

    def executors(self, count=2):
        return [self.daemon(f'kronos-executor-{number}', 'kronos-executor', '--unassigned')
                for number in range(count)]

    def in_trouble(self, mode):
        """Carry out a plan during which the API is in that mode for a while."""
        self.executors()
        servers = self.boot(6)
        self.orders(default={'seconds': 3})
        plan = self.start(self.round_robin(servers), start_interval=1)
        wait_for(lambda: any(move.migration_uuid for move in self.journal.moves(plan)), 90,
                 'nothing begins')
        self.api.mode = mode
        time.sleep(TROUBLE_SECONDS)
        self.api.mode = proxy.PASS
        self.wait_ended(240)
        done = self.journal.moves(plan)
        self.assertEqual([], [(m.state, m.error) for m in done if m.state != moves.COMPLETED])
        self.assert_asked_once_a_try(done)
        self.assert_allocations_exact()
        return [detail for move in done
                for _at, _old, new, _worker, detail in self.journal.events(move.uuid)
                if new == moves.PLANNED and 'Error' in detail]

    def test_an_api_that_answers_500_for_a_while(self):
        self.assertEqual([], [detail for detail in self.in_trouble(HTTP_ERROR)
                              if not detail.startswith('NovaClientError')])

    def test_an_api_that_does_not_answer_for_a_while(self):
        self.assertEqual([], [detail for detail in self.in_trouble(proxy.HANG)
                              if not detail.startswith('NovaClientError')])

    def test_an_executor_that_is_stopped_leaves_its_moves_to_another(self):
        [first] = self.executors(1)
        servers = self.boot(2, 'compute1')
        self.orders(default={'seconds': 12})
        plan = self.start([base.planned(uuid, 'compute1', 'compute2', order)
                           for order, (uuid, _host) in enumerate(servers, 1)])
        wait_for(lambda: all(move.migration_uuid for move in self.journal.moves(plan)), 90,
                 'nothing begins')
        [owner] = {move.owner for move in self.journal.moves(plan)}
        self.executors(2)
        first.stop(30)
        self.wait_ended(120)
        done = self.journal.moves(plan)
        self.assert_well_done(done)
        self.assertNotIn(owner, {move.owner for move in done})

    def test_daemons_that_end_without_a_broker_delete_their_records(self):
        """The task of a move is the first message that a daemon sends."""
        before, executors = self.recorded(), self.executors(2)
        ending = executors[0], self.daemon('kronos-engine', 'kronos-engine')
        servers = self.boot(3)
        wait_for(lambda: len(self.recorded() - before) == 3, 60, 'not all daemons are recorded')
        self.cloud.broker.server.stop(30)
        plan = self.start(self.round_robin(servers))
        wait_for(lambda: any(move.state == moves.DISPATCHED for move in self.journal.moves(plan)),
                 60, 'nothing is dispatched')
        time.sleep(2)
        took = [self.seconds_to_end(daemon) for daemon in ending]
        left = self.recorded() - before
        self.cloud.broker.server.start()
        self.cloud.broker.server.wait_ready(60)
        self.assertEqual(['executor'], [role for _name, role in left])
        self.assertLess(max(took), END_SECONDS)
        self.wait_ended(300)
        self.assert_well_done(self.journal.moves(plan))

    def seconds_to_end(self, daemon):
        began = time.monotonic()
        daemon.stop(2 * END_SECONDS)
        return time.monotonic() - began

    def recorded(self):
        """Return (name, role) of the daemons that the journal has."""
        since = clock.utcnow() - datetime.timedelta(hours=1)
        return {(name, role) for name, role, _heard_at in self.journal.workers(since)
                if role in ('executor', 'engine')}

    def planned(self):
        """Plans of the engine, the newest first."""
        return [plan for plan in self.journal.plans() if plan.planner != 'test']

    def test_an_engine_plans_when_it_is_allowed_to(self):
        self.boot(3)
        crowd = self.boot(4, 'compute1')
        self.configure(automation='off')
        [executor] = self.executors(1)
        engine = self.daemon('kronos-engine', 'kronos-engine')
        time.sleep(15)
        self.assertEqual([], self.planned())
        self.configure(automation='auto')
        before = self.recorded()
        for daemon in (executor, engine):
            os.kill(daemon.pid, signal.SIGHUP)
        wait_for(self.planned, 90, 'nothing is planned')
        self.assertEqual(before, self.recorded())
        self.wait_ended(120)
        plan = self.planned()[-1]
        self.assertEqual(plans.DONE, plan.state)
        self.assertNotEqual([], self.journal.moves(plan.uuid))
        self.assert_well_done(self.journal.moves(plan.uuid))
        self.assertLess(len([uuid for uuid, _host in crowd
                             if self.cloud.client.host(uuid) == 'compute1']), 4)
        for daemon in (executor, engine):
            daemon.stop(30)
        self.assertEqual(set(), before & self.recorded())
