"""The log about cells that are left out of a reading."""

import types

import fixtures
import testtools
from nova import context as nova_context
from nova import exception as nova_exception
from oslo_db import exception as db_exc

from kronos_nova.plugin import cells

CELL = types.SimpleNamespace(uuid='uuid-of-a', name='a')


class AskTest(testtools.TestCase):
    def said(self, answer):
        """The log, where cell a answers with ``answer``."""
        log = self.useFixture(fixtures.FakeLogger())
        self.patch(nova_context, 'scatter_gather_cells',
                   lambda context, wanted, patience, read: {CELL.uuid: answer})
        self.assertEqual(({}, [CELL]), cells.ask(None, [CELL], None))
        return log.output

    def test_a_database_that_is_silent_is_named(self):
        for answer in (nova_context.did_not_respond_sentinel,
                       db_exc.DBConnectionError('gone away'), nova_exception.CellTimeout()):
            self.assertIn('The database of cell a does not answer', self.said(answer))

    def test_a_faulty_record_is_not_called_a_silent_database(self):
        for error in (TypeError('no JSON'), nova_exception.MigrationNotFound(migration_id=7)):
            said = self.said(error)
            self.assertIn(f'Cell a could not be read: {type(error).__name__}: {error}', said)
            self.assertNotIn('does not answer', said)

    def test_an_answer_is_returned(self):
        log = self.useFixture(fixtures.FakeLogger())
        self.patch(nova_context, 'scatter_gather_cells',
                   lambda context, wanted, patience, read: {CELL.uuid: 5})
        self.assertEqual(({CELL.uuid: 5}, []), cells.ask(None, [CELL], None))
        self.assertEqual('', log.output)
