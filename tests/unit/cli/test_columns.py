"""Formats of values in commands."""

import testtools

from kronos_client.cli import columns


class MissingTest(testtools.TestCase):
    def test_what_is_missing_is_sorted_last(self):
        for kind in (columns.Optional, columns.Time, columns.Figure):
            found = sorted(map(kind, (None, 2, 1, None)))
            self.assertEqual([kind(each) for each in (1, 2, None, None)], found)
