"""The cost of a move to a running guest: by libvirt alone, by stock Nova, by Kronos, on one
cloud."""

import contextlib
import dataclasses
import datetime
import math
import random
import shutil
import statistics
import time
import uuid as uuids
from typing import Any

from bench import report
from kronos_nova import clock

CONTENDERS = LIBVIRT, STOCK, KRONOS = ('virsh migrate alone', 'stock Nova', 'Kronos')
BEAT_MS = 20
GUESTS: dict[str, dict[str, Any]] = {
    'idle': {'beat_ms': BEAT_MS},
    'busy': {'beat_ms': BEAT_MS, 'memory_mb': 96, 'dirty_mb_s': 8, 'cpu': 0.1}}
"""Kinds of guests: those of :mod:`tests.e2e.box.hypervisors.guests`."""

MEMORY_MB = 256
SLOWER = 1.05
AFTER = 0.5
"""Seconds after its end for which a move may be to blame that a guest is not heard."""

DRAWS = 2000

COLUMNS = ('guest', 'moved by', 'moves', 'seconds, median', 'seconds, longest',
           'not heard ms, median', 'not heard ms, longest', 'gap against stock Nova')


def register(subparsers):
    parser = subparsers.add_parser(
        'live', help='what moves of real guests cost: libvirt alone, stock Nova, Kronos')
    parser.add_argument('--repeat', type=int, default=3,
                        help='rounds, in each of which everybody moves every guest there and back '
                             '(3)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from tests.e2e import box
    found = []
    with box.Cloud(box.Settings(
            computes=2, conductor_workers=1, driver='libvirt', kronos=True,
            nova_conf={'kronos': {'automation': 'auto', 'include_unassigned_hosts': True,
                                  'policies_file': '/nonexistent'}})) as cloud, \
            contextlib.closing(Field(cloud)) as field:
        for number in range(args.repeat):
            found += field.round(number)
        errors = field.errors()
    gaps = _gaps(found)
    ratios = [(by, _ratio(gaps, by), *_range(gaps, by)) for by in (LIBVIRT, KRONOS)]
    failures = [f'guests that Kronos moves are not heard for {row[1]:.2f} times as long as with '
                f'stock Nova, target {SLOWER}' for row in ratios
                if row[0] == KRONOS and row[1] > SLOWER]
    tables = [report.Table('moves of guests that run', COLUMNS, list(_rows(found, gaps))),
              report.Table('not heard, against stock Nova, both guests',
                           ('moved by', 'ratio of medians', 'nine in ten from', 'to'), ratios)]
    if errors:
        tables.append(report.Table(
            'seconds that were expected of moves by Kronos',
            ('moves', 'error, median', 'error, largest'),
            [(len(errors), statistics.median(errors), max(errors))]))
    return report.Report(
        tables=tuple(tables), failures=tuple(failures),
        notes=('QEMU without KVM, disks of 1 MiB that are copied too. Seconds are those from the '
               'answer to the request until Nova calls the migration completed; of virsh, those of '
               f'the command. A guest sends a datagram every {BEAT_MS} ms. The error is |expected '
               '- taken| / taken, expected by the moves of the rounds before. The ratio for both '
               f'guests is the geometric mean; its range is that of {DRAWS:,} draws from the '
               'moves, with replacement (bootstrap).',))


def _gaps(found):
    """Return {(guest, contender that moved it): [seconds without a heartbeat in each move]}."""
    return {(guest, by): [each[3] for each in found if each[:2] == (guest, by)]
            for guest in GUESTS for by in CONTENDERS}


def _rows(found, gaps):
    for guest, by in gaps:
        seconds = [each[2] for each in found if each[:2] == (guest, by)]
        missed = gaps[guest, by]
        median = statistics.median(missed)
        yield (guest, by, len(seconds), statistics.median(seconds), max(seconds), 1000 * median,
               1000 * max(missed), median / statistics.median(gaps[guest, STOCK]))


def _ratio(gaps, by):
    return math.prod(statistics.median(gaps[guest, by]) / statistics.median(gaps[guest, STOCK])
                     for guest in GUESTS) ** (1 / len(GUESTS))


def _range(gaps, by):
    drawn = random.Random(1)
    ratios = statistics.quantiles((_ratio(
        {key: drawn.choices(missed, k=len(missed)) for key, missed in gaps.items()}, by)
        for _draw in range(DRAWS)), n=20)
    return ratios[0], ratios[-1]


class Field:
    """Two hosts, and a guest of each kind on the first of them: one of Nova's, and a copy of it of
    which only libvirt knows."""

    def __init__(self, cloud):
        from kronos_nova.db import engine as db_engine
        from kronos_nova.db import journal
        from tests.e2e.box.hypervisors import guests
        from tests.e2e.box.hypervisors import heartbeats
        self._cloud, self._hosts = cloud, cloud.hypervisors.hosts
        self._database = db_engine.Database(
            db_engine.create_engine(cloud.database.url('kronos')))
        self._journal = journal.Journal(self._database, 'bench')
        self._has_kronos = True
        self._taken = []
        cloud.client.create_flavor('guest', vcpus=1, ram=MEMORY_MB, disk=0)
        made = guests.Guests(cloud.client)
        source, _destination = self._hosts
        self._servers = {name: cloud.client.create(made.image(**work), name, flavor='guest',
                                                   host=source) for name, work in GUESTS.items()}
        cloud.client.wait_active(list(self._servers.values()), 300)
        self._copies = {name: self._copy(uuid) for name, uuid in self._servers.items()}
        self._heartbeats = heartbeats.Heartbeats(
            {name: host.guests for name, host in self._hosts.items()})
        self._heartbeats.start()
        for uuid in (*self._servers.values(), *self._copies.values()):
            self._heard(uuid)

    def close(self):
        self._heartbeats.stop()
        self._database.engine.dispose()

    def round(self, number):
        """Move each guest by each contender, and yield (guest, contender, seconds, longest gap
        between heartbeats)."""
        for by, move in ((LIBVIRT, self._by_libvirt), (STOCK, self._by_nova),
                         (KRONOS, self._by_kronos)):
            if by != LIBVIRT:
                self._load_kronos(by == KRONOS)
            for guest in GUESTS:
                for source, destination in (tuple(self._hosts), tuple(self._hosts)[::-1]):
                    uuid, begun, seconds = move(guest, source, destination, number)
                    time.sleep(AFTER)
                    yield guest, by, seconds, self._heartbeats.longest_gap(uuid, begun)
                    if self._heard(uuid) != destination:
                        raise SystemExit(f'{guest}, moved by {by}, is not on {destination}')

    def _by_libvirt(self, guest, source, destination, _number):
        uuid = self._copies[guest]
        self._folder(destination, uuid)
        target = self._hosts[destination].address
        begun = time.monotonic()
        self._hosts[source].virsh(
            'migrate', '--live', '--p2p', '--copy-storage-all', uuid,
            f'qemu+tcp://{target}/system', '--migrateuri', f'tcp://{target}')
        return uuid, begun, time.monotonic() - begun

    def _by_nova(self, guest, _source, destination, _number):
        uuid = self._servers[guest]
        known = self._newest_migration(uuid)
        self._cloud.client.live_migrate(uuid, destination)
        begun = time.monotonic()
        return uuid, begun, self._completed(uuid, known) - begun

    def _by_kronos(self, guest, source, destination, number):
        from tests.e2e.executor import base
        uuid = self._servers[guest]
        known = self._newest_migration(uuid)
        expected = self._expected(uuid, source, destination)
        plan = base.start(self._journal, [dataclasses.replace(
            base.planned(uuid, source, destination, 1), memory_mb=MEMORY_MB)])
        ended = self._completed(uuid, known)
        while self._journal.aggregates_with_open_plans():
            time.sleep(0.1)
        [move] = self._journal.moves(plan)
        assert move.requested_at is not None and move.finished_at is not None
        requested = move.requested_at.timestamp()
        begun = requested - (time.time() - time.monotonic())
        if number:
            self._taken.append((expected, (move.finished_at - move.requested_at).total_seconds()))
        return uuid, begun, ended - begun

    def _load_kronos(self, wanted):
        if wanted != self._has_kronos:
            self._cloud.load_kronos(wanted)
            self._has_kronos = wanted

    def errors(self):
        """Return the relative errors of the predicted durations of the moves after the first
        round."""
        return [abs(expected - taken) / taken for expected, taken in self._taken]

    def _expected(self, uuid, source, destination):
        """Return the seconds that a cycle would predict for a move of the guest now."""
        from kronos_nova.pacing import migration_history
        tries = self._journal.tries(clock.utcnow() - datetime.timedelta(days=1))
        return migration_history.MigrationHistory(tries).seconds(
            migration_history.Guest(uuid=uuid, memory_mb=MEMORY_MB), source, destination)

    # -- Nova

    def _newest_migration(self, uuid):
        [row] = self._cloud.database.query(
            'nova_cell1', 'SELECT MAX(id) AS id FROM migrations WHERE instance_uuid = %s', uuid)
        return row['id'] or 0

    def _completed(self, uuid, known, timeout=300):
        """Return when a server's migration after that one was completed."""
        deadline = time.monotonic() + timeout
        while True:
            now = time.monotonic()
            rows = self._cloud.database.query(
                'nova_cell1', 'SELECT status FROM migrations WHERE instance_uuid = %s AND id > %s',
                uuid, known)
            status = rows[-1]['status'] if rows else None
            if status == 'completed':
                return now
            if status in ('error', 'failed', 'cancelled') or now > deadline:
                raise SystemExit(f'a migration is {status}: {self._cloud.root}/log')
            time.sleep(0.05)

    # -- libvirt

    def _copy(self, server):
        """Start a copy of a guest and return the uuid of the copy."""
        source, _destination = self._hosts
        uuid = str(uuids.uuid4())
        domain = self._hosts[source].virsh('dumpxml', server)
        name = self._cloud.client.server(server)['OS-EXT-SRV-ATTR:instance_name']
        folder = self._folder(source, uuid)
        for file in (self._hosts[source].instances / server).iterdir():
            if file.name != 'console.log':
                shutil.copyfile(file, folder / file.name)
        path = folder / 'domain.xml'
        path.write_text(domain.replace(server, uuid).replace(name, f'copy-{name}'))
        self._hosts[source].virsh('create', str(path))
        return uuid

    def _folder(self, host, uuid):
        """Return where a copy has its files; on a host to come to, with those of the other host."""
        folder = self._hosts[host].instances / uuid
        folder.mkdir(exist_ok=True)
        for other in self._hosts.values():
            there = other.instances / uuid
            if there != folder and there.exists():
                for name in ('disk', 'kernel', 'ramdisk'):
                    shutil.copyfile(there / name, folder / name)
        return folder

    def _heard(self, uuid, timeout=120):
        """Return where a guest is heard now."""
        since = time.monotonic()
        while not (beats := self._heartbeats.of(uuid, since)):
            if time.monotonic() > since + timeout:
                raise SystemExit(f'{uuid} is not heard')
            time.sleep(0.1)
        return beats[-1].host
