"""Messages on the bus that Kronos does not send: one line of the log, and nothing else."""

import logging
import socket
import threading
import time
from unittest import mock

import ddt
import fixtures
import oslo_messaging as messaging
import testtools
from oslo_config import cfg
from oslo_messaging import conffixture

from kronos_nova import exception
from kronos_nova.executor import broker

NONSENSE = (None, 5, 'text', [], {}, {'move_uuid': None}, {'move_uuid': ['a']},
            {'move_uuid': 'a' * 100_000}, {'move_uuid': {'a': 1}})


@ddt.ddt
class EndpointsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.named = []
        self.tasks = broker.TaskEndpoint(self.named.append)
        self.results = broker.ResultEndpoint(self.named.append)

    def assert_one_line(self, words):
        [line] = self.log.output.splitlines()
        self.assertIn(words, line)
        self.assertLess(len(line), 500)
        self.assertEqual([], self.named)

    @ddt.data(*NONSENSE)
    def test_no_task(self, task):
        self.tasks.execute_migration({}, task=task)
        self.assert_one_line('A message that asks for a move is invalid')

    @ddt.data(*NONSENSE)
    def test_no_result(self, payload):
        self.results.info({}, 'one\x1b[2J\n2026 INFO forged', 'migration.completed', payload, {})
        self.assert_one_line('is ignored')
        self.assertNotIn('\x1b', self.log.output)

    def test_a_result_of_a_version_to_come(self):
        self.results.info({}, 'one', 'migration.completed',
                          {'version': '2.0', 'move_uuid': 'a', 'final': True}, {})
        self.assert_one_line('is too old for that version')

    def test_a_result_of_a_move_that_there_is_not(self):
        def settle(uuid):
            raise exception.MoveNotFound(move=uuid)

        self.results = broker.ResultEndpoint(settle)
        self.results.info({}, 'one', 'migration.completed',
                          {'version': '1.0', 'move_uuid': 'a', 'final': True}, {})
        self.assert_one_line('there is no move a')

    def test_what_a_newer_kronos_adds_is_left_unread(self):
        self.tasks.execute_migration({}, task={'version': '1.7', 'move_uuid': 'a', 'more': 1},
                                     urgency='high')
        self.assertEqual(['a'], self.named)


class ListeningTest(testtools.TestCase):
    """The end of the message servers of a process, one for each aggregate."""

    def listening(self, *stops):
        servers = [mock.Mock() for _ in stops]
        for server, stop in zip(servers, stops, strict=True):
            server.stop = stop
        return broker.Listening(servers), servers

    def test_servers_stop_at_the_same_time(self):
        together = threading.Barrier(20, timeout=10)
        listening, servers = self.listening(*[together.wait] * 20)
        listening.stop()
        self.assertEqual([1] * 20, [server.wait.call_count for server in servers])

    def test_a_server_that_hangs_or_fails_is_reported_and_delays_nothing(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        self.patch(broker, 'STOP_SECONDS', 0.2)
        ended = threading.Event()
        self.addCleanup(ended.set)
        listening, servers = self.listening(
            lambda: ended.wait(60), mock.Mock(side_effect=OSError('gone')), mock.Mock())
        began = time.monotonic()
        listening.stop()
        self.assertLess(time.monotonic() - began, 10)
        self.assertIn('1 of 3 message servers have not stopped', log.output)
        self.assertIn('gone', log.output)
        servers[2].wait.assert_called_once_with()


class SendingTest(testtools.TestCase):
    """Messages while the broker is away, from a process that has no connection to it yet."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        conf = cfg.ConfigOpts()
        self.useFixture(conffixture.ConfFixture(conf))
        conf([], project='test')
        conf.set_override('transport_url', f'rabbit://a:b@127.0.0.1:{_closed_port()}/')
        self.transports = broker.Transports(conf)

    def test_a_task_that_cannot_be_sent_is_reported_and_sent_again_later(self):
        move = mock.Mock(aggregate='gpu', uuid='a-move')
        self.patch(broker.messages, 'task', lambda _move: {})
        broker.TaskSender(self.transports).cast(move)
        self.assertIn('Move a-move could not be sent to the executors', self.log.output)
        self.assertIn('refused', self.log.output)

    def test_a_message_to_all_executors_that_cannot_be_sent_is_an_error_of_messaging(self):
        self.assertRaises(messaging.MessageDeliveryFailure, broker.fan_out, self.transports,
                          ['gpu'], 'stop_moves')


def _closed_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
