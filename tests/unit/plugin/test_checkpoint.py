"""Checkpoints of live migrations on disk."""

import pathlib
import stat
import uuid

import fixtures
import testtools
from nova import context
from nova import objects

from kronos_nova.plugin.fixes.migration_checkpoint import LIVE_FOLDER
from kronos_nova.plugin.fixes.migration_checkpoint import MigrationCheckpoints


class CheckpointTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()
        self.state_path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.context = context.get_admin_context()
        self.known = MigrationCheckpoints(self.state_path, 'cmp1', LIVE_FOLDER)
        self.instance = str(uuid.uuid4())

    def files(self):
        return sorted(path.name for path in (self.state_path / LIVE_FOLDER).iterdir())

    def test_facts_are_read_as_they_were_written(self):
        migration = objects.Migration(uuid=str(uuid.uuid4()), dest_compute='cmp2')
        self.known.write(self.instance, migration=migration, is_prepared=True)
        found = self.known.load(self.context, self.instance)
        self.assertEqual((migration.uuid, 'cmp2', True), (
            found['migration'].uuid, found['migration'].dest_compute, found['is_prepared']))

    def test_a_later_checkpoint_takes_the_place_of_an_earlier_one(self):
        self.known.write(self.instance, step=1)
        self.known.write(self.instance, step=2)
        self.assertEqual({'step': 2}, self.known.load(self.context, self.instance))
        self.assertEqual(1, len(self.files()))

    def test_no_other_user_can_read_it(self):
        self.known.write(self.instance, step=1)
        folder = self.state_path / LIVE_FOLDER
        path, = folder.iterdir()
        self.assertEqual((0o700, 0o600), (
            stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(path.stat().st_mode)))

    def test_an_instance_without_one_has_none(self):
        self.assertIsNone(self.known.load(self.context, self.instance))
        self.known.remove(self.instance)

    def test_one_that_cannot_be_removed_is_left(self):
        """The migration has ended, and must not fail because of its checkpoint."""
        (self.state_path / LIVE_FOLDER).write_text('not a folder')
        self.assertRaises(OSError, self.known.write, self.instance, step=1)
        self.known.remove(self.instance)

    def test_a_damaged_one_is_an_error(self):
        self.known.write(self.instance, step=1)
        path, = (self.state_path / LIVE_FOLDER).iterdir()
        path.write_text('{')
        self.assertRaises(ValueError, self.known.load, self.context, self.instance)

    def test_only_those_of_other_instances_of_the_host_are_removed(self):
        gone, other = str(uuid.uuid4()), MigrationCheckpoints(self.state_path, 'cmp2', LIVE_FOLDER)
        self.known.write(self.instance, step=1)
        self.known.write(gone, step=1)
        other.write(gone, step=2)
        self.known.remove_all_but([self.instance])
        self.assertEqual([f'cmp1-{self.instance}.json', f'cmp2-{gone}.json'], self.files())
