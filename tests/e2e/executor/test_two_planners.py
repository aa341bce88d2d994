"""kronos-engine plans the same aggregates as nova-conductor does: ``run_in`` differs between their
files."""

import json

import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.e2e.box import auth
from tests.e2e.box import conffile
from tests.e2e.box.processes import Process
from tests.e2e.box.processes import wait_for
from tests.e2e.box.settings import command
from tests.e2e.executor import base
from tests.e2e.executor.test_daemons import POLICIES

ROUNDS = 4
"""Times that one host gets too many servers. Raised, the tests take longer. Lowered below 3, one of
the two may plan all of them: after each time either the conductors or the engine are killed."""
CROWD = 5
SECONDS = 180


class TwoPlannersTestCase(base.ExecutorTestCase):
    computes, conductors, workers = 3, 2, 1
    nova_conf = {'kronos': {'automation': 'auto', 'evaluation_interval': 3, 'cooldown': 0}}

    @classmethod
    def prepare(cls, conf):
        policies = cls.cloud.root / 'policies.yaml'
        policies.write_text(POLICIES)
        conf['kronos']['policies_file'] = policies
        cls.cloud.configure(nova_conf=conf)

    def start_engine(self):
        own_conf = self.cloud.root / 'etc' / 'kronos.conf'
        api = self.cloud.nova_api.url
        conffile.write(own_conf, {
            'DEFAULT': {'state_path': self.cloud.root / 'state' / 'engine'},
            'kronos': {'run_in': 'daemons'},
            'kronos_nova': {
                'auth_type': 'admin_token', 'token': auth.TOKEN, 'endpoint': api,
                'endpoint_override': f'{api}/v2.1',
                'placement_endpoint_override': self.cloud.placement.url}})
        self.engine = Process('kronos-engine', [
            *command('kronos-nova', 'kronos-engine'), '--config-file', self.cloud.nova.conf,
            '--config-file', own_conf], self.cloud.root)
        self.engine.start()
        self.addCleanup(lambda: self.engine.alive() and self.engine.stop(15))

    def planners(self):
        """Names of the workers that have begun the last evaluations."""
        with self.database.reader() as session:
            return {*session.scalars(sa.select(models.CycleRow.worker))}

    def open_moves(self):
        return [each for each in self.journal.moves(limit=1000) if each.state not in moves.TERMINAL]

    def moves_of(self, servers):
        return [each for each in self.journal.moves(limit=1000) if each.instance_uuid in servers]

    def crowd(self):
        """Boot servers on one host, and wait until the load is spread."""
        crowd = self.boot(CROWD, self.hosts[0])
        seen = set()

        def is_spread():
            seen.update(self.planners())
            open_moves = [each.instance_uuid for each in self.open_moves()]
            self.assertEqual(len({*open_moves}), len(open_moves), 'two plans move one server')
            placed = [server['OS-EXT-SRV-ATTR:host'] for server in self.cloud.client.servers()]
            counts = [placed.count(host) for host in self.hosts]
            return max(counts) - min(counts) <= 2 and not open_moves
        wait_for(is_spread, SECONDS, lambda: f'load is not spread: {self.open_moves()}',
                 interval=0.3)
        return [uuid for uuid, _host in crowd], seen

    def kill_planner(self, number):
        """Kill the conductors or the engine, and start what was killed again."""
        if number % 2:
            self.engine.kill()
            self.engine.start()
            return
        for conductor in self.cloud.nova.conductors:
            conductor.process.kill()
            conductor.start()

    def warnings(self):
        found = json.loads(self.cloud.manage('status', '-f', 'json', check=False))
        return [each['what'] for each in found['problems']]

    def assert_planned_once(self):
        first = [uuid for uuid, _host in self.boot(len(self.hosts))]
        self.start_engine()
        wait_for(lambda: any('kronos-engine' in each for each in self.warnings()), 120,
                 lambda: f'status says nothing of the engine: {self.warnings()}', interval=2)
        seen = set()
        for number in range(ROUNDS):
            crowd, planners = self.crowd()
            seen |= planners
            self.assert_well_done(self.moves_of([*first, *crowd]))
            self.kill_planner(number)
            self._delete(crowd)
        print(f'\nPLANNERS {sorted(seen)}: {len(self.journal.plans(limit=1000))} plans', flush=True)
        self.assertEqual(set(), {each.state for each in self.journal.plans(limit=1000)} - {
            plans.DONE, plans.OBSERVED, plans.SUPERSEDED})
        self.assertEqual({True, False}, {each.startswith('conductor') for each in seen})


class SharedLocksTest(TwoPlannersTestCase):
    @classmethod
    def prepare(cls, conf):
        conf['kronos']['coordination_url'] = cls.cloud.database.url('kronos').replace(
            'mysql+pymysql', 'mysql').partition('?')[0]
        super().prepare(conf)

    def test_each_server_is_in_one_plan(self):
        self.assert_planned_once()


class OwnLocksTest(TwoPlannersTestCase):
    """Locks are files below ``state_path``, which each process has for itself."""

    def test_each_server_is_in_one_plan(self):
        self.assert_planned_once()
