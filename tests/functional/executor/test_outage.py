"""A move during which a service that Nova needs does not answer, as opposed to one that is
refused."""

import datetime
import sys

import oslo_messaging as messaging
import testtools
from keystoneauth1 import exceptions as ks_exc
from neutronclient.common import exceptions as neutron_exc
from nova import context
from nova import exception as nova_exception
from nova import objects
from nova import rpc
from nova.compute import rpcapi
from oslo_messaging._drivers import common as messaging_common

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.db import journal as db_journal
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.placement import client as placement_client
from kronos_nova.placement import errors
from kronos_nova.plugin import compute_api
from kronos_nova.plugin import outages
from tests.functional import base
from tests.unit.db import fixtures as db_fixtures

CAPS = moves.Caps(total=1, per_source=1, per_destination=1)


def raised(first, then):
    """``then``, as it is when it was raised where ``first`` was caught."""
    try:
        try:
            raise first
        except Exception:
            raise then  # noqa: B904 - as Nova often does
    except Exception as error:
        return error


class ToldByClassTest(testtools.TestCase):
    def test_what_does_not_answer_says_nothing_about_the_instance(self):
        refused = nova_exception.MigrationPreCheckError(reason='made of another one')
        for error in (
                errors.PlacementUnavailable(problem='HTTP 502'),
                ks_exc.ConnectTimeout('placement'), neutron_exc.ServiceUnavailable(),
                nova_exception.ComputeServiceUnavailable(host='host2'),
                messaging.RemoteError('ConnectFailure', 'in nova-compute'),
                raised(messaging.MessagingTimeout('check'), refused)):
            self.assertTrue(outages.is_outage(error), repr(error))

    def test_what_says_no_does(self):
        for error in (
                None, errors.InsufficientInventory(problem='full'),
                neutron_exc.PortNotFoundClient(), nova_exception.NoValidHost(reason='full'),
                messaging.RemoteError('LibvirtError', 'in nova-compute'),
                raised(ValueError('no'), nova_exception.MigrationPreCheckError(reason='no'))):
            self.assertFalse(outages.is_outage(error), repr(error))


class OutageTest(base.NovaTestCase):
    managers = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor',
                'nova-compute': 'kronos_nova.plugin.managers.Compute'}

    def setUp(self):
        super().setUp()
        hasty = placement_client.PlacementClient(
            base.placement_adapter(self.placement_fixture),
            attempts=lambda: placement_client.retrying(longest_pause=0.01))
        self.stub_out('kronos_nova.plugin.placement.client', lambda: hasty)
        self.server = self.boot('host1')
        self.port = compute_api.InProcessComputeApi()
        self.journal = db_journal.Journal(self.control_database, 'tester')
        self.move = self.requested()

    def requested(self):
        """A move of which the journal says that Nova was asked."""
        now = clock.utcnow()
        self.journal.record_plan(
            db_fixtures.report([(self.server['id'], 'host1', 'host2')]), plans.EXECUTING, now,
            now + datetime.timedelta(hours=1))
        [move] = self.journal.dispatch(CAPS, lambda: now)
        return self.journal.advance(self.journal.claim(move.uuid, now), moves.MIGRATING, now,
                                    requested_at=now)

    def failed(self):
        """Ask for the migration; what the port says once it has failed."""
        self.port.live_migrate(self.move)
        self._wait_for_migration_status(self.server, ['error', 'failed'])
        return self.port.migration(self.move)

    def assert_untouched(self):
        self.server_on(self.server, 'host1')
        self._wait_for_assert(lambda: self.assertEqual(
            ['host1'], list(self.held_by(self.server['id']))))

    def test_a_placement_that_goes_away_is_reported_as_an_outage(self):
        def refuse(method, path, body):
            if (method, path) == ('POST', '/allocations'):
                raise ks_exc.ConnectTimeout('injected')

        self.placement_fixture.before = refuse
        self.assertTrue(self.failed().is_outage)
        self.assertTrue(self.journal.move(self.move.uuid).outage)
        self.assert_untouched()

    def test_also_when_the_scheduler_takes_it_for_a_cloud_without_room(self):
        gone = []

        def refuse(method, path, body):
            if gone or path.startswith('/allocation_candidates'):
                gone.append(path)
                raise ks_exc.ConnectFailure('injected')

        self.placement_fixture.before = refuse
        self.port.live_migrate(self.move)
        self._wait_for_migration_status(self.server, ['error', 'failed'])
        self.placement_fixture.before = lambda *asked: None
        self.assertTrue(self.port.migration(self.move).is_outage)
        self.assert_untouched()

    def test_a_destination_that_does_not_report_when_nova_looks(self):
        host2 = objects.Service.get_by_compute_host(context.get_admin_context(), 'host2')
        host2.forced_down = True
        host2.save()
        self.assertTrue(self.failed().is_outage)
        self.assert_untouched()

    def test_a_cinder_that_does_not_answer_the_destination(self):
        def check(*_args, **_kwargs):
            raise nova_exception.CinderConnectionFailed(reason='injected')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)
        self.assertTrue(self.failed().is_outage)
        self.assert_untouched()

    def test_a_destination_that_does_not_answer(self):
        """Nova reports the timeout as a refusal of the host."""
        def check(*_args, **_kwargs):
            raise messaging.MessagingTimeout('injected')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)
        self.assertTrue(self.failed().is_outage)
        self.assertTrue(self.journal.move(self.move.uuid).outage)
        self.assert_untouched()

    def test_a_source_that_does_not_answer_the_destination(self):
        """Nova's destination reports the timeout as a refusal, and only its text has the cause."""
        def check(*_args, **_kwargs):
            raise messaging.MessagingTimeout('injected')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_source', check)
        self.send_errors_of_the_destination()
        found = self.failed()
        self.assertTrue(found.is_outage)
        self.assertIn('check_can_live_migrate_source from host1 to host host2', found.fault)
        self.assertTrue(self.journal.move(self.move.uuid).outage)
        self.assert_untouched()

    def test_a_source_that_refuses_the_destination_is_not(self):
        def check(*_args, **_kwargs):
            raise nova_exception.InvalidSharedStorage(path='/a/disk', reason='injected')

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_source', check)
        self.send_errors_of_the_destination()
        self.assertFalse(self.failed().is_outage)
        self.assert_untouched()

    def send_errors_of_the_destination(self):
        """Have errors of the destination's check lose their causes, as on a real bus."""
        real = rpcapi.ComputeAPI.check_can_live_migrate_destination

        def check(*args, **kwargs):
            try:
                return real(*args, **kwargs)
            except Exception:
                sent = messaging_common.serialize_remote_exception(sys.exc_info())
                raise messaging_common.deserialize_remote_exception(
                    sent, rpc.get_allowed_exmods()) from None

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)

    def test_also_while_the_destination_prepares_for_the_guest(self):
        def prepare(*_args, **_kwargs):
            raise nova_exception.CinderConnectionFailed(reason='injected')

        self.stub_out('nova.virt.fake.FakeDriver.pre_live_migration', prepare)
        self.assertTrue(self.failed().is_outage)
        self.assert_untouched()

    def test_a_destination_that_cannot_prepare_for_the_guest_is_not(self):
        def prepare(*_args, **_kwargs):
            raise nova_exception.DestinationDiskExists(path='/a/disk')

        self.stub_out('nova.virt.fake.FakeDriver.pre_live_migration', prepare)
        self.assertFalse(self.failed().is_outage)
        self.assert_untouched()

    def test_a_destination_without_room_is_not(self):
        self.placement_fixture.before = lambda method, path, body: (
            base.answer(409) if (method, path) == ('POST', '/allocations') else None)
        self.assertFalse(self.failed().is_outage)
        self.assertFalse(self.journal.move(self.move.uuid).outage)
        self.assert_untouched()

    def test_an_outage_that_keeps_nova_from_taking_the_request(self):
        def refuse(*_args, **_kwargs):
            raise nova_exception.PlacementAPIConnectFailure()

        self.stub_out('nova.compute.api.API.live_migrate', refuse)
        self.assertRaises(exception.NovaClientError, self.port.live_migrate, self.move)
        instance = objects.Instance.get_by_uuid(context.get_admin_context(), self.server['id'])
        self.assertIsNone(instance.task_state)
