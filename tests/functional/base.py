"""The base of tests in which Nova's own services run: API, conductor, scheduler, computes and
placement in one process, by Nova's own fixtures."""

import contextlib
import importlib.metadata
import json
import time

import fixtures
import nova.conf
import nova.service
import requests
from keystoneauth1 import adapter
from keystoneauth1 import loading
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from nova import context as nova_context
from nova import utils
from nova.db.main import api as main_db
from nova.tests.fixtures.nova import PROJECT_ID
from nova.tests.functional import fixtures as nova_fixtures
from nova.tests.functional import integrated_helpers
from nova.tests.functional.api import client as api_client
from oslo_utils import importutils

from kronos_nova import conf as kronos_conf
from kronos_nova.placement import shortcut
from kronos_nova.placement.client import PlacementClient
from kronos_nova.plugin import conductor
from kronos_nova.plugin import placement
from tests.unit.db import fixtures as db_fixtures

PATIENCE = 10
MOMENT = 0.5
"""Seconds, as between two looks of Nova's waits."""


def death():
    """The error by which a thread ends with nothing after it. Under eventlet, SystemExit would end
    the process instead of the thread."""
    if utils.concurrency_mode_threading():
        return SystemExit()
    import greenlet
    return greenlet.GreenletExit()


def api_paste_config():
    """Return where pip put Nova's api-paste.ini; Nova's fixtures look for it in a source tree."""
    return str(next(path.locate().resolve() for path in importlib.metadata.files('nova')
                    if path.match('etc/nova/api-paste.ini')))


def placement_adapter(fixture, adapter_class=adapter.Adapter):
    """A keystoneauth adapter for the placement service of ``fixture``."""
    auth = token_endpoint.Token(fixture.endpoint, fixture.token)
    return adapter_class(session.Session(auth=auth), service_type='placement')


class RecordedPlacement(nova_fixtures.PlacementFixture):
    """The real placement service, remembering what it was asked.

    ``requests`` is a list of (method, path, JSON body, status). ``before`` and ``after`` are called
    with (method, path, body) before a request reaches the service and after it took effect; what
    they raise, or the response that they return, is what its sender gets.
    """

    def setUp(self):
        super().setUp()
        self.requests = []
        self.before = self.after = lambda method, path, body: None
        real = session.Session.request

        def request(this, url, method, **kwargs):
            override = kwargs.get('endpoint_override') or ''
            asked = (method, url.removeprefix(override).removeprefix(self.endpoint),
                     kwargs.get('json'))
            faked = self.before(*asked)
            if faked is not None:
                return faked
            response = real(this, url, method, **kwargs)
            self.requests.append((*asked, response.status_code))
            return self.after(*asked) or response

        self._patch(session.Session, 'request', request)
        self._patch(shortcut.Shortcut, 'get', self._recorded(shortcut.Shortcut.get))

    def _recorded(self, real):
        def get(this, path, headers):
            response = real(this, path, headers)
            if response is None:  # the adapter's session will ask
                return None
            faked = self.before('GET', path, None)
            if faked is not None:
                return faked
            self.requests.append(('GET', path, None, response.status_code))
            return self.after('GET', path, None) or response
        return get

    def _patch(self, owner, name, value):
        self.addCleanup(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)

    def writes_of_allocations(self):
        return [(method, path, body) for method, path, body, _status in self.requests
                if path.startswith('/allocations') and method != 'GET']


def answer(status, code='placement.undefined_code', detail='made up'):
    """A response that placement did not give."""
    response = requests.Response()
    response.status_code = status
    response._content = json.dumps({'errors': [{
        'status': status, 'code': code, 'detail': detail}]}).encode()
    return response


def microversion(client, version):
    """A context in which ``client`` asks Nova at another microversion."""
    return utils.temporary_mutation(client, microversion=version)


def _patiently(name):
    """One of Nova's waits, which give up after some five seconds: that a machine is busy is no
    failure of a test. Nor is it that Nova's fixture of cells, when two threads read at once, does
    not find a server that was made a moment ago."""
    def wait(self, *args, **kwargs):
        for attempt in reversed(range(self.patience)):
            try:
                return getattr(super(Patience, self), name)(*args, **kwargs)
            except AssertionError:
                if not attempt:
                    raise
            except api_client.OpenStackApiNotFoundException:
                if not attempt:
                    raise
                time.sleep(MOMENT)  # which Nova's own wait has not done
    return wait


class Patience:
    """A mixin for tests on Nova's fixtures, before Nova's own base class.

    ``patience`` is how many times Nova's own time-outs are waited for.
    """

    patience = PATIENCE

    _wait_for_assert = _patiently('_wait_for_assert')
    _wait_for_migration_status = _patiently('_wait_for_migration_status')
    _wait_for_server_parameter = _patiently('_wait_for_server_parameter')
    _wait_for_service_parameter = _patiently('_wait_for_service_parameter')


class KronosServices(Patience):
    """A mixin for tests on Nova's fixtures, before Nova's own base class.

    ``placement_client`` is ours, ``control_database`` is up to date, and ``state`` is the directory
    of what services keep in files. ``managers`` replaces managers of Nova's services by ours:
    {binary: dotted name}.
    """

    managers = {}

    def setUp(self):
        self.flags(api_paste_config=api_paste_config(), group='wsgi')
        kronos_conf.register_opts(nova.conf.CONF)
        # Nothing of its own accord: a test that wants Kronos to plan says so.
        self.flags(automation='off', group='kronos')
        self.flags(reconcile_interval=0, group='kronos_allocations')
        self.state = self.make_state_path()
        # Nova's fixtures look for some files below the latter, wherever state_path is.
        self.flags(state_path=self.state, pybasedir=self.state)
        self.control_database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.flags(connection=str(self.control_database.engine.url), group='kronos_database')
        for cached in (conductor._database, conductor._impatient_database, conductor._tasks,
                       placement.client):
            cached.cache_clear()
            self.addCleanup(cached.cache_clear)
        self.useFixture(fixtures.MonkeyPatch(
            'nova.service.SERVICE_MANAGERS', nova.service.SERVICE_MANAGERS | self.managers))
        super().setUp()
        self._make_security_groups()

    def _make_security_groups(self):
        """Before anybody boots: Nova makes a project's first one behind a savepoint, and the one
        connection to a cell's database that its fixtures have under eventlet does not keep that
        while another thread writes."""
        context = nova_context.RequestContext('admin', PROJECT_ID)
        for cell in self.cell_mappings.values():
            with nova_context.target_cell(context, cell) as cell_context:
                main_db.security_group_ensure_default(cell_context)

    def stub_out(self, old, new):
        """Replace a function, as Nova's own method does. A method that a class inherits is
        inherited again after the test. The fixture would leave a copy of it in the class, which
        later replacements in the base class would not reach."""
        owner, _, name = old.rpartition('.')
        with contextlib.suppress(ImportError, ValueError):  # the owner is a module, not a class
            found = importutils.import_class(owner)
            if isinstance(found, type) and hasattr(found, name) and name not in vars(found):
                self.addCleanup(delattr, found, name)
        super().stub_out(old, new)

    def make_state_path(self):
        return self.useFixture(fixtures.TempDir()).path

    def useFixture(self, fixture):
        """Nova's base class makes the placement fixture; ours takes its place."""
        if type(fixture) is not nova_fixtures.PlacementFixture:
            return super().useFixture(fixture)
        self.placement_fixture = super().useFixture(RecordedPlacement())
        self.placement_client = PlacementClient(placement_adapter(self.placement_fixture))
        self._configure_placement()
        return self.placement_fixture

    def _configure_placement(self):
        """Let ``[placement]`` of nova.conf lead there too."""
        for option in loading.get_auth_plugin_conf_options('admin_token'):
            nova.conf.CONF.register_opt(option, 'placement')
        self.flags(auth_type='admin_token', endpoint=self.placement_fixture.endpoint,
                   token=self.placement_fixture.token, group='placement')


class NovaTestCase(KronosServices, integrated_helpers.ProviderUsageBaseTestCase):
    """Stock Nova with the computes named in ``hosts``.

    ``api`` (an administrator's) and ``placement`` are clients of the real services.
    """

    compute_driver = 'fake.MediumFakeDriver'
    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        for host in self.hosts:
            self._start_compute(host)

    def boot(self, host, **kwargs):
        """An ACTIVE server without network on ``host``."""
        return self._create_server(host=host, networks='none', **kwargs)

    def migrate(self, server, host=None):
        """Ask for a live migration; returns at once."""
        self.api.post_server_action(
            server['id'], {'os-migrateLive': {'host': host, 'block_migration': 'auto'}})

    def server_on(self, server, host):
        """Wait until the server is idle and ACTIVE on ``host``."""
        return self._wait_for_server_parameter(server, {
            'OS-EXT-SRV-ATTR:host': host, 'OS-EXT-STS:task_state': None, 'status': 'ACTIVE'})

    def held_by(self, consumer):
        """{provider name: {resource class: amount}} that placement says ``consumer`` holds."""
        names = {rp['uuid']: rp['name'] for rp in self._get_all_providers()}
        held = self.placement.get(f'/allocations/{consumer}', version='1.38').body['allocations']
        return {names[uuid]: allocation['resources'] for uuid, allocation in held.items()}

    def assert_holds(self, consumer, expected):
        """Wait until placement says that ``consumer`` holds ``expected``, as held_by() gives it.

        Nova writes allocations after a migration's status or a server's state has been saved too:
        what is seen in one is not yet true of the other.
        """
        self._wait_for_assert(lambda: self.assertEqual(expected, self.held_by(consumer)))

    def uuid_of(self, provider):
        return self._get_provider_uuid_by_name(provider)
