"""Statistics of the loads of instances survive the process."""

import dataclasses
import json

import numpy as np
import testtools

from kronos_nova.db import load_stats
from kronos_nova.db import models
from kronos_nova.load import LoadStats
from tests.unit.db import fixtures


class LoadStatsStoreTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.store = load_stats.LoadStatsStore(self.useFixture(fixtures.ControlDatabase()).database)
        self.now = fixtures.Clock()()

    def known(self, *vms):
        return {'cpu': LoadStats(7.5, vms, np.arange(5.0 * len(vms)).reshape(-1, 5))}

    def test_what_is_kept_is_found_again_by_aggregate(self):
        self.store.save('gpu', self.known('a', 'b'), self.now)
        self.store.save('other', {}, self.now)
        found = self.store.read(('gpu',))
        self.assertEqual(['gpu'], list(found))
        self.assertEqual((7.5, ('a', 'b')), (found['gpu']['cpu'].at, found['gpu']['cpu'].vms))
        np.testing.assert_array_equal(np.arange(10.0).reshape(2, 5),
                                      found['gpu']['cpu'].figures)
        self.assertEqual({'gpu', 'other'}, set(self.store.read(None)))

    def test_the_latest_takes_the_place_of_what_was_kept(self):
        for vms in (('a', 'b'), ()):
            self.store.save('gpu', self.known(*vms), self.now)
        self.assertEqual((0, 5), self.store.read(None)['gpu']['cpu'].figures.shape)

    def test_the_unit_is_kept_too(self):
        self.store.save('gpu', {'cpu': dataclasses.replace(self.known('a')['cpu'], unit=64.0)},
                        self.now)
        self.assertEqual(64.0, self.store.read(None)['gpu']['cpu'].unit)
        self.store.save('gpu', self.known('a'), self.now)
        self.assertTrue(np.isnan(self.store.read(None)['gpu']['cpu'].unit))

    def test_rows_of_earlier_versions_have_no_unit(self):
        self.store.save('gpu', self.known('a'), self.now)
        with self.store.database.writer() as session:
            row = session.get(models.AggregateLoadStatsRow, 'gpu')
            row.body = json.dumps({policy: parts[:3]
                                   for policy, parts in json.loads(row.body).items()})
        found = self.store.read(None)['gpu']['cpu']
        self.assertEqual(('a',), found.vms)
        self.assertTrue(np.isnan(found.unit))
