"""Messages on the bus that Kronos does not send: one line of the log, and nothing else."""

import ddt
import fixtures
import testtools

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
