"""Nova without Kronos: where nova.conf does not name it, and where Nova is one it does not know."""

import importlib.metadata
import pathlib
import shutil

from tests.e2e import base
from tests.e2e import box

UNKNOWN = '99.0.0'


class PlainTestCase:
    def test_a_live_migration_takes_the_way_of_nova(self):
        server = self.boot('plain', 'compute1')
        self.cloud.nova.set_faults({'default': {'outcome': 'hang'}})
        self.client.live_migrate(server, 'compute2')
        migration = self.client.migration(server, ('running',))
        # Nova says nothing of consumers' types.
        self.assertEqual(({'compute1': base.RESOURCES}, 'unknown'),
                         self.client.allocations(migration['uuid']))
        self.cloud.nova.set_faults({'default': {'seconds': 1}})
        self.assertEqual('completed', self.client.migration_ended(server)['status'])
        self.assert_clean()


class WithoutTheDriverLineTest(PlainTestCase, base.CloudTestCase):
    settings = box.Settings(computes=2)

    def test_no_service_speaks_of_kronos(self):
        for daemon in self.cloud.nova.all():
            self.assertNotIn('kronos_nova', daemon.process.log.read_text())


class UnknownNovaTest(PlainTestCase, base.CloudTestCase):
    """The metadata of the Nova installed here, with another version, come first in the path."""

    settings = box.Settings(computes=2, kronos=True)

    @classmethod
    def prepare(cls):
        found = importlib.metadata.distribution('nova')
        folder = cls.cloud.root / 'path' / f'nova-{UNKNOWN}.dist-info'
        shutil.copytree(pathlib.Path(found.locate_file(f'nova-{found.version}.dist-info')), folder)
        metadata = folder / 'METADATA'
        metadata.write_text(metadata.read_text().replace(
            f'\nVersion: {found.version}\n', f'\nVersion: {UNKNOWN}\n', 1))
        cls.cloud.nova.prepend_path(folder.parent)

    def test_each_service_says_so_once(self):
        for daemon in self.cloud.nova.all():
            lines = [line for line in daemon.process.log.read_text().splitlines()
                     if 'runs as plain Nova' in line]
            self.assertEqual(1, len(lines), f'{daemon.name}: {lines}')
            self.assertIn(f'Nova {UNKNOWN} is not a release that this Kronos knows', lines[0])
