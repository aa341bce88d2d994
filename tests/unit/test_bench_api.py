"""``bench api`` asks for every operation that reads the control database."""

import argparse

import testtools

from bench import api
from kronos_client.contract import table

NOT_ASKED = frozenset(('drains:show', 'maintenance:show', 'room:show'))
"""Operations for what the bench does not fill."""


class BenchTest(testtools.TestCase):
    def test_every_operation_that_reads_the_database_is_asked(self):
        parser = argparse.ArgumentParser()
        api.register(parser.add_subparsers())
        found = api.run(parser.parse_args([
            'api', '--hosts=20', '--vms=100', '--aggregates=2', '--moves=100', '--requests=2']))
        [measured] = found.tables
        expected = {each.name for each in table.OPERATIONS if each.method == 'GET' and (
            not each.is_slow or each.name == 'report:show')} - NOT_ASKED
        rows = {name: size for name, size, *_times in measured.rows}
        self.assertEqual(set(), expected - set(rows))
        self.assertGreater(rows['hosts:list'], 20 * 50)
