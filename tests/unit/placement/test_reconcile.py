"""Live migrations whose conductor worker died while it prepared them, and who ends them when."""

import testtools

from kronos_nova import exception
from kronos_nova.db import tasks
from kronos_nova.objects import migration_status
from kronos_nova.placement import audit
from kronos_nova.placement import reconcile
from kronos_nova.placement import records
from tests.unit.db import fixtures


class RecordedNova:
    """Remembers what was given up and set free; ``accepted_at`` is {migration: time of creation},
    all of instance vm1, ``marked_at`` {instance: when it was marked as migrating}."""

    def __init__(self, clock):
        self.clock = clock
        self.accepted_at, self.marked_at = {}, {}
        self.given_up, self.freed, self.unreadable = [], [], set()
        self.gives_up = lambda uuid: True

    def recent(self, seconds):
        return {}, []

    def accepted(self):
        return [records.Migration(
            uuid=uuid, instance_uuid='vm1', kind=migration_status.LIVE, status='accepted',
            source='a', destination='b', is_source_up=True,
            settled_for=(self.clock() - at).total_seconds())
            for uuid, at in self.accepted_at.items()]

    def end_stale(self, before):
        return []

    def marked(self, before):
        return frozenset(uuid for uuid, at in self.marked_at.items() if at <= before)

    def unbegun(self, instance_uuid, created_before):
        return [uuid for uuid, at in self.accepted_at.items() if at <= created_before]

    def set_free(self, instance_uuid, marked_before):
        if instance_uuid in self.unreadable:
            raise exception.InventoryError(problem='its cell does not answer')
        self.freed.append(instance_uuid)
        self.marked_at.pop(instance_uuid, None)

    def give_up(self, migration_uuid):
        self.given_up.append(migration_uuid)
        done = self.gives_up(migration_uuid)
        if done:
            self.accepted_at.pop(migration_uuid, None)
        return done


class DeadTasksTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        database = self.useFixture(fixtures.ControlDatabase()).database
        self.clock = fixtures.Clock()
        self.nova = RecordedNova(self.clock)
        self.theirs = tasks.Tasks(database, 'theirs', self.clock)
        self.reconciler = reconcile.Reconciler(
            client=None, nova=self.nova, journal=None,
            tasks=tasks.Tasks(database, 'ours', self.clock), limits=audit.AuditLimits(),
            task_timeout=60, clock=self.clock)

    def look(self, seconds):
        """Let time pass, and look."""
        self.clock.go(seconds)
        list(self.reconciler.run(3600))
        return self.nova.given_up

    def migrates(self, uuid='migration'):
        self.nova.accepted_at[uuid] = self.clock()

    def assert_all_forgotten(self):
        self.assertEqual(frozenset(), self.theirs.in_progress())

    def test_one_that_had_begun_is_given_up_when_its_worker_is_silent_for_long(self):
        self.theirs.announce('key', 'vm1')
        self.migrates()
        self.assertTrue(self.theirs.begin('key', 'migration'))
        self.assertEqual([], self.look(59))
        self.assertEqual(['migration'], self.look(2))
        self.assert_all_forgotten()

    def test_one_that_nova_had_just_recorded_too(self):
        self.theirs.announce('key', 'vm1')
        self.migrates()
        self.assertEqual([], self.look(59))
        self.assertEqual(['migration'], self.look(2))
        self.assertEqual([], self.nova.freed)
        self.assertFalse(self.theirs.begin('key', 'migration'))
        self.assert_all_forgotten()

    def test_an_instance_of_which_nova_has_no_record_yet_is_set_free(self):
        self.theirs.announce('key', 'vm1')
        self.look(61)
        self.assertEqual(([], ['vm1']), (self.nova.given_up, self.nova.freed))
        self.assert_all_forgotten()

    def test_an_instance_without_a_task_is_set_free_after_an_hour(self):
        self.nova.marked_at['vm1'] = self.clock()
        self.look(3599)
        self.assertEqual([], self.nova.freed)
        self.look(2)
        self.assertEqual(['vm1'], self.nova.freed)

    def test_one_that_cannot_be_set_free_keeps_none_of_the_others_waiting(self):
        for name in ('broken', 'fine'):
            self.nova.marked_at[name] = self.clock()
        self.nova.unreadable.add('broken')
        self.look(3601)
        self.assertEqual(['fine'], self.nova.freed)
        self.nova.unreadable.clear()
        self.look(60)
        self.assertEqual(['fine', 'broken'], self.nova.freed)

    def test_but_not_while_a_worker_is_at_it(self):
        self.nova.marked_at['vm1'] = self.clock()
        self.theirs.announce('key', 'vm1')
        self.clock.go(3700)
        self.theirs.beat()
        self.look(1)
        self.assertEqual([], self.nova.freed)

    def test_a_live_worker_may_take_its_time(self):
        self.theirs.announce('key', 'vm1')
        self.migrates()
        for _ in range(20):
            self.theirs.beat()
            self.assertEqual([], self.look(59))
        self.theirs.begin('key', 'migration')
        for _ in range(20):
            self.theirs.beat()
            self.assertEqual([], self.look(59))
        self.assertTrue(self.theirs.hand_over('migration'))

    def test_what_a_live_worker_left_is_given_up_like_what_a_dead_one_did(self):
        for name in ('left', 'kept'):
            self.theirs.announce(f'{name} key', name)
            self.theirs.begin(f'{name} key', name)
        self.theirs.leave('left key', 'left')
        self.clock.go(61)
        self.theirs.beat()
        self.assertEqual(['left'], self.look(1))

    def test_what_was_asked_for_after_its_death_is_not_touched(self):
        self.theirs.announce('key', 'vm1')
        self.clock.go(30)
        self.migrates('another')
        self.assertEqual([], self.look(60))
        self.assert_all_forgotten()

    def test_nor_a_task_that_another_worker_has_recorded(self):
        self.theirs.announce('key', 'vm1')
        other = tasks.Tasks(self.theirs.database, 'other', self.clock)
        other.announce('other key', 'vm1')
        self.migrates()
        other.begin('other key', 'migration')
        self.clock.go(50)
        other.beat()
        self.assertEqual([], self.look(15))
        self.assertEqual({'migration'}, self.theirs.in_progress())

    def test_what_cannot_be_given_up_now_is_with_a_later_look(self):
        self.theirs.announce('key', 'vm1')
        self.migrates()
        self.nova.gives_up = lambda uuid: False
        self.look(61)
        self.look(60)
        self.nova.gives_up = lambda uuid: True
        self.assertEqual(['migration'] * 3, self.look(60))
        self.assert_all_forgotten()

    def test_a_migration_without_a_task_is_ended_after_an_hour_and_tried_again(self):
        self.migrates()
        self.assertEqual([], self.look(3599))

        def dies(uuid):
            # The process that gave it up had ended it. Its instance's task state is not cleared.
            self.nova.accepted_at.clear()
            raise KeyboardInterrupt

        self.nova.gives_up = dies
        self.assertRaises(KeyboardInterrupt, self.look, 2)
        self.nova.gives_up = lambda uuid: True
        self.assertEqual(['migration'] * 2, self.look(60))
        self.assert_all_forgotten()

    def test_one_that_cannot_be_read_keeps_none_of_the_others_waiting(self):
        for name in ('broken', 'fine'):
            self.theirs.announce(f'{name} key', name)
            self.theirs.begin(f'{name} key', name)

        def fails(uuid):
            if uuid == 'broken':
                raise exception.InventoryError(problem='its cell does not answer')
            return True

        self.nova.gives_up = fails
        self.look(61)
        self.assertEqual({'broken'}, self.theirs.in_progress())
        self.nova.gives_up = lambda uuid: True
        self.look(60)
        self.assert_all_forgotten()

    def test_one_that_was_handed_over_is_waited_for_longer(self):
        self.theirs.announce('key', 'vm1')
        self.theirs.begin('key', 'migration')
        self.theirs.hand_over('migration')
        self.assertEqual([], self.look(5 * 60 - 1))
        self.assertEqual(['migration'], self.look(2))
