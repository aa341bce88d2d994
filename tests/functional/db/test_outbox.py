"""Notifications that many workers write and number at once, on a real server."""

import threading

from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.db import outbox
from tests.functional.db import test_mariadb
from tests.unit.db import notification_story

WRITERS, NUMBERERS, TIMES = 4, 2, 25


class OutboxTest(test_mariadb.MariaDBTestCase):
    def test_each_has_a_number_of_its_own_and_none_is_left_out(self):
        engine = self.new_engine()
        migrate.sync(engine, migrate.CONTROL)
        database = db_engine.Database(engine, announces=True)
        found, failures, is_over = outbox.Outbox(database), [], threading.Event()

        def guarded(work, *arguments):
            try:
                work(*arguments)
            except Exception as error:
                failures.append(error)

        def write(number):
            story = notification_story.Story(database)
            for time in range(TIMES):
                story.switch('pause', 'pause', f'aggregate{number}', f'reason {time}')

        def number():
            while not is_over.wait(0.01):
                found.number()

        writers = [threading.Thread(target=guarded, args=(write, each)) for each in range(WRITERS)]
        numberers = [threading.Thread(target=guarded, args=(number,)) for _ in range(NUMBERERS)]
        for thread in (*writers, *numberers):
            thread.start()
        for thread in writers:
            thread.join()
        is_over.set()
        for thread in numberers:
            thread.join()
        found.number()

        self.assertEqual([], failures)
        self.assertEqual([*range(1, WRITERS * TIMES + 1)],
                         [each.sequence for each in found.waiting(1000)])
