"""A conductor, neutron or placement does not answer while nova-compute carries out a cold
migration.

Nova puts the instance into ERROR, although its guest is unharmed.
"""

import collections
import contextlib
import dataclasses
import threading
import time

import ddt
import fixtures
import oslo_messaging as messaging
import tenacity
from neutronclient.common import exceptions as neutron_exc
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.conductor import manager as conductor_manager
from nova.network import neutron
from nova.objects import base as objects_base
from nova.scheduler.client import report

from kronos_nova.plugin import outages
from kronos_nova.plugin.fixes import cold_migration_retry
from tests.functional.mixed import base as mixed
from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import guests

PREPARE, RESIZE, FINISH = 'prep_resize', 'resize_instance', 'finish_resize'
REQUEST, ANSWER = 'request', 'answer'
SILENT_NEUTRON = neutron_exc.ConnectionFailed(reason='injected')
SILENT_PLACEMENT = nova_exception.ConsumerAllocationRetrievalFailed(
    consumer_uuid='-', error='injected')


@dataclasses.dataclass(frozen=True)
class Fault:
    """A call that fails while nova-compute carries out ``request``: one to a conductor, named
    ``call``, or one of a client's class ``owner``, which raises ``error``. The first ``spared``
    calls do not fail."""

    request: str
    call: str
    owner: type | None = None
    error: Exception | None = None
    spared: int = 0


NW_INFO = Fault(RESIZE, 'get_instance_nw_info', neutron.API, SILENT_NEUTRON)
BEFORE_THE_GUEST_IS_TOUCHED = (
    Fault(PREPARE, 'InstanceActionEvent.event_start'),
    Fault(PREPARE, 'Instance.save'),
    Fault(RESIZE, 'InstanceActionEvent.event_start'),
    NW_INFO,
    Fault(RESIZE, 'Migration.save'),
    Fault(RESIZE, 'Instance.save'),
)
WHILE_THE_GUEST_IS_OFF = (
    Fault(RESIZE, 'migrate_instance_start', neutron.API, SILENT_NEUTRON),
    Fault(RESIZE, 'Migration.save', spared=1),
    Fault(RESIZE, 'Instance.save', spared=1),
    Fault(FINISH, 'setup_networks_on_host', neutron.API, SILENT_NEUTRON),
    Fault(FINISH, 'migrate_instance_finish', neutron.API, SILENT_NEUTRON),
    Fault(FINISH, 'Instance.save'),
    Fault(FINISH, 'get_allocs_for_consumer', report.SchedulerReportClient, SILENT_PLACEMENT),
    Fault(FINISH, 'Migration.save'),
    Fault(FINISH, 'Instance.save', spared=1),
)
PLACEMENT_BEFORE = Fault(PREPARE, 'get_allocs_for_consumer', report.SchedulerReportClient,
                         SILENT_PLACEMENT)


class Conductor:
    """Carries out the calls of nova-compute to a conductor, of which some are lost.

    ``loses`` is called with the request that nova-compute carries out and the name of the call, and
    returns REQUEST, ANSWER or None.
    """

    def __init__(self):
        self.loses = lambda request, call: None
        self.calls = []
        self._thread = threading.local()

    def is_called(self):
        """Nova's fixtures let all services reach the database themselves."""
        return self.request is not None and not getattr(self._thread, 'is_serving', False)

    @property
    def request(self):
        return getattr(self._thread, 'request', None)

    def mark(self, request):
        """Let this thread be one that carries out a request of nova-compute, or none."""
        self._thread.request = request

    def object_action(self, context, thing, method, args, kwargs):
        return self._serve(f'{thing.obj_name()}.{method}', self._act, context, thing, method, args,
                           kwargs)

    def object_class_action_versions(self, context, name, method, versions, args, kwargs):
        owner = objects_base.NovaObject.obj_class_from_name(name, versions[name])
        return self._serve(f'{name}.{method}', getattr(owner, method), context, *args, **kwargs)

    @staticmethod
    def _act(context, thing, method, args, kwargs):
        serializer = objects_base.NovaObjectSerializer()
        sent = serializer.deserialize_entity(context, serializer.serialize_entity(context, thing))
        try:
            return conductor_manager.ConductorManager.object_action(
                _Dispatcher(), context, sent, method, args, kwargs)
        except messaging.ExpectedException as error:
            raise error.exc_info[1] from None

    def _serve(self, name, act, *args, **kwargs):
        self.calls.append((self.request, name))
        lost = self.loses(self.request, name)
        if lost == REQUEST:
            raise messaging.MessagingTimeout('injected')
        self._thread.is_serving = True
        try:
            answer = act(*args, **kwargs)
        finally:
            self._thread.is_serving = False
        if lost == ANSWER:
            raise messaging.MessagingTimeout('injected')
        return answer


class _Dispatcher:
    _object_dispatch = conductor_manager.ConductorManager._object_dispatch


class Gate:
    """Stands in for NovaObject.indirection_api: the client of ``conductor``, and false in threads
    that reach the database themselves."""

    def __init__(self, conductor, client):
        self._conductor, self._client = conductor, client

    def __bool__(self):
        return self._conductor.is_called()

    def __getattr__(self, name):
        return getattr(self._client, name)


class ColdMigrationTestCase(guests.GuestsTestCase):
    def setUp(self):
        super().setUp()
        self.stub_out('tenacity.wait_random_exponential', lambda **_: tenacity.wait_fixed(0.01))
        self.stub_out(f'{cold_migration_retry.__name__}.PATIENCE_SECONDS', 0.2)
        self.stub_out(f'{cold_migration_retry.__name__}.LONG_PATIENCE_SECONDS', 20)
        self.calls = Conductor()
        self.addCleanup(setattr, objects_base.NovaObject, 'indirection_api', None)
        objects_base.NovaObject.indirection_api = self.calls
        if self.kronos != mixed.STOCK:
            cold_migration_retry.install()
        objects_base.NovaObject.indirection_api = Gate(
            self.calls, objects_base.NovaObject.indirection_api)
        self.ended, self.driver_steps, self.given_up = threading.Event(), [], []
        self._watch_patience()
        for request in (PREPARE, RESIZE, FINISH):
            self._watch(type(self.computes['host1'].manager), request)
        for step in ('migrate_disk_and_power_off', 'finish_migration'):
            self._watch_driver(step)

    def _watch(self, owner, request):
        real = getattr(owner, request)

        def carry_out(*args, **kwargs):
            self.calls.mark(request)
            try:
                real(*args, **kwargs)
            except BaseException:
                self.ended.set()
                raise
            finally:
                self.calls.mark(None)
                if request == FINISH:
                    self.ended.set()
        self.useFixture(fixtures.MockPatchObject(owner, request, carry_out))

    def _watch_driver(self, step):
        real = getattr(fakes_drivers.Steered, step)

        def carry_out(*args, **kwargs):
            self.driver_steps.append(step)
            return real(*args, **kwargs)
        self.useFixture(fixtures.MockPatchObject(fakes_drivers.Steered, step, carry_out))

    def _watch_patience(self):
        real = cold_migration_retry.MigrationStep.give_up

        def give_up(step, error):
            self.given_up.append(error)
            real(step, error)
        self.useFixture(fixtures.MockPatchObject(
            cold_migration_retry.MigrationStep, 'give_up', give_up))

    def until_given_up(self):
        """Return REQUEST until nova-compute gives up."""
        return None if self.given_up else REQUEST

    def boot(self, is_stopped=False):
        server = self.boot_server()
        if is_stopped:
            self.api.post_server_action(server['id'], {'os-stop': None})
            self._wait_for_server_parameter(server, {'status': 'SHUTOFF',
                                                     'OS-EXT-STS:task_state': None})
        return server

    def boot_another(self):
        """Boot a server, while others may hold resources that they should not."""
        return self._create_server(networks=self.kind.networks(self),
                                   flavor_id=self.flavors[mixed.SMALL_DISK])

    def cold_migrate(self, server):
        """Migrate a server, and wait until nova-compute has carried out the last request."""
        self.driver_steps.clear()
        self.given_up.clear()
        self.ended.clear()
        self.api.post_server_action(server['id'], {'migrate': None})
        self.assertTrue(self.ended.wait(60))

    def cold_migrate_with(self, fault, fails, server):
        with self.failing(fault, fails):
            self.cold_migrate(server)

    @contextlib.contextmanager
    def failing(self, fault, fails):
        """Let the calls of a Fault fail.

        :param fails: returns what is lost of the next call: REQUEST, ANSWER or None
        """
        spared = []

        def lost():
            if len(spared) < fault.spared:
                spared.append(fault)
                return None
            return fails()

        if fault.owner is None:
            self.calls.loses = lambda *call: (
                lost() if call == (fault.request, fault.call) else None)
            yield
            self.calls.loses = lambda *call: None
            return
        real = getattr(fault.owner, fault.call)

        def fail(*args, **kwargs):
            if self.calls.request == fault.request and lost():
                raise fault.error
            return real(*args, **kwargs)
        with fixtures.MockPatchObject(fault.owner, fault.call, fail):
            yield

    def fault(self, server):
        with self._cell() as context:
            return objects.InstanceFault.get_latest_for_instance(context, server['id'])

    def newest_migration(self, server):
        with self._cell() as context:
            return max(objects.MigrationList.get_by_filters(
                context, {'instance_uuid': server['id']}), key=lambda each: each.id)

    def _cell(self):
        return nova_context.target_cell(nova_context.get_admin_context(),
                                        self.cell_mappings['cell1'])


class Context(fixtures.Fixture):
    """A fixture that enters a context manager."""

    def __init__(self, context):
        super().__init__()
        self._context = context

    def _setUp(self):
        self._context.__enter__()
        self.addCleanup(self._context.__exit__, None, None, None)


def twice():
    """A function that returns what is lost of the next call: of two, one thing each."""
    lost = iter((REQUEST, ANSWER))
    return lambda: next(lost, None)


def for_seconds(seconds):
    """A function that returns REQUEST until ``seconds`` after its first call, then None."""
    began = []

    def fails():
        began.append(time.monotonic())
        return REQUEST if time.monotonic() - began[0] < seconds else None
    return fails


@ddt.ddt
class OutageDuringColdMigrationTest(ColdMigrationTestCase):
    def assert_stayed(self, server, status='ACTIVE'):
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host1', 'OS-EXT-STS:task_state': None, 'status': status})
        self.assertEqual('error', self.newest_migration(server).status)
        self.assertEqual([], self.driver_steps)
        self.assertEqual(outages.CODE, self.fault(server).code)
        self.reconcile()
        self.assert_holds_alone(server, 'host1')

    @ddt.data('ACTIVE', 'SHUTOFF')
    def test_each_call_fails_twice(self, status):
        self.stub_out(f'{cold_migration_retry.__name__}.PATIENCE_SECONDS', 20)
        server, counted = self.boot(status == 'SHUTOFF'), collections.Counter()
        for fault in (NW_INFO, PLACEMENT_BEFORE, *WHILE_THE_GUEST_IS_OFF):
            if fault.owner is not None:
                self.useFixture(Context(self.failing(fault, twice())))

        def loses(*call):
            counted[call] += 1
            return (None, REQUEST, ANSWER)[counted[call] % 3]
        self.calls.loses = loses
        self.cold_migrate(server)
        self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': 'host2', 'OS-EXT-STS:task_state': None,
            'status': 'VERIFY_RESIZE'})
        self.assertEqual(['migrate_disk_and_power_off', 'finish_migration'], self.driver_steps)
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self.assert_ended(server, 'host2', status, 'confirmed')

    def test_a_service_does_not_answer_for_long_before_the_guest_is_touched(self):
        server = self.boot()
        for fault in (*BEFORE_THE_GUEST_IS_TOUCHED, PLACEMENT_BEFORE):
            self.cold_migrate_with(fault, self.until_given_up, server)
            self.assert_stayed(server)

    def test_no_conductor_answers_for_long(self):
        """The end of the migration is saved as soon as one answers."""
        server, fails = self.boot(is_stopped=True), for_seconds(2)
        self.calls.loses = lambda request, call: fails() if request == RESIZE else None
        self.cold_migrate(server)
        self.assert_stayed(server, 'SHUTOFF')

    def test_a_service_does_not_answer_for_long_while_the_guest_is_off(self):
        self.stub_out(f'{cold_migration_retry.__name__}.LONG_PATIENCE_SECONDS', 0.2)
        for fault in WHILE_THE_GUEST_IS_OFF[1::3]:
            server = self.boot_another()
            self.cold_migrate_with(fault, self.until_given_up, server)
            self._wait_for_server_parameter(server, {
                'status': 'ERROR', 'OS-EXT-STS:task_state': None})
            self.assertEqual('error', self.newest_migration(server).status)
            self.assertEqual(outages.CODE, self.fault(server).code)


class StockOutageDuringColdMigrationTest(ColdMigrationTestCase):
    """A test that fails here says that Nova has a repair of its own."""

    kronos = mixed.STOCK

    def test_a_service_does_not_answer_for_a_moment_before_the_guest_is_touched(self):
        server = self.boot()
        for fault in BEFORE_THE_GUEST_IS_TOUCHED:
            self.cold_migrate_with(fault, twice(), server)
            is_unbegun = fault.call == 'InstanceActionEvent.event_start'
            self._wait_for_server_parameter(server, {
                'OS-EXT-SRV-ATTR:host': 'host1', 'OS-EXT-STS:task_state': None,
                'status': 'ACTIVE' if is_unbegun else 'ERROR'})
            # Without an error, the migration seems to be in progress for ever.
            self.assertEqual('pre-migrating' if is_unbegun else 'error',
                             self.newest_migration(server).status)
            self.api.post_server_action(server['id'], {'os-resetState': {'state': 'active'}})

    def test_a_service_does_not_answer_for_a_moment_while_the_guest_is_off(self):
        for fault in WHILE_THE_GUEST_IS_OFF:
            server = self.boot_another()
            self.cold_migrate_with(fault, twice(), server)
            self._wait_for_server_parameter(server, {
                'OS-EXT-STS:task_state': None, 'status': 'ERROR'})
            self.assertEqual(500, self.fault(server).code)
