"""One nova-conductor beside a cloud: how long its RPCs take while it does nothing else, while one
of its workers reconciles, and while the process that it started plans."""

import json
import subprocess
import sys
import time

from bench.cloud import tables
from tests.e2e.box import conffile
from tests.e2e.box import processes
from tests.e2e.box import rabbitmq
from tests.e2e.box.settings import Ports

WORKERS = 2
CHANGED = 0.02
"""Part of the providers that change before a cycle."""
OFF, RECONCILER, CYCLE = 'off', 'reconciler', 'cycle'
START = 240
INTERVAL = 3000
"""Seconds between two evaluations, more than the bench takes; a planning process waits longer."""


class Conductor:
    """A context manager.

    :param trial: bench.cloud.trial.Trial
    """

    def __init__(self, trial):
        self._trial, self._services = trial, trial.services
        root = self._services.root
        self._broker = rabbitmq.RabbitMQ(root, Ports())
        self._conf = root / 'conductor.conf'
        self._process = processes.Process(
            'conductor', [sys.executable, '-m', 'bench.conductor', '--config-file',
                          trial.nova_conf, '--config-file', self._conf], root,
            env={'KRONOS_BENCH_CHILD': 'bench.cloud.child',
                 'KRONOS_BENCH_CYCLES': str(trial.cycles_file)})

    def __enter__(self):
        self._turn_reconciler(False)
        self._broker.start(60)
        self._broker.server.wait_ready(60)
        conffile.write(self._conf, {
            'DEFAULT': {'transport_url': self._broker.url, 'host': 'controller1',
                        'log_file': self._services.root / 'conductor.log',
                        'periodic_fuzzy_delay': 0},
            'conductor': {'workers': WORKERS},
            'oslo_messaging_notifications': {'driver': 'kronos'},
            'kronos': {'evaluation_interval': INTERVAL, 'planner_max_cycles': 1000,
                       'planner_idle_time': 2 * INTERVAL},
            'kronos_allocations': {'reconcile_interval': 1}})
        self._process.start()
        # The first cycle is not measured: it loads Nova and reads everything.
        self._await_cycle()
        return self

    def __exit__(self, *exc):
        self._process.stop()

    def measure(self, rounds, seconds):
        """Measure calls in alternating phases of ``seconds`` each, except that the phase of a cycle
        lasts as long as the cycle. Return {phase: [[seconds of each call] for each round]}."""
        probe = subprocess.Popen(
            [sys.executable, '-m', 'bench.rpc_probe', str(self._conf), tables.host_name(0)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        spans = []
        time.sleep(seconds)
        for _round in range(rounds):
            for phase in (OFF, RECONCILER, OFF, CYCLE):
                if phase == CYCLE:
                    self._trial.touch(round(CHANGED * self._trial.size.hosts))
                begun = time.time()
                if phase == CYCLE:
                    self._cycle()
                else:
                    self._turn_reconciler(phase == RECONCILER)
                    if phase == RECONCILER:
                        begun = self._await_reconciler()
                    time.sleep(seconds)
                spans.append((phase, begun, time.time()))
                self._turn_reconciler(False)
                time.sleep(5)  # what is in progress ends
        output, _errors = probe.communicate(timeout=60)
        calls = json.loads(output)
        return {phase: [[took for at, took in calls if begun <= at and at + took <= ended]
                        for name, begun, ended in spans if name == phase]
                for phase in (OFF, RECONCILER, CYCLE)}

    def _turn_reconciler(self, is_on):
        """Take its lease to switch it off. Once it is on, all that is recent is new to it."""
        if is_on:
            self._query("UPDATE leases SET holder = NULL, expires_at = NULL, progress_at = NULL "
                        "WHERE name = 'reconciler'")
            self._services.database.query(
                'nova_cell1', 'UPDATE migrations SET updated_at = updated_at - INTERVAL 1 SECOND')
        else:
            self._query("UPDATE leases SET holder = 'bench', expires_at = '2100-01-01' "
                        "WHERE name = 'reconciler'")

    def _await_reconciler(self):
        """Return when it began to ask placement about instances."""
        log = self._services.placement.access_log
        before = log.read_bytes().count(b'/allocations/')
        processes.wait_for(lambda: log.read_bytes().count(b'/allocations/') > before, START,
                           'no worker reconciles')
        return time.time()

    def _cycle(self):
        """Make all aggregates due, and wait until all have been evaluated, because several workers
        may share them. They are due at once for the worker that planned them last, which has most
        of the data in its cache."""
        self._query('UPDATE cycles SET finished_at = NULL, '
                    f'started_at = UTC_TIMESTAMP() - INTERVAL {INTERVAL} SECOND')
        self._await_cycle()

    def _await_cycle(self):
        wanted = len(self._trial.size.aggregates)
        seen = None

        def has_ended():
            nonlocal seen
            if not self._process.alive():
                raise SystemExit(f'the conductor ended:\n{self._process.tail()}')
            # The database serves the conductor that is measured: it is asked only after a child
            # reported a cycle, never in between.
            before, seen = seen, self._trial.cycles_file.stat().st_size
            if before == seen:
                return False
            [row] = self._services.database.query(
                'kronos', 'SELECT COUNT(*) AS ended FROM cycles WHERE finished_at >= started_at')
            return row['ended'] >= wanted

        processes.wait_for(has_ended, 3600, 'no cycle ended', interval=0.2)

    def _query(self, sql):
        self._services.database.query('kronos', sql)
