"""Hosts get the load that plans promise, whatever exporters leave out."""

import argparse

import testtools

from bench import truth


class TruthTest(testtools.TestCase):
    def test_promises_are_kept_on_clouds_of_every_kind(self):
        found = truth.run(argparse.Namespace(clouds=4, seed=17))
        self.assertEqual((), found.failures)
        table, = found.tables
        cases = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        for kind in ('shared', 'huge pages', 'partial', 'moves'):
            self.assertTrue(any(case[kind] for case in cases), kind)
