"""Reports of nova-schedulers."""

import datetime

import testtools

from kronos_nova.db import schedulers
from kronos_nova.db.journal import Journal
from tests.unit.db import fixtures


class SchedulersTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.schedulers = schedulers.Schedulers(self.database)

    def test_the_filter_counts_where_all_have_it(self):
        self.assertFalse(self.schedulers.all_filter())
        self.schedulers.report('a:1', True)
        self.schedulers.report('a:2', True)
        self.assertTrue(self.schedulers.all_filter())
        self.schedulers.report('b:1', False)
        self.assertFalse(self.schedulers.all_filter())

    def test_processes_that_have_ended_and_others_do_not_count(self):
        old = self.database.utcnow() - 2 * schedulers.HEARD_WITHIN
        Journal(self.database, 'b:1').heartbeat(old, schedulers.NOT_FILTERING)
        Journal(self.database, 'c:1').heartbeat(self.database.utcnow() - datetime.timedelta(
            seconds=1))
        self.schedulers.report('a:1', True)
        self.assertTrue(self.schedulers.all_filter())
        Journal(self.database, 'a:1').heartbeat(old, schedulers.FILTERING)
        self.assertFalse(self.schedulers.all_filter())
