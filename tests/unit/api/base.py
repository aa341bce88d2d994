"""A kronos-api that serves over HTTP, with a keystone that knows five people."""

import datetime
import pathlib
import threading

import fixtures
import requests
import testtools
from falcon import testing
from keystonemiddleware import fixture as keystone_fixture
from waitress import wasyncore

from kronos_nova import clock
from kronos_nova.api import application
from kronos_nova.api import events
from kronos_nova.api.event_feed import Feed
from kronos_nova.api.operation import Services
from kronos_nova.cmd import api
from kronos_nova.cmd import replay
from kronos_nova.db import cycles
from kronos_nova.db import journal as db_journal
from kronos_nova.db import server_names
from kronos_nova.objects import plan as plans
from kronos_nova.operations.snapshots import SnapshotFolder
from tests.unit.api import configuration
from tests.unit.db import fixtures as db_fixtures

ADMIN, OPERATOR, READER, SYSTEM_READER, TENANT = 'admin', 'operator', 'reader', 'system', 'tenant'
ROLES = {ADMIN: ['admin'], OPERATOR: ['kronos_operator'], READER: ['kronos_reader'],
         TENANT: ['reader', 'member']}


def client(made):
    """Asks an application without a network; falcon looks at the signature of what it is given."""
    return testing.TestClient(lambda environ, start_response: made(environ, start_response))


class ApiTestCase(testtools.TestCase):
    kronos = 'aggregates = gpu, db'
    listeners = 4

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.journal = db_journal.Journal(self.database, 'one')
        self.cycles = cycles.Cycles(self.database)
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.FakeLogger())
        self.conf = configuration.configure(self.folder, self.kronos)
        self.conf.set_override('port', 0, 'kronos_api')
        self.conf.set_override('listeners', self.listeners, 'kronos_api')
        self.feeds = []
        self.know_people()
        self.url = self.serve(application.make(self.conf, self.services()))

    def services(self):
        feed = Feed(events.EventSource(self.conf, self.database), clock.utcnow,
                    self.conf.kronos_api.listeners, pause=0.05)
        self.feeds.append(feed)
        return Services(conf=self.conf, database=self.database, utcnow=clock.utcnow,
                        read_cloud=self.read_cloud, read_flavors=self.read_flavors,
                        host_api=self.host_api, room_allocations=self.room_allocations,
                        planner_ports=self.planner_ports, feed=feed,
                        snapshots=SnapshotFolder(str(self.folder / 'snapshots'), 60, 2048,
                                                 replay.__name__))

    def read_cloud(self):
        raise AssertionError('the cloud is not read for that')

    planner_ports = host_api = read_flavors = room_allocations = read_cloud

    def know_people(self):
        self.tokens = self.useFixture(keystone_fixture.AuthTokenFixture())
        expires = clock.utcnow() + datetime.timedelta(days=1)
        for token, roles in ROLES.items():
            self.know(token, roles, expires)
        self.tokens.add_token_data(
            token_id='expired', expires=expires - datetime.timedelta(days=2), user_id='u',
            user_name='jane', role_list=['admin'])
        self.know_reader_of_the_system(self.tokens, expires)

    def know(self, token, roles, expires):
        """Have keystone know a token of jane's."""
        self.tokens.add_token_data(
            token_id=token, expires=expires, user_id=f'{roles[0]}-id', user_name='jane',
            user_domain_id='default', user_domain_name='Default', project_id='p1',
            project_name='ops', project_domain_id='default', project_domain_name='Default',
            role_list=roles)

    def forget(self, token):
        """Have keystone know a token no more."""
        del self.tokens._token_data[token]

    @staticmethod
    def know_reader_of_the_system(keystone, expires):
        keystone.add_token_data(token_id=SYSTEM_READER, expires=expires, user_id='s',
                                user_name='sam', user_domain_id='default',
                                user_domain_name='Default', role_list=['reader'])
        keystone._token_data[SYSTEM_READER].system = {'all': True}

    def serve(self, served):
        server = api.serve(served, self.conf)
        is_over = threading.Event()

        def run():
            while not is_over.is_set():
                wasyncore.loop(timeout=0.05, map=server._map, count=1, use_poll=True)

        def end():
            for feed in self.feeds:
                feed.close()
            is_over.set()
            thread.join()
            server.task_dispatcher.shutdown()
            wasyncore.close_all(server._map, ignore_all=True)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(end)
        self.end_service = end
        return f'http://127.0.0.1:{server.effective_port}'

    def ask(self, path, method='GET', token=READER, expected=200, **request):
        """Send a request and return the answer as an object; :attr:`answer` has the rest of it."""
        headers = {**({'X-Auth-Token': token} if token else {}), **request.pop('headers', {})}
        self.answer = requests.request(method, f'{self.url}{path}', headers=headers, timeout=60,
                                       **request)
        self.assertEqual(expected, self.answer.status_code, self.answer.text)
        return self.answer.json() if self.answer.content else None

    def refuse(self, path, expected, **request):
        """The error of a request that is refused."""
        [error] = self.ask(path, expected=expected, **request)['errors']
        self.assertEqual(expected, error['status'])
        self.assertEqual(self.answer.headers['x-openstack-request-id'], error['request_id'])
        return error

    # -- what there is

    def plan(self, *moves, name='gpu', state=plans.PROPOSED, at=None):
        now = at or clock.utcnow()
        server_names.ServerNames(self.database).save(
            {move[0]: f'name-of-{move[0]}' for move in moves}, now)
        return self.journal.record_plan(
            db_fixtures.report(moves or [('vm1', 'a', 'b')], name), state, now,
            now + datetime.timedelta(hours=1))

    def evaluate(self, name='gpu', outcome=plans.BALANCED, **report):
        now = clock.utcnow()
        self.cycles.begin(name, 'one', now - datetime.timedelta(seconds=4), 1)
        found = plans.AggregateReport(name=name, outcome=outcome, mode='spread', planner='spread',
                                      **report)
        self.cycles.end(name, now, outcome, False, found.to_json())
