"""Kronos as Nova loads it: by a line of nova.conf, and not where something does not fit."""

from unittest import mock

import fixtures
import nova.conf
from nova.compute import manager as compute_manager
from nova.conductor import manager as conductor_manager
from nova.scheduler import manager as scheduler_manager
from oslo_messaging import conffixture

from kronos_nova.plugin import claim_rpc
from kronos_nova.plugin import compute
from kronos_nova.plugin import conductor
from kronos_nova.plugin import entry
from kronos_nova.plugin import managers
from kronos_nova.plugin import scheduler
from tests.functional import base

STOCK = (conductor_manager.ConductorManager, scheduler_manager.SchedulerManager,
         compute_manager.ComputeManager)


class LoadedTestCase(base.NovaTestCase):
    """Nova's services with the driver line in nova.conf."""

    def setUp(self):
        entry._is_usable.cache_clear()
        self.addCleanup(entry._is_usable.cache_clear)
        # Registers the group, as oslo.messaging does when a transport is made.
        self.useFixture(conffixture.ConfFixture(nova.conf.CONF))
        self.flags(driver=['kronos'], group='oslo_messaging_notifications')
        self.started = {}
        super().setUp()

    def start_service(self, name, *args, **kwargs):
        self.started[name] = super().start_service(name, *args, **kwargs)
        return self.started[name]

    def loaded(self):
        return tuple(type(self.started[name].manager)
                     for name in ('conductor', 'scheduler', 'compute'))


class LoadingTest(LoadedTestCase):
    def test_the_services_run_with_our_managers(self):
        self.assertEqual((conductor.KronosConductorManager, scheduler.KronosSchedulerManager,
                          compute.KronosComputeManager), self.loaded())
        self.assertIsInstance(self.started['conductor'].manager.compute_task_mgr,
                              conductor.KronosComputeTaskManager)

    def takes_claims_of_others(self):
        endpoints = self.started['conductor'].manager.additional_endpoints
        return any(isinstance(each, claim_rpc.ClaimStoreEndpoint) for each in endpoints)

    def test_computes_that_keep_their_claims_themselves_find_no_door_in_the_conductor(self):
        self.assertFalse(self.takes_claims_of_others())

    def methods_of_a_migration(self):
        """Return how the allocations of an instance are written while it is migrated."""
        server = self.boot('host1')
        before = len(self.placement_fixture.writes_of_allocations())
        self.migrate(server, 'host2')
        self._wait_for_migration_status(server, ['completed'])
        writes = self.placement_fixture.writes_of_allocations()[before:]
        return [method for method, path, body in writes
                if server['id'] in path or server['id'] in (body or {})]

    def test_a_migration_by_an_administrator_is_atomic(self):
        self.assertEqual(['POST'], self.methods_of_a_migration())

    def test_nova_does_it_its_own_way_where_atomic_moves_are_off(self):
        self.flags(atomic_moves='off', group='kronos')
        self.assertIn('PUT', self.methods_of_a_migration())


class UnknownNovaTest(LoadedTestCase):
    def setUp(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova.version.version_info', mock.Mock(version_string=lambda: '99.0.0')))
        super().setUp()

    def test_everything_is_plain_nova_with_one_error(self):
        self.assertEqual(STOCK, self.loaded())
        said = self.stdlog.logger.output
        self.assertEqual(1, said.count('this service runs as plain Nova'))
        self.assertIn('Nova 99.0.0 is not a release that this Kronos knows (33 (2026.1)', said)


class MisfitTest(base.NovaTestCase):
    def test_a_method_of_another_signature_leaves_that_service_plain_nova(self):
        expected = {'nova.conductor.manager:ComputeTaskManager.__init__': ('self', 'more')}
        with mock.patch.object(conductor, 'EXPECTED', expected):
            found, problems = managers.resolve('Conductor')
        self.assertIs(conductor_manager.ConductorManager, found)
        self.assertEqual(["nova.conductor.manager:ComputeTaskManager.__init__ takes ('self',), "
                          "not ('self', 'more')"], problems)

    def test_a_method_that_is_gone_leaves_that_service_plain_nova(self):
        expected = {'nova.conductor.manager:ComputeTaskManager.gone': None}
        with mock.patch.object(scheduler, 'EXPECTED', expected):
            found, problems = managers.resolve('Scheduler')
        self.assertIs(scheduler_manager.SchedulerManager, found)
        self.assertEqual(['nova.conductor.manager:ComputeTaskManager.gone is missing'], problems)
