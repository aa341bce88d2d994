"""Instances that are left alone because a conductor worker prepares their live migrations."""

from unittest import mock

import nova.conf
import testtools
from oslo_config import fixture

from kronos_nova import conf as kronos_conf
from kronos_nova.plugin import conductor


class PreparedInstancesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        kronos_conf.register_opts(nova.conf.CONF)

    def prepared(self, reconcile_interval):
        conf = self.useFixture(fixture.Config(nova.conf.CONF)).conf
        conf.set_override('reconcile_interval', reconcile_interval, 'kronos_allocations')
        self.patch(conductor, '_tasks', lambda: mock.Mock(instances=lambda: {'vm1'}))
        return conductor._prepared_instances()

    def test_those_with_a_task(self):
        self.assertEqual({'vm1'}, self.prepared(60))

    def test_none_where_tasks_of_dead_workers_are_never_removed(self):
        self.assertEqual(frozenset(), self.prepared(0))
