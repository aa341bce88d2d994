"""Stops that are given while the control database does not answer."""

import pathlib

import fixtures
import testtools

from kronos_nova.db import stopping
from kronos_nova.db import switches
from kronos_nova.executor import broker
from kronos_nova.executor import pending_stops
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from tests.unit.db import fixtures as db_fixtures
from tests.unit.executor import test_executor
from tests.unit.executor.fakes_executor import Worker


def stop(now, aggregate=automation.EVERY, let_finish=False, who='jane'):
    return pending_stops.PendingStop(automation.Switch(
        kind=automation.PAUSE, aggregate=aggregate, value='stop', set_at=now, set_by=who,
        reason='strange load'), let_finish)


class StopFileTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = db_fixtures.Clock()()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'kronos.stop')
        self.stops = pending_stops.PendingStops(str(self.path))

    def again(self):
        """The stops as another process of the host reads them."""
        return pending_stops.PendingStops(str(self.path))

    def test_a_stop_is_that_of_every_process_of_the_host_until_it_is_taken_back(self):
        self.assertIsNone(self.again().hold('gpu'))
        given = stop(self.now, let_finish=True)
        self.stops.add(given)
        self.assertEqual({'*': given}, self.again().read())
        self.assertEqual('Kronos is stopped: stop by jane (strange load)',
                         self.again().hold('gpu'))
        self.assertEqual([given], self.again().remove(automation.EVERY))
        self.assertFalse(self.path.exists())

    def test_aggregates_are_stopped_and_resumed_one_by_one(self):
        self.stops.add(stop(self.now, 'gpu'))
        self.stops.add(stop(self.now, 'db'))
        self.assertIsNone(self.stops.hold('web'))
        self.stops.remove('gpu')
        self.assertEqual((None, 'db'), (self.stops.hold('gpu'), *self.stops.read()))

    def test_a_file_that_cannot_be_read_stops_everything(self):
        for text in (b'', b'\xff', b'[]x', b'[{}]', b'{"a": 1}', b'null',
                     b'[{"aggregate": "*", "set_by": "jane", "set_at": "2026-11-20T25"}]'):
            self.path.write_bytes(text)
            self.assertIn('a file that cannot be read', self.stops.hold('gpu'), text)
        self.stops.remove(automation.EVERY)
        self.assertFalse(self.path.exists())

    def test_a_stop_that_cannot_be_written_is_in_force_in_the_process(self):
        stops = pending_stops.PendingStops(str(self.path.parent / 'missing' / 'kronos.stop'))
        self.assertRaises(OSError, stops.add, stop(self.now))
        self.assertIsNotNone(stops.hold('gpu'))

    def test_the_messages_of_a_stop_and_of_its_end(self):
        endpoint = broker.StopEndpoint(self.stops)
        endpoint.stop_moves({}, stop=stop(self.now).to_json(), newer='argument')
        self.assertIn('jane', self.again().hold('gpu'))
        endpoint.resume_moves({}, aggregate=automation.EVERY)
        self.assertIsNone(self.stops.hold('gpu'))

    def test_a_message_that_is_no_stop_is_passed_over(self):
        endpoint = broker.StopEndpoint(self.stops)
        good = stop(self.now).to_json()
        for wrong in (None, [], {}, good | {'set_at': 'now'}, good | {'aggregate': '\n' * 999},
                      good | {'set_by': None}):
            endpoint.stop_moves({}, stop=wrong)
        endpoint.resume_moves({}, aggregate={})
        self.assertEqual({}, self.stops.read())


class WorkerTest(test_executor.ExecutorTestCase):
    def setUp(self):
        super().setUp()
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'kronos.stop')
        self.stops = pending_stops.PendingStops(str(path))
        self.worker = Worker(self.journal, self.nova, self.cooldowns, test_executor.OPTIONS,
                             self.clock, stops=self.stops)
        self.board = switches.SwitchBoard(self.journal.database)

    def settle(self, stops=None):
        pending_stops.settle(stops or self.stops, self.journal.database, 'one')

    def test_no_move_is_started_before_it_is_taken_back(self):
        self.plan()
        self.stops.add(stop(self.clock()))
        for _ in range(3):
            self.assertEqual(moves.PLANNED, self.tick())
        self.assertEqual([], self.nova.requests)
        self.stops.remove(automation.EVERY)
        self.assertNotEqual(moves.PLANNED, self.tick())

    def test_a_move_that_was_dispatched_before_is_not_begun(self):
        self.plan()
        self.worker.is_heard = False
        self.worker.dispatcher.tick()
        self.stops.add(stop(self.clock()))
        self.worker.executor.accept(self.move().uuid)
        self.assertEqual((moves.PLANNED, []), (self.move().state, self.nova.requests))

    def test_what_is_in_progress_is_aborted_when_the_database_has_the_stop(self):
        self.plan()
        self.tick()
        self.nova.says('running')
        self.stops.add(stop(self.clock()))
        self.settle()
        self.tick()
        self.assertEqual(['vm1'], self.nova.aborts)
        [found] = self.board.read().pauses[automation.EVERY]
        self.assertEqual(('stop', 'jane', 'strange load'),
                         (found.value, found.set_by, found.reason))
        self.assertEqual({}, self.stops.read())

    def test_let_finish_is_kept(self):
        self.plan()
        self.tick()
        self.nova.says('running')
        self.stops.add(stop(self.clock(), let_finish=True))
        self.settle()
        self.tick()
        self.assertEqual([], self.nova.aborts)

    def test_a_stop_that_other_hosts_have_too_does_not_come_after_the_resume(self):
        other = pending_stops.PendingStops()
        for each in (self.stops, other):
            each.add(stop(self.clock()))
        self.settle()
        self.board.resume(stop(self.clock()).switch)
        self.settle(other)
        self.assertEqual(({}, {}), (self.board.read().pauses, other.read()))

    def test_a_stop_stays_in_force_while_the_database_refuses_it(self):
        def refuse(*_args):
            raise OSError('read-only')
        self.stops.add(stop(self.clock()))
        self.patch(stopping.Stopping, 'stop', refuse)
        self.assertRaises(OSError, self.settle)
        self.assertIsNotNone(self.stops.hold('gpu'))
