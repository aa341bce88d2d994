"""Totals that many workers add to at once."""

import threading

import sqlalchemy as sa

from kronos_nova.db import counters
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.db import models
from kronos_nova.db.retry import retried
from tests.functional.db import test_mariadb

WORKERS, TIMES = 6, 25


class CountersTest(test_mariadb.MariaDBTestCase):
    def test_nothing_is_lost_or_counted_twice(self):
        engine = self.new_engine()
        migrate.sync(engine, migrate.CONTROL)
        database, failures = db_engine.Database(engine), []

        @retried
        def end_of_a_move(number):
            with database.writer() as session:
                counters.add(session, counters.MOVED_BYTES, 2.0 ** 30, aggregate='gpu')
                counters.add(session, counters.MOVES, state=f'state{number % 3}')

        def work():
            try:
                for number in range(TIMES):
                    end_of_a_move(number)
            except Exception as error:
                failures.append(error)

        workers = [threading.Thread(target=work) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

        found = counters.Counters(database).read()
        self.assertEqual([], failures)
        self.assertEqual(WORKERS * TIMES * 2.0 ** 30,
                         sum(each.value for each in found if each.name == counters.MOVED_BYTES))
        self.assertEqual({f'state{number}': sum(n % 3 == number for n in range(TIMES)) * WORKERS
                          for number in range(3)},
                         {each.labels['state']: each.value for each in found
                          if each.name == counters.MOVES})

    def test_a_deadlock_in_a_savepoint_is_tried_again(self):
        engine = self.new_engine()
        migrate.sync(engine, migrate.CONTROL)
        database, failures, runs = db_engine.Database(engine), [], []
        both = threading.Barrier(2, timeout=30)
        row = models.CounterRow
        with database.writer() as session:
            for name in ('one', 'other'):
                counters.add(session, name)

        def add(session, name):
            session.execute(sa.update(row).where(row.name == name).values(value=row.value + 1))

        @retried
        def in_turn(first, second):
            runs.append(first)
            with database.writer() as session:
                add(session, first)
                if runs.count(first) == 1:
                    both.wait()
                with session.begin_nested():
                    add(session, second)

        def work(*names):
            try:
                in_turn(*names)
            except Exception as error:
                failures.append(error)

        workers = [threading.Thread(target=work, args=names)
                   for names in (('one', 'other'), ('other', 'one'))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual([], failures)
        self.assertEqual(3, len(runs))
        self.assertEqual({'one': 3, 'other': 3}, {
            each.name: each.value for each in counters.Counters(database).read()})
