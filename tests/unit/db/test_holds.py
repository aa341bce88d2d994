"""Room that is held, in the control database."""

import dataclasses
import datetime
import itertools

import testtools

from kronos_nova import exception
from kronos_nova.db import future_times
from kronos_nova.db import holds
from kronos_nova.db import retention
from kronos_nova.objects import hold
from kronos_nova.objects.shape import Shape
from tests.unit.db import fixtures

WIDE = Shape(name='wide', vcpus=8, memory_mb=4096, disk_gb=10, id='7', extra_specs={
    'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2'})


def wish(uuid, now, **more):
    return hold.Hold(**{
        'uuid': uuid, 'aggregate': 'gpu', 'shape': WIDE, 'count': 2, 'state': hold.REQUESTED,
        'requested_by': 'jane', 'requested_at': now, 'hold_seconds': 1800,
        'expires_at': now + datetime.timedelta(seconds=100), **more})


class HoldsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.now = self.database.utcnow()
        self.holds = holds.Holds(self.database)

    def test_all_of_it_is_kept(self):
        wanted = wish('r1', self.now, hosts={'a': 2}, known=('old',), used={'new': 'a'},
                      project_id='p', moves=3, memory_mb=512)
        self.holds.request(wanted)
        self.holds.request(wanted)  # a try whose answer was lost
        [found] = self.holds.in_states(hold.OPEN)
        self.assertEqual(wanted, found)
        self.assertEqual(WIDE.cells, found.shape.cells)

    def test_a_hold_of_the_future_expires_in_time(self):
        tomorrow = self.now + datetime.timedelta(days=1)    # by a wrong clock
        self.holds.request(wish('r1', tomorrow))
        self.assertEqual({'holds': 1}, future_times.FutureTimes(self.database).correct(self.now))
        [found] = self.holds.in_states(hold.OPEN)
        self.assertEqual((self.now, self.now + datetime.timedelta(seconds=100)),
                         (found.requested_at, found.expires_at))

    def test_a_hold_stays_until_nothing_is_allocated_for_it(self):
        for uuid, consumers in (('r1', {'c': 'a'}), ('r2', {})):
            self.holds.request(wish(uuid, self.now, state=hold.EXPIRED, consumers=consumers))
        self.assertEqual(['r1'], [each.uuid for each in self.holds.with_consumers()])
        _row, old = retention.SELECTS['holds'](self.now + datetime.timedelta(days=1))
        with self.database.reader() as session:
            self.assertEqual(['r2'], session.scalars(old).all())

    def test_a_state_is_followed_only_by_those_of_the_table(self):
        for n, (old, new) in enumerate(itertools.product(hold.HOLD_TRANSITIONS, repeat=2)):
            each = wish(f'r{n}', self.now, state=old)
            self.holds.request(each)
            if new in hold.HOLD_TRANSITIONS[old]:
                self.assertTrue(self.holds.enter(each, new))
                self.assertEqual(new, self.holds.get(each.uuid).state)
            else:
                self.assertRaises(exception.IllegalHoldTransition, self.holds.enter, each, new)

    def test_what_was_read_before_another_changed_it_changes_nothing(self):
        known = wish('r1', self.now)
        self.holds.request(known)
        self.assertTrue(self.holds.enter(known, hold.RELEASED))
        self.assertFalse(self.holds.enter(known, hold.MAKING))
        self.assertFalse(self.holds.note(known, problem='late'))
        self.assertEqual((hold.RELEASED, ''), (self.holds.get('r1').state,
                                               self.holds.get('r1').problem))

    def test_it_is_kept_while_it_is_made_and_held_and_its_time_is_not_over(self):
        for state in hold.HOLD_TRANSITIONS:
            self.holds.request(wish(state, self.now, state=state))
        self.holds.request(wish('over', self.now, state=hold.HELD, expires_at=self.now))
        self.assertEqual({hold.MAKING, hold.HELD}, {each.uuid for each in self.holds.in_force()})

    def test_what_is_over_expires_once(self):
        self.holds.request(wish('r1', self.now, state=hold.HELD))
        later = self.now + datetime.timedelta(seconds=100)
        self.assertEqual(['r1'], [each.uuid for each in self.holds.expire(later)])
        self.assertEqual([], self.holds.expire(later))
        self.assertEqual(hold.EXPIRED, self.holds.get('r1').state)

    def test_one_that_there_is_not_is_said_to_be_so(self):
        self.assertRaises(exception.HoldNotFound, self.holds.get, 'none')


class LeftTest(testtools.TestCase):
    def test_what_has_come_takes_its_place(self):
        found = wish('r1', datetime.datetime.now(datetime.UTC), hosts={'a': 2, 'b': 1})
        self.assertEqual({'a': 2, 'b': 1}, found.left())
        used = dataclasses.replace(found, used={'s1': 'a', 's2': 'b'})
        self.assertEqual({'a': 1}, used.left())
