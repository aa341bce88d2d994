"""Drains in a database that compares text without regard to case, as most are set up."""

import datetime

from kronos_nova.db import drains as db_drains
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.drain import states as drains
from tests.functional.db import test_mariadb


class DrainsTest(test_mariadb.MariaDBTestCase):
    def test_another_spelling_is_another_host(self):
        engine = self.new_engine()
        migrate.sync(engine, migrate.CONTROL)
        known = db_drains.Drains(db_engine.Database(engine))
        known.request([drains.Drain(
            uuid='drain', host='compute1', aggregate='gpu', state=drains.REQUESTED,
            requested_by='jane',
            requested_at=datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC))])
        self.assertEqual('drain', known.latest('compute1').uuid)
        for name in ('COMPUTE1', 'compute1 '):
            self.assertIsNone(known.latest(name))
