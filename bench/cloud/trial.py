"""One cloud, and what is measured on it."""

import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import psutil
import requests
import yaml

from bench.cloud import tables
from bench.cloud.tables import Size
from kronos_nova import clock
from kronos_nova.cmd import manage
from kronos_nova.db import cycles
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import switches
from kronos_nova.engine import cycle_scheduler
from kronos_nova.engine import locks
from kronos_nova.engine import planning_client
from kronos_nova.objects import plan as plans
from tests.e2e.box import processes
from tests.e2e.box.services import Services
from tests.e2e.box.settings import LOOPBACK
from tests.e2e.box.settings import command

TIMEOUT = 3600
WORKERS = 4
VERSION = {'OpenStack-API-Version': 'placement 1.38'}
RECONCILER_COLUMNS = ('migrations', 'workers', 'CPU s of all', 'of the one that looks', 'wall s',
                      'placement CPU s', 'database CPU s', 'requests', 'statements')
AUDIT_COLUMNS = ('instances', 'wall s', 'CPU s', 'peak MiB', 'requests', 'findings')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of a cycle: seconds, MiB, KiB."""

    name: str
    cpu: float
    wall: float
    peak: float
    placement: float
    database: float
    requests: int
    statements: int
    growth: float
    by_piece: dict

    def row(self, size):
        planners = self.by_piece.get('planners', (0.0, 0.0))[0]
        return (size.hosts, size.vms, self.name, self.cpu, planners, self.cpu - planners, self.wall,
                self.peak, self.placement, self.database, self.requests, self.statements,
                self.growth)

    def pieces(self, size):
        for piece, (cpu, wall) in self.by_piece.items():
            yield size.hosts, size.vms, self.name, piece, cpu, wall


def _compile():
    """Compile the modules of the bench, as installed packages are compiled."""
    subprocess.run([sys.executable, '-W', 'ignore', '-c', 'import bench.cloud.child'], check=True)


class Trial:
    """A cloud of some :class:`Size`; a context manager.

    :param failover_hosts: as ``[kronos]`` has it
    :param buffer: the flavor for two servers of which each aggregate keeps room, if any
    """

    def __init__(self, size: Size, failover_hosts: int = 0, buffer: str | None = None):
        self.size, self.failover_hosts, self.buffer = size, failover_hosts, buffer
        self.services = Services()
        self.cloud = tables.Cloud(size)

    def __enter__(self):
        self.services.__enter__()
        try:
            self._prepare()
        except BaseException:
            self.services.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        self.services.__exit__(*exc)

    def _prepare(self):
        _compile()
        root = self.services.root
        self.cloud.fill(self.services.database)
        port = self.services.take_port()
        series = root / 'series.json'
        series.write_text(json.dumps(self.cloud.series()))
        url = f'http://{LOOPBACK}:{port}'
        self.prometheus = processes.Process(
            'prometheus', [sys.executable, '-m', 'bench.cloud.prometheus', port, series], root,
            ready=lambda: _answers(url))
        self.prometheus.start()
        self.prometheus.wait_ready(120)
        self.policies = root / 'policies.yaml'
        self.policies.write_text(yaml.safe_dump({'policies': [
            {'name': name, 'mode': 'spread', 'weight': 0.5, 'threshold': 0.1,
             'imbalance_query': f'bench_host_{name}', 'vm_profile_query': f'bench_vm_{name}',
             'vm_profile_label': 'uuid', 'max_migrations_per_cycle': 10}
            for name in ('cpu', 'memory')],
            **({'buffers': [{'name': name, 'aggregate': name, 'flavor': self.buffer, 'keep': 2}
                            for name in self.size.aggregates]} if self.buffer else {})}))
        self.nova_conf = self._configure(url)
        self._manage('db', 'sync', 'control')
        self.cycles_file = root / 'cycles.jsonl'
        self.cycles_file.touch()

    def _configure(self, prometheus):
        return self.services.nova_conf({
            # No service reports here: those of this cloud are up for as long as it lasts.
            'DEFAULT': {'service_down_time': 10 ** 7, 'log_file': self.services.root / 'child.log'},
            'kronos_prometheus': {'url': prometheus, 'timeout': 120},
            'kronos': {'automation': 'observe', 'aggregates': ','.join(self.size.aggregates),
                       'policies_file': self.policies, 'evaluation_interval': 604800,
                       'failover_hosts': self.failover_hosts,
                       'cycle_timeout': TIMEOUT}})

    def _manage(self, *arguments):
        done = subprocess.run(
            [*command('kronos-nova', 'kronos-manage'), '--config-file', self.nova_conf,
             *arguments], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f'exit code {done.returncode}:\n{done.stdout}{done.stderr}')

    # -- cycles

    def cycles(self, count, changed, aggregates=None):
        """Spent, of several cycles one after the other.

        :param changed: part of the providers that change between two cycles
        :param aggregates: how many of them, or None for all
        """
        os.environ['KRONOS_BENCH_CYCLES'] = str(self.cycles_file)
        files: Any = _Files([str(self.nova_conf)])
        conf = manage.load_config(files)
        chosen = self.size.aggregates[:aggregates]
        conf.set_override('aggregates', chosen, 'kronos')
        scheduler = self._scheduler(conf)
        try:
            found, last = [], None
            for number in range(count):
                if number:
                    self.touch(round(changed * self.size.hosts))
                self.services.database.query(
                    'kronos', "UPDATE cycles SET started_at = '2000-01-01'")
                # The same in clouds of all sizes: they are compared by it.
                name = f'{aggregates or "all"} aggregates, {"warm" if number else "cold"}'
                spent, last = self._one(scheduler, f'{name} {number}'.removesuffix(' 0'), last)
                found.append(spent)
            return found
        finally:
            scheduler.stop()

    def _scheduler(self, conf):
        database = db_engine.Database(db_engine.control_engine(conf))
        return cycle_scheduler.CycleScheduler(
            conf, cycle_scheduler.SchedulerPorts(
                locks=locks.AggregateLocks(None, str(self.services.root), 'bench'),
                switches=switches.SwitchBoard(database), cycles=cycles.Cycles(database),
                journal=journal.Journal(database, 'bench'), aggregate_hosts=self._aggregate_hosts,
                utcnow=clock.utcnow),
            planning_client.Command('bench.cloud.child', ['--config-file', str(self.nova_conf)]))

    def _aggregate_hosts(self):
        """Read {aggregate: names of its hosts} as a conductor does."""
        rows = self.services.database.query(
            'nova_api', 'SELECT name, host FROM aggregates JOIN aggregate_hosts '
                        'ON aggregate_hosts.aggregate_id = aggregates.id')
        found = collections.defaultdict(list)
        for row in rows:
            found[row['name']].append(row['host'])
        return found

    def _one(self, scheduler, name, last):
        before, known = self._meters(), len(self._lines())
        deadline = time.monotonic() + TIMEOUT
        while len(self._lines()) == known:
            if time.monotonic() > deadline:
                raise SystemExit('a cycle takes too long')
            scheduler.tick()
            time.sleep(0.05)
        while scheduler.child is not None:
            scheduler.tick()
            time.sleep(0.05)
        after, line = self._meters(), self._lines()[-1]
        if not line['outcomes'] or plans.FAILED in line['outcomes']:
            raise SystemExit(f'a cycle failed: {self.services.root / "child.log"}')
        # A process that goes on living has paid for the cycles before.
        is_same = last is not None and last['pid'] == line['pid']
        cpu = line['cpu'] - (last['cpu'] if is_same else 0.0)
        return Spent(
            name=name, cpu=cpu, wall=line['wall'], peak=line['peak'], by_piece=line['pieces'],
            **{key: after[key] - before[key] for key in before}), line

    def _lines(self):
        return [json.loads(line) for line in self.cycles_file.read_text().splitlines()]

    def _meters(self):
        services = self.services
        return {'placement': _cpu(services.placement.process.pid),
                'database': _cpu(services.database.process.pid),
                'requests': _count_lines(services.placement.access_log),
                'statements': services.database.statements(), 'growth': self.control_size()}

    def control_size(self):
        """KiB."""
        [row] = self.services.database.query(
            None, 'SELECT SUM(data_length + index_length) / 1024 AS size FROM '
                  "information_schema.tables WHERE table_schema = 'kronos'")
        return float(row['size'])

    def touch(self, count):
        """Let ``count`` providers change: an instance of each writes its allocation again."""
        ask = self.services.adapter
        for number in range(count):
            vm = self.cloud.vms[number]
            body = ask.get(f'/allocations/{vm.uuid}', headers=VERSION).json()
            body['consumer_type'] = 'INSTANCE'
            ask.put(f'/allocations/{vm.uuid}', headers=VERSION, json=body)

    # -- reconciler

    def reconcile(self):
        """Return a row of RECONCILER_COLUMNS, for the first check by WORKERS conductor workers of
        all recent migrations."""
        self.services.database.query(
            'kronos', 'UPDATE leases SET holder = NULL, expires_at = NULL, progress_at = NULL')
        before = self._meters()
        workers = [subprocess.Popen(
            [sys.executable, '-m', 'bench.cloud.reconciler', f'worker{number}', '--config-file',
             str(self.nova_conf)], stdout=subprocess.PIPE) for number in range(WORKERS)]
        said = [json.loads(worker.communicate(timeout=TIMEOUT)[0]) for worker in workers]
        after = self._meters()
        spent = {key: after[key] - before[key] for key in before}
        return (self.size.migrations, WORKERS, sum(each['cpu'] for each in said),
                sum(each['cpu'] for each in said if each['looked']),
                max(each['wall'] for each in said), spent['placement'], spent['database'],
                spent['requests'], spent['statements'])

    # -- audit

    def audit(self):
        """Run an audit of all allocations, and return a row of AUDIT_COLUMNS."""
        log, output = self.services.placement.access_log, self.services.root / 'audit.json'
        asked, begun = _count_lines(log), time.monotonic()
        with output.open('wb') as file:
            audit = subprocess.Popen(
                [*command('kronos-nova', 'kronos-manage'), '--config-file', self.nova_conf,
                 'allocations', 'audit', '-f', 'json'], stdout=file)
        _pid, _status, used = os.wait4(audit.pid, 0)
        found = json.loads(output.read_text())
        return (self.size.vms, time.monotonic() - begun, used.ru_utime + used.ru_stime,
                used.ru_maxrss / 1024, _count_lines(log) - asked, len(found))


@dataclasses.dataclass(frozen=True, slots=True)
class _Files:
    config_file: list
    config_dir: list | None = None


def _answers(url):
    try:
        return requests.get(url, timeout=2).ok
    except requests.ConnectionError:
        return False


def _count_lines(path):
    return pathlib.Path(path).read_bytes().count(b'\n')


def _cpu(pid):
    """CPU seconds of a process and its children."""
    service = psutil.Process(pid)
    times = [each.cpu_times() for each in (service, *service.children(recursive=True))]
    return sum(each.user + each.system for each in times)
