"""Authentication of requests: one fixed token, or keystone.

Both say the same things: how a service checks the token of a request, how a service that calls
another gets one, and how the box' own client does.
"""

import subprocess

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from keystoneauth1.identity import v3

from tests.e2e.box import apis
from tests.e2e.box import auth
from tests.e2e.box import conffile
from tests.e2e.box.settings import BoxError
from tests.e2e.box.settings import command

PASSWORD = 'box'
REGION = 'RegionOne'
TOKEN_CACHE_SECONDS = 20
"""Seconds for which services accept a token without asking keystone. Raised, services notice the
absence of keystone later: with the default of keystonemiddleware, 300, a minute of absence has no
effect. Lowered, services ask keystone more often."""


class FixedToken:
    """A filter in keystonemiddleware's place; a third of the start-up time of keystone's way."""

    strategy = {'placement': 'noauth2', 'neutron': 'noauth'}
    middleware = {}
    url = None

    def configure(self, database):
        """Nothing to configure."""

    def start(self, endpoints, timeout):
        """Nothing to start."""

    @staticmethod
    def pipeline(stock, path):
        """A copy of a service's own paste file, with the filter in it."""
        path.write_text(stock.read_text().replace(
            'keystonemiddleware.auth_token:filter_factory', f'{auth.__name__}:filter_factory'))
        return path

    def caller(self, url):
        """Options of a nova.conf section for calls to the service at ``url``."""
        return {'auth_type': 'admin_token', 'token': auth.TOKEN, 'endpoint': url,
                'endpoint_override': url}

    def plugin(self, url):
        return token_endpoint.Token(url, auth.TOKEN)

    def credentials(self):
        return {'token': auth.TOKEN}


class Keystone(apis.Api):
    """Keystone with one administrator, who is also the services' own user."""

    name, module = 'keystone', 'keystone.wsgi.api'
    strategy = {'placement': 'keystone', 'neutron': 'keystone'}

    @property
    def middleware(self):
        return {'keystone_authtoken': {
            'www_authenticate_uri': self.url, 'auth_url': self.url, **self._user(),
            'service_token_roles_required': True, 'token_cache_time': TOKEN_CACHE_SECONDS}}

    def _user(self):
        return {'auth_type': 'password', 'username': 'admin', 'password': PASSWORD,
                'project_name': 'admin', 'user_domain_id': 'default',
                'project_domain_id': 'default', 'region_name': REGION}

    def configure(self, database):
        self._conf = conffile.write(self.etc / 'keystone.conf', {
            'database': {'connection': database.url('keystone')},
            # Keystone's cache is on by default, in a backend that a cloud configures. Without it,
            # each check of a token reads the user, project, roles and catalogue again.
            'cache': {'enabled': True, 'backend': 'dogpile.cache.memory'},
            'fernet_tokens': {'key_repository': self.etc / 'fernet'},
            'credential': {'key_repository': self.etc / 'credential'}})

    def start(self, endpoints, timeout):
        """Make keys, administrator and catalogue, and serve."""
        self._manage('fernet_setup', '--keystone-user', 'root', '--keystone-group', 'root')
        self._manage('bootstrap', '--bootstrap-password', PASSWORD,
                     '--bootstrap-public-url', f'{self.url}/v3',
                     # keystonemiddleware looks for this one.
                     '--bootstrap-internal-url', f'{self.url}/v3',
                     '--bootstrap-region-id', REGION)
        super().start()
        self.process.wait_ready(timeout)
        api = adapter.Adapter(session.Session(auth=self.plugin(self.url)), 'identity',
                              endpoint_override=f'{self.url}/v3')
        self._make_service_user(api)
        for service, url in endpoints.items():
            made = api.post('/services', json={'service': {'type': service, 'name': service}})
            api.post('/endpoints', json={'endpoint': {
                'service_id': made.json()['service']['id'], 'interface': 'public',
                'region_id': REGION, 'url': url}})

    def _make_service_user(self, api):
        """keystonemiddleware requires the role ``service`` of a user that sends a service token."""
        def first(collection, name):
            return api.get(f'/{collection}?name={name}').json()[collection][0]['id']
        user, project = first('users', 'admin'), first('projects', 'admin')
        api.put(f'/projects/{project}/users/{user}/roles/{first("roles", "service")}')

    def _manage(self, *arguments):
        done = subprocess.run(
            [*command('keystone', 'keystone-manage'), '--config-file', str(self._conf),
             *arguments], capture_output=True, text=True)
        if done.returncode:
            raise BoxError(f'keystone-manage {arguments[0]}: {done.stdout}{done.stderr}')

    @staticmethod
    def pipeline(stock, path):
        path.write_text(stock.read_text())
        return path

    def caller(self, url):
        return {**self._user(), 'auth_url': self.url, 'endpoint_override': url}

    def plugin(self, url):
        return v3.Password(auth_url=f'{self.url}/v3', username='admin', password=PASSWORD,
                           project_name='admin', user_domain_id='default',
                           project_domain_id='default')

    def credentials(self):
        return {f'OS_{name}': value for name, value in (
            ('AUTH_URL', f'{self.url}/v3'), ('USERNAME', 'admin'), ('PASSWORD', PASSWORD),
            ('PROJECT_NAME', 'admin'), ('USER_DOMAIN_ID', 'default'),
            ('PROJECT_DOMAIN_ID', 'default'), ('REGION_NAME', REGION))}
