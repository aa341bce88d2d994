"""The types of columns."""

import datetime

import sqlalchemy as sa
import testtools
from oslo_db import exception as db_exc

from kronos_nova.db import leases
from tests.unit.db import fixtures

NOON = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
NOON_IN_BERLIN = NOON.astimezone(datetime.timezone(datetime.timedelta(hours=1)))


class TimestampTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.leases = leases.Leases(self.database, 'worker', lambda: NOON)
        self.leases.hold(leases.RECONCILER, 60)

    def kept(self, time):
        self.leases.advance(leases.RECONCILER, time)
        with self.database.reader() as session:
            return session.scalar(sa.text('SELECT progress_at FROM leases WHERE name = :name'),
                                  {'name': leases.RECONCILER})

    def test_it_comes_back_with_its_zone(self):
        self.kept(NOON_IN_BERLIN)
        found = self.leases.progress(leases.RECONCILER)
        self.assertEqual((NOON, datetime.UTC), (found, found.tzinfo))

    def test_it_is_kept_as_databases_always_had_it(self):
        self.assertEqual('2026-11-20 12:00:00.000001',
                         self.kept(NOON + datetime.timedelta(microseconds=1)))
        self.assertEqual('2026-11-20 12:00:00.000000', self.kept(NOON_IN_BERLIN))
        self.assertIsNone(self.kept(None))

    def test_a_time_without_a_zone_is_refused(self):
        error = self.assertRaises(db_exc.DBError, self.kept, NOON.replace(tzinfo=None))
        self.assertIn('has no time zone', str(error))
        self.leases.clock = lambda: NOON.replace(tzinfo=None)
        self.assertRaises(db_exc.DBError, self.leases.hold, leases.RECONCILER, 60)
