"""A cloud whose plans are written by the test, and what has to be true once they have ended."""

import collections
import contextlib
import datetime
import os
import time

import testtools

from kronos_nova import clock
from kronos_nova.db import cooldowns
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal as db_journal
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from tests.e2e import box
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import history

MOVES = int(os.environ.get('KRONOS_E2E_MOVES', 100))
CRASHES = int(os.environ.get('KRONOS_E2E_CRASHES', 50))
"""Numbers of moves and crashes in the longest of these tests."""

CONCURRENCY = os.environ.get('KRONOS_E2E_CONCURRENCY', 'auto')
"""Nova's ``concurrency_backend``."""

KEEP = bool(os.environ.get('KRONOS_E2E_KEEP'))
"""True if the clouds' files, logs among them, are kept."""

CAPS = moves.Caps(total=6, per_source=2, per_destination=2)
EXECUTOR = {
    'max_concurrent_migrations': CAPS.total, 'max_concurrent_per_source': CAPS.per_source,
    'max_concurrent_per_destination': CAPS.per_destination, 'poll_interval': 0.5,
    'retry_interval': 2, 'max_retries': 2, 'request_grace': 30, 'message_grace': 5,
    'worker_timeout': 10, 'migration_timeout': 120}


def planned(uuid, source, destination, order, depends_on=()):
    return plans.PlannedMove(order=order, phase=plans.SPREAD, instance_uuid=uuid, source=source,
                             destination=destination, memory_mb=64, combined_after=0.0,
                             reason='the test wants it', depends_on=depends_on)


def start(journal, chosen, start_interval=0.0, age=1800):
    """Let a plan of these moves run; its uuid."""
    report = plans.AggregateReport(
        name=snapshot.UNASSIGNED, outcome=plans.PLANNED, mode='spread', planner='test',
        combined_before=1.0, combined_after=0.0, moves=tuple(chosen))
    now = clock.utcnow()
    return journal.record_plan(report, plans.EXECUTING, now,
                               now + datetime.timedelta(seconds=age), start_interval)


class ExecutorTestCase(testtools.TestCase):
    """``cloud`` runs for all tests of a class; its conductors have nothing to plan."""

    computes, conductors, workers = 4, 1, 2
    driver, storage = 'fake', 'local'
    alerting = False
    root = None
    executor = {}
    nova_conf = {}
    keystone = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        conf = {'DEFAULT': {'max_concurrent_live_migrations': CAPS.per_source},
                'kronos': {'automation': 'auto', 'include_unassigned_hosts': True,
                           'policies_file': '/nonexistent', 'instance_quarantine_seconds': 3600,
                           'restraint': 0},
                'kronos_executor': {**EXECUTOR, **cls.executor}}
        for section, options in cls.nova_conf.items():
            conf.setdefault(section, {}).update(options)
        cls.cloud = box.Cloud(box.Settings(
            computes=cls.computes, conductors=cls.conductors, conductor_workers=cls.workers,
            kronos=True, keystone=cls.keystone, alerting=cls.alerting, concurrency=CONCURRENCY,
            driver=cls.driver, storage=cls.storage, migration_seconds=1.0, vcpus=64,
            nova_conf=conf, root=cls.root, keep=KEEP))
        cls.prepare(conf)
        try:
            cls.cloud.start()
            cls.cloud.client.create_flavor('m1.small', vcpus=1, ram=64)
            cls.database = db_engine.Database(
                db_engine.create_engine(cls.cloud.database.url('kronos')))
        except BaseException:
            cls.cloud.stop()
            raise

    @classmethod
    def prepare(cls, conf):
        """Called before the cloud starts, to add to nova.conf what needs its root or addresses."""

    @classmethod
    def tearDownClass(cls):
        cls.database.engine.dispose()
        cls.cloud.stop()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.journal = db_journal.Journal(self.database, 'tester')
        self.cooldowns = cooldowns.Cooldowns(self.database)
        self.hosts = sorted(self.cloud.settings.hosts())
        self.orders(default={'seconds': 1.0})
        self.addCleanup(self._end_open_plans)

    def orders(self, **faults):
        """Return how live migrations go from now on."""
        self.cloud.nova.set_faults(faults)

    def boot(self, count, host=None):
        """Servers, spread over the hosts in turn or all on one; [(uuid, host)]."""
        hosts = [host or self.hosts[number % len(self.hosts)] for number in range(count)]
        uuids = [self.cloud.client.create(self.cloud.image, host=each) for each in hosts]
        self.cloud.client.wait_active(uuids, 60 + 5 * count)
        self.addCleanup(self._delete, uuids)
        return list(zip(uuids, hosts, strict=True))

    def _delete(self, uuids):
        for uuid in uuids:
            with contextlib.suppress(Exception):
                self.cloud.client.delete(uuid)
        wait_for(lambda: not set(uuids) & {s['id'] for s in self.cloud.client.servers()}, 120,
                 'the servers are not gone', interval=0.5)

    def _end_open_plans(self):
        for move in self.journal.moves(states=(moves.PLANNED, *moves.IN_FLIGHT)):
            with contextlib.suppress(Exception):
                self.journal.request_abort(move.uuid, 'jane', clock.utcnow())
        self.wait_ended(60)

    def round_robin(self, servers):
        """Moves of every server to the next host."""
        following = dict(zip(self.hosts, [*self.hosts[1:], self.hosts[0]], strict=True))
        return [planned(uuid, host, following[host], order)
                for order, (uuid, host) in enumerate(servers, 1)]

    def start(self, chosen, **options):
        return start(self.journal, chosen, **options)

    def wait_ended(self, timeout):
        """Wait until no plan is open."""
        wait_for(lambda: not self.journal.aggregates_with_open_plans(), timeout,
                 lambda: 'moves have not ended: ' + '; '.join(
                     f'{m.instance_uuid} {m.state} {m.owner} {m.error}'
                     for m in self.journal.moves(states=(moves.PLANNED, *moves.IN_FLIGHT))),
                 interval=0.5)

    def carry_out(self, chosen, timeout=180, **options):
        """Run a plan to its end; its MoveRecords in order."""
        uuid = self.start(chosen, **options)
        self.wait_ended(timeout)
        return self.journal.moves(uuid)

    def wait_state(self, move_uuid, state, timeout=60):
        return wait_for(lambda: self.journal.move(move_uuid).state == state, timeout,
                        lambda: f'it is {self.journal.move(move_uuid)}', interval=0.2)

    # -- what has to be true

    def assert_well_done(self, done):
        """Every move completed at its first try; Nova has one migration for each."""
        self.assertEqual({moves.COMPLETED}, {move.state for move in done},
                         [(m.state, m.error) for m in done if m.state != moves.COMPLETED])
        self.assert_asked_once_a_try(done)
        self.assert_allocations_exact()

    def assert_asked_once_a_try(self, done):
        """Nova has for an instance no more migrations than the journal has requests, and every one
        of the journal's migrations is among them."""
        asked = collections.Counter()
        for move in self.journal.moves():
            asked[move.instance_uuid] += history.requests(self.journal.events(move.uuid))
        for move in done:
            ours = self.cloud.client.migrations(instance_uuid=move.instance_uuid)
            self.assertLessEqual(len(ours), asked[move.instance_uuid], f'{move}: {ours}')
            if move.migration_uuid:
                self.assertIn(move.migration_uuid, {each['uuid'] for each in ours})

    def assert_caps_kept(self, done, caps=CAPS):
        events = {move.uuid: self.journal.events(move.uuid) for move in done}
        self.assertEqual([], history.cap_violations(done, events, caps))

    def assert_in_order(self, done, caps=CAPS):
        events = {move.uuid: self.journal.events(move.uuid) for move in done}
        self.assertEqual([], history.overtakings(done, events, caps))

    def assert_allocations_exact(self, timeout=30, but_for=()):
        """Each instance holds one allocation where it runs; no migration holds any.

        :param but_for: uuids of instances that Nova goes on migrating, as it believes
        """
        def wrong():
            servers = self.cloud.client.servers()
            expected = {s['id']: [s['OS-EXT-SRV-ATTR:host']] for s in servers
                        if s['id'] not in but_for}
            moving = {self.cloud.client.migration(uuid)['uuid'] for uuid in but_for}
            held = {consumer: where for consumer, where in self.cloud.client.consumers().items()
                    if consumer not in moving | {*but_for}}
            return {consumer: (expected.get(consumer), held.get(consumer))
                    for consumer in {*expected, *held}
                    if expected.get(consumer) != held.get(consumer)}
        deadline = time.monotonic() + timeout
        while found := wrong():
            if time.monotonic() > deadline:
                self.fail(f'consumer: (where it is, what it holds): {found}')
            time.sleep(1)
