"""Log messages of parts that cannot work for a while."""

import fixtures
import sqlalchemy.exc
import testtools
from oslo_config import cfg
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.engine import guard


class GuardTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.guard = guard.Guard()
        self.problem = None

    def work(self):
        if self.problem:
            raise self.problem

    def run_parts(self, *parts):
        for part in parts:
            self.guard.run(part, self.work)

    def lines(self):
        return self.logger.output.splitlines()

    def test_an_outage_of_the_database_has_one_line_when_it_begins_and_one_when_it_ends(self):
        for attempt in range(5):
            self.problem = db_exc.DBConnectionError(
                f'(2003, "Can\'t connect, attempt {attempt}")\n[SQL: SELECT 1]')
            self.run_parts('executor', 'planner', 'reconciler')
        [line] = self.lines()
        self.assertEqual('Kronos waits, because a database does not answer: '
                         '(2003, "Can\'t connect, attempt 0")', line)
        self.problem = None
        for _ in range(5):
            self.run_parts('executor', 'planner', 'reconciler')
        self.assertEqual([line, 'Kronos continues, because the database answers again.'],
                         self.lines())

    def test_errors_that_oslo_db_does_not_convert_are_an_outage_of_the_database(self):
        self.problem = sqlalchemy.exc.TimeoutError('QueuePool limit of size 5 reached')
        self.run_parts('executor', 'planner', 'executor')
        self.assertEqual(['Kronos waits, because a database does not answer: QueuePool limit of '
                          'size 5 reached'], self.lines())

    def test_the_next_outage_is_reported_too(self):
        for problem in (db_exc.DBConnectionError('gone'), None) * 2:
            self.problem = problem
            self.run_parts('executor')
        self.assertEqual(4, len(self.lines()))

    def test_what_an_operator_has_to_fix_is_reported_for_each_part_until_it_is(self):
        self.problem = exception.PlacementError(problem='out of order')
        self.run_parts('executor', 'planner', 'executor', 'planner')
        self.problem = None
        self.run_parts('executor', 'executor')
        self.assertEqual(
            ['The executor of Kronos waits until this is corrected: Placement: out of order',
             'The planner of Kronos waits until this is corrected: Placement: out of order',
             'The executor of Kronos works again.'], self.lines())

    def test_a_value_that_oslo_config_refuses_when_it_is_read_is_to_be_fixed(self):
        self.problem = cfg.ConfigFileValueError('Value for option cooldown is not valid')
        self.run_parts('planner', 'planner')
        self.assertEqual(['The planner of Kronos waits until this is corrected: Value for option '
                          'cooldown is not valid'], self.lines())
