"""Which transactions are run again."""

import testtools
from oslo_db import exception as db_exc

from kronos_nova.db.retry import retried


class RetriedTest(testtools.TestCase):
    def runs(self, error):
        """How often a transaction is run that fails once."""
        runs = []

        @retried
        def transaction():
            runs.append(1)
            if len(runs) == 1:
                raise error

        transaction()
        return len(runs)

    def test_what_lost_against_another_is_run_again(self):
        self.assertEqual(2, self.runs(db_exc.DBDeadlock()))

    def test_a_savepoint_that_went_with_a_deadlock_is_a_deadlock(self):
        error = db_exc.DBError(Exception(1305, 'SAVEPOINT sa_savepoint_1 does not exist'))
        error.cause = db_exc.DBDeadlock()
        self.assertEqual(2, self.runs(error))

    def test_any_other_error_is_raised(self):
        self.assertRaises(db_exc.DBError, self.runs, db_exc.DBError(Exception('no such column')))
