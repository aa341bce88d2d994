"""Every combination of a migration's status with states and hosts of its instance."""

import itertools

import testtools

from kronos_nova.objects import migration_meaning as m
from kronos_nova.objects import migration_status as s


class MeaningTest(testtools.TestCase):
    def test_all_combinations(self):
        statuses = (*s.LEAVING, *s.ARRIVED, *s.ENDED)
        states = (None, 'migrating', 'resize_finish', 'rebuilding')
        for status, task_state, vm_state, host, deleted in itertools.product(
                statuses, states, ('active', m.RESIZED, 'error'),
                ('a', 'b', 'c', None), (False, True)):
            found = m.meaning(status, 'a', 'b', m.InstanceNow(
                host=host, vm_state=vm_state, task_state=task_state, is_deleted=deleted))
            self.assertEqual(self.expected(status, task_state, vm_state, host, deleted), found)

    def expected(self, status, task_state, vm_state, host, deleted):
        if status in s.ENDED:
            return m.OVER
        acts = task_state or (status in s.ARRIVED and vm_state == m.RESIZED)
        if deleted or host not in ('a', 'b') or not acts:
            return m.STALE
        return m.WAITS if status in s.ARRIVED else m.MOVES

    def test_an_instance_that_is_gone(self):
        self.assertEqual(m.STALE, m.meaning('running', 'a', 'b', None))
        self.assertEqual(m.OVER, m.meaning('error', 'a', 'b', None))
