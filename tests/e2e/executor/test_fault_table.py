"""Everything that Kronos stands on goes away for a while, in every state of moves and of a drain.

``KRONOS_E2E_AWAY`` says for how many seconds each service is away (``1,60``); ten minutes
(``600``) take an hour and a half. Each test prints its row of the table.
"""

import collections
import functools
import os
import time

import ddt

from kronos_nova import clock
from kronos_nova.db.drains import Drains
from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import history
from tests.e2e.executor import test_drain

AWAY = tuple(int(each) for each in os.environ.get('KRONOS_E2E_AWAY', '1,60').split(','))
SERVICES = ('broker', 'placement', 'database', 'keystone', 'prometheus')
MOVE_SECONDS = 6
"""The duration of a live migration: several begin, run and end while a service is away."""
SAID_FROM = 20
"""Seconds of absence from which a log has to say so."""
WORDS = ('does not answer', 'is unreachable', 'cannot be reached', 'did not answer',
         'does not report', 'gives no token', 'could not be read', 'Connection refused')


class FaultTestCase(test_drain.DrainTestCase):
    """A cloud whose moves and drains go on while something that they need fails."""

    computes, conductors, workers = 5, 2, 1
    executor = {'max_retries': 3, 'migration_timeout': 240}
    nova_conf = {**test_drain.DrainTestCase.nova_conf,
                 'kronos_allocations': {'task_timeout': 10, 'grace': 10, 'reconcile_interval': 5}}

    def setUp(self):
        super().setUp()
        self.orders(default={'seconds': MOVE_SECONDS})

    def begin_moves(self):
        """Start a plan of which some moves run and some wait; return its servers."""
        servers = [pair for host in self.hosts for pair in self.boot(2, host)]
        plan = self.start(self.round_robin(servers), start_interval=1)
        wait_for(lambda: any(each.migration_uuid for each in self.journal.moves(plan)), 120,
                 'nothing begins')
        return [uuid for uuid, _host in servers]

    def begin_drain(self):
        """Begin to empty the last host; return the servers on it."""
        servers = [uuid for uuid, _host in self.boot(6, self.hosts[-1])]
        code, said = self.run_manage('host', 'drain', self.hosts[-1])
        self.assertEqual(0, code, said)
        wait_for(lambda: self.journal.moves(states=moves.IN_FLIGHT), 120, 'nothing begins')
        return servers

    def states(self, chosen):
        """{instance: state of its move}"""
        return {each.instance_uuid: each.state if each.state != moves.MIGRATING else (
            'migrating' if each.migration_uuid else 'asked for') for each in chosen}

    def logged(self, marks):
        """Return the log of conductors since ``marks``, {daemon: size of its log}."""
        for daemon, mark in marks.items():
            with daemon.process.log.open(errors='replace') as log:
                log.seek(mark)
                yield log.read()

    def under_outage(self, fail, servers, may_lose=False, has_to_say=False):
        """Let something fail while the moves of some servers are in progress.

        :param fail: called; returns when the failure is over
        :param may_lose: whether Nova itself may lose migrations by it
        :param has_to_say: whether a conductor has to log it although no move waits for it
        """
        marks = {daemon: daemon.process.log.stat().st_size for daemon in self.cloud.nova.conductors}
        before = self.states(self.moves_of(servers))
        fail()
        over = clock.utcnow()
        self.wait_ended(600)
        done = self.moves_of(servers)
        lost = {each.instance_uuid for each in done if each.state != moves.COMPLETED}
        ended = collections.Counter(
            f'{before.get(each.instance_uuid, "not planned")}: {each.state}' for each in done)
        is_said = any(word in text for text in self.logged(marks) for word in WORDS)
        print(f'\nAWAY {self.id().rpartition(".")[2]}: {dict(sorted(ended.items()))}, '
              f'{"said" if is_said else "not said"}; '
              f'{[each.error[:100] for each in done if each.error]}', flush=True)
        # Nothing is blamed on a move, nothing done twice, nothing leaked.
        self.assertEqual([], [detail for each in done for detail in history.blamed(
            self.journal.events(each.uuid), over)])
        self.assert_asked_once_a_try(done)
        self.assert_allocations_exact(300, but_for=lost)
        self.assertEqual({'ACTIVE'}, {
            self.cloud.client.server(uuid)['status'] for uuid in {*servers} - lost})
        if not may_lose:
            self.assertEqual(set(), lost)
        if has_to_say or any(each.error for each in done):
            self.assertTrue(is_said)

    def moves_of(self, servers):
        return [each for each in self.journal.moves(limit=1000) if each.instance_uuid in servers]

    def assert_drain_ends(self):
        """The host that is emptied is empty in the end, and taken back into service."""
        drained = self.hosts[-1]
        wait_for(lambda: not self.on(drained), 300, 'the host is not emptied', interval=1)
        wait_for(lambda: Drains(self.database).latest(drained).state == 'empty', 60,
                 'the drain does not end')
        code, said = self.run_manage('host', 'release', drained)
        self.assertEqual(0, code, said)
        self.assertEqual('enabled', self.cloud.client.services()[drained]['status'])

    def _release(self, host):
        """Take a host back into service, whatever became of its drain, for the next test."""
        self.run_manage('host', 'release', host)
        wait_for(lambda: self.cloud.client.services()[host]['status'] == 'enabled', 120,
                 'the host stays disabled', interval=1)

    def moves_under(self, fail, **expected):
        self.cloud.manage('automation', 'set', 'auto')
        self.addCleanup(self.cloud.manage, 'automation', 'set', 'observe')
        self.under_outage(fail, self.begin_moves(), **expected)

    def drain_under(self, fail, **expected):
        self.addCleanup(self._release, self.hosts[-1])
        self.under_outage(fail, self.begin_drain(), **expected)
        self.assert_drain_ends()


@ddt.ddt
class FaultTableTest(FaultTestCase):
    keystone = True

    def process(self, service):
        return {'broker': self.cloud.broker.server, 'placement': self.cloud.placement.process,
                'database': self.cloud.database.process,
                'keystone': self.cloud.identity.process,
                'prometheus': self.cloud.monitoring.process}[service]

    def away(self, service, seconds):
        process = self.process(service)
        process.stop(30)
        time.sleep(seconds)
        process.start()
        process.wait_ready(120)

    @staticmethod
    def expected(service, seconds):
        return {'may_lose': service in ('broker', 'database'),
                # No move needs Prometheus, nor keystone while tokens are valid.
                'has_to_say': seconds >= SAID_FROM and service not in ('keystone', 'prometheus')}

    @ddt.idata((service, seconds) for seconds in AWAY for service in SERVICES)
    @ddt.unpack
    def test_moves_converge(self, service, seconds):
        self.moves_under(functools.partial(self.away, service, seconds),
                         **self.expected(service, seconds))

    @ddt.idata((service, seconds) for seconds in AWAY for service in SERVICES)
    @ddt.unpack
    def test_a_drain_converges(self, service, seconds):
        self.drain_under(functools.partial(self.away, service, seconds),
                         **self.expected(service, seconds))
