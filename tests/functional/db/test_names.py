"""Names and users of MariaDB, which compares texts without regard to case."""

import datetime

from kronos_nova import clock
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.db import server_names
from kronos_nova.db import switches
from kronos_nova.objects import automation
from tests.functional.db import test_mariadb


class NamesTest(test_mariadb.MariaDBTestCase):
    def setUp(self):
        super().setUp()
        engine = self.new_engine()
        migrate.sync(engine, migrate.CONTROL)
        self.database = db_engine.Database(engine)

    def test_a_name_that_is_exact(self):
        names = server_names.ServerNames(self.database)
        names.save({'a': 'web', 'b': 'Web', 'c': 'Db'}, clock.utcnow())
        self.assertEqual(['b'], names.find('Web'))
        self.assertEqual(['c'], names.find('db'))
        self.assertEqual(['c'], names.find('C'))

    def test_pauses_of_two_users(self):
        board, now = switches.SwitchBoard(self.database), clock.utcnow()
        for seconds, user in enumerate(('jane', 'Jane')):
            board.set(self.pause(user, 'pause', now + datetime.timedelta(seconds=seconds)))
        [ended] = board.resume(self.pause('Jane', '', now))
        self.assertEqual('Jane', ended.set_by)

    def pause(self, user, value, at):
        return automation.Switch(kind=automation.PAUSE, aggregate=automation.EVERY, value=value,
                                 set_at=at, set_by=user)
