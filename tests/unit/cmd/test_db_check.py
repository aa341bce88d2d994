"""``kronos-manage db check``: what it shows and its exit codes."""

import datetime

import sqlalchemy as sa

from kronos_nova.cmd import db
from kronos_nova.db import models
from tests.unit.cmd import test_automation

DAY = datetime.timedelta(days=1)


class CheckCommandTest(test_automation.OperatorTestCase):
    def quarantine(self):
        with self.database.writer() as session:
            session.add(models.QuarantineRow(instance_uuid='vm', reason='',
                                             created_at=self.database.utcnow() + DAY))

    def check(self, *words, expected):
        self.manage('db', 'check', *words, expected=expected)

    def test_a_fault_is_shown_and_nothing_changed_before_it_is_fixed(self):
        self.check(expected=db.CLEAN)
        self.quarantine()
        self.check(expected=db.FOUND)
        self.check(expected=db.FOUND)
        self.check('--fix', expected=db.CLEAN)
        self.check(expected=db.CLEAN)

    def test_the_rows_and_the_remedy_are_named(self):
        self.quarantine()
        said = self.manage('db', 'check', expected=db.FOUND)
        for word in ('quarantines', 'a time in the future', 'the time becomes now', 'False'):
            self.assertIn(word, said)

    def test_what_only_an_operator_can_put_right(self):
        self.run_plan(('vm1', 'a', 'b'))
        with self.database.writer() as session:
            session.add(models.DrainRow(
                uuid='d', host='a', aggregate='gpu', state='lost', requested_by='jane',
                requested_at=self.database.utcnow(), reason='', with_stopped=False, keep_spare=0,
                avoid='[]', blocked='{}', problem=''))
        self.check('--fix', expected=db.LEFT)

    def test_a_database_that_cannot_be_looked_at(self):
        with self.database.writer() as session:
            session.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        self.check(expected=1)
