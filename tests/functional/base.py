"""The base of tests in which Nova's own services run: API, conductor, scheduler, computes and
placement in one process, by Nova's own fixtures."""

import importlib.metadata

from nova.tests.functional import integrated_helpers


def api_paste_config():
    """Where pip put Nova's api-paste.ini; Nova's fixtures look for it in a source tree."""
    return str(next(path.locate().resolve() for path in importlib.metadata.files('nova')
                    if path.match('etc/nova/api-paste.ini')))


class NovaTestCase(integrated_helpers.ProviderUsageBaseTestCase):
    """Stock Nova with the computes named in ``hosts``.

    ``api`` (an administrator's) and ``placement`` are clients of the real services; a server is
    booted by :meth:`boot`.
    """

    compute_driver = 'fake.MediumFakeDriver'
    hosts = ('host1', 'host2')

    def setUp(self):
        self.flags(api_paste_config=api_paste_config(), group='wsgi')
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

    def held_by(self, consumer):
        """{provider name: {resource class: amount}} that placement says ``consumer`` holds."""
        names = {rp['uuid']: rp['name'] for rp in self._get_all_providers()}
        held = self.placement.get(f'/allocations/{consumer}', version='1.38').body['allocations']
        return {names[uuid]: allocation['resources'] for uuid, allocation in held.items()}
