"""Names of servers in plans."""

import sqlalchemy as sa
import testtools

from kronos_nova.db import models
from kronos_nova.db import server_names
from tests.unit.db import fixtures


class ServerNamesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.names = server_names.ServerNames(self.database)

    def test_the_last_name_and_the_last_time_are_kept(self):
        self.names.save({'a': 'web', 'b': 'db'}, self.clock())
        self.clock.go(7 * 3600)
        self.names.save({'b': 'database', 'c': 'cache\n'}, self.clock())
        self.assertEqual({'a': 'web', 'b': 'database', 'c': 'cache\N{REPLACEMENT CHARACTER}'},
                         self.names.read(['a', 'b', 'c', 'd']))
        seen = self.seen()
        self.assertEqual(7 * 3600, (seen['b'] - seen['a']).total_seconds())
        self.assertEqual(seen['b'], seen['c'])

    def seen(self):
        with self.database.reader() as session:
            return dict(session.execute(sa.select(
                models.ServerNameRow.uuid, models.ServerNameRow.seen_at)).all())

    def test_a_name_is_written_again_when_it_changes_or_its_time_is_old(self):
        self.names.save({'a': 'web', 'b': 'db'}, self.clock())
        first = self.seen()
        self.clock.go(3600)
        self.names.save({'a': 'web', 'b': 'database'}, self.clock())
        self.assertEqual(first['a'], self.seen()['a'])
        self.assertEqual({'a': 'web', 'b': 'database'}, self.names.read('ab'))
        self.clock.go(6 * 3600)
        self.names.save({'a': 'web'}, self.clock())
        self.assertEqual(self.clock(), self.seen()['a'])

    def test_the_last_aggregate_is_kept_until_there_is_another(self):
        self.names.save({'a': 'web', 'b': 'db'}, self.clock(), {'a': 'gpu'})
        self.names.save({'a': 'web'}, self.clock())
        self.assertEqual(('gpu', None, None), tuple(map(self.names.aggregate, 'abc')))
        self.names.save({'a': 'web', 'b': 'db'}, self.clock(), {'a': 'db', 'b': 'gpu'})
        self.assertEqual(('db', 'gpu'), tuple(map(self.names.aggregate, 'ab')))
        self.names.save({'a': 'www'}, self.clock())
        self.assertEqual(('db', {'a': 'www'}), (self.names.aggregate('a'), self.names.read('a')))

    def test_a_server_is_found_by_its_name_or_uuid(self):
        self.names.save({'a': 'web', 'b': 'web', 'c': 'db'}, self.clock())
        self.assertEqual(({'a', 'b'}, ['c'], ['c'], []), (
            {*self.names.find('web')}, self.names.find('db'), self.names.find('c'),
            self.names.find('mail')))
        self.assertEqual(['c'], self.names.find('C'))

    def test_more_than_one_statement_takes(self):
        many = {f'{number:05}': f'vm{number}' for number in range(2 * server_names.CHUNK + 1)}
        for _time in range(2):
            self.names.save(many, self.clock())
        self.assertEqual(many, self.names.read(many))

    def test_nothing(self):
        self.names.save({}, self.clock())
        self.assertEqual({}, self.names.read([]))
