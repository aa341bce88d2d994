"""The migration in Nova that the executor requested for a move."""

import datetime

import testtools

from kronos_nova.executor import compute
from kronos_nova.objects import move as moves

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
MOVE = moves.MoveRecord(
    uuid='move', plan_uuid='plan', aggregate='gpu', ordinal=1, phase='drain', instance_uuid='vm1',
    source='a', destination='b', memory_mb=2048, reason='drain', state=moves.MIGRATING,
    not_before=NOW, created_at=NOW, requested_at=NOW)


def listed(number, status):
    return compute.ListedMigration(number=number, uuid=f'm{number}', status=status, source='a',
                                   created_at=NOW)


class RequestedMigrationsTest(testtools.TestCase):
    def found(self, before, after):
        """The number of the migration that is found after a request."""
        requested = compute.RequestedMigrations()
        requested.about_to_ask(MOVE, before)
        found = requested.find(MOVE, after)
        return found and found.number

    def test_a_migration_from_before_the_request_is_not_the_requested_one(self):
        before = [listed(1, 'error'), listed(2, 'confirmed')]
        self.assertIsNone(self.found(before, before))
        self.assertEqual(3, self.found(before, [*before, listed(3, 'pre-migrating')]))

    def test_nova_may_use_a_record_again_that_an_earlier_request_left(self):
        before = [listed(1, 'confirmed'), listed(2, 'pre-migrating')]
        for status in ('pre-migrating', 'migrating', 'finished', 'error'):
            self.assertEqual(2, self.found(before, [before[0], listed(2, status)]))
