"""The report of a drain names the reason that it waits."""

import datetime
import uuid

from kronos_nova.db import drains as db_drains
from kronos_nova.db import switches
from kronos_nova.drain import states as drains
from kronos_nova.objects import automation
from kronos_nova.objects import snapshot
from tests.unit.cycle import test_evaluation
from tests.unit.db import fixtures


class WaitsTest(test_evaluation.CycleTestCase):
    def setUp(self):
        super().setUp()
        self.drains = db_drains.Drains(self.database)
        self.cloud.under_way = ()
        read = self.cloud.read
        self.patch(self.cloud, 'read', lambda *given: read(*given).with_moves_under_way(
            self.cloud.under_way))

    def waits_for(self, state=drains.DRAINING):
        self.drain(state)
        return self.evaluated()

    def drain(self, state):
        wanted = drains.Drain(
            uuid=str(uuid.uuid4()), host='b', aggregate='gpu', state=state,
            requested_by='jane', requested_at=self.clock())
        self.drains.request([wanted])
        if state != drains.REQUESTED:
            self.cloud.status['b'] = 'disabled'

    def evaluated(self):
        self.run_cycle()
        return self.drains.latest('b').waits_for

    def test_that_the_host_is_disabled(self):
        self.assertEqual('a conductor or kronos-executor that disables the host',
                         self.waits_for(drains.REQUESTED))

    def test_moves_in_progress(self):
        self.drain(drains.DRAINING)
        self.run_cycle()
        [move] = self.journal.moves()
        self.clock.go(60)
        self.journal.dispatch(test_evaluation.WIDE, self.clock)
        self.assertEqual(f'moves in progress: {move.uuid}', self.evaluated())

    def test_a_plan_of_the_aggregate(self):
        self.run_cycle()
        [plan] = self.journal.plans()
        self.cloud.placed['vm5'] = 'b'
        self.assertEqual(f'the end of plan {plan.uuid}', self.waits_for())

    def test_a_pause(self):
        switches.SwitchBoard(self.database).set(automation.Switch(
            kind=automation.PAUSE, aggregate='gpu', value=automation.PAUSE,
            set_at=self.clock(), set_by='jane', reason='new switches'))
        self.assertIn('Kronos is paused: ', self.waits_for())

    def test_a_migration_of_others(self):
        self.cloud.under_way = (snapshot.MoveUnderWay(
            instance_uuid='vm4', source='b', destination='a'),)
        self.assertEqual(
            "the end of Nova's migration of server vm4 from b to a",
            self.waits_for())

    def test_a_server_whose_migration_nova_has_not_ended(self):
        self.drain(drains.DRAINING)
        self.run_cycle()
        [move] = self.journal.moves()
        self.clock.go(60)
        self.journal.dispatch(test_evaluation.WIDE, self.clock)
        self.cloud.placed['vm4'] = 'a'
        self.assertEqual(f'the end of move {move.uuid}: server vm4 is on a, and Nova has not '
                         'ended its migration yet', self.evaluated())

    def test_nothing_once_the_host_is_empty(self):
        self.drain(drains.DRAINING)
        self.cloud.placed = {'vm1': 'a'}
        self.assertEqual('', self.evaluated())
        self.assertEqual(drains.EMPTY, self.drains.latest('b').state)

    def test_nothing_once_the_drain_has_ended(self):
        for number, state in enumerate((drains.RELEASING, drains.OVERDUE), 1):
            self.drain(drains.DRAINING)
            found = self.drains.latest('b')
            self.drains.note(found, drains.ACTIVE, wait=drains.Wait(why='moves in progress: one'))
            self.drains.end(found, (drains.DRAINING,), state, self.clock(), 'jane')
            self.assertEqual((state, ''), (self.drains.latest('b').state,
                                           self.drains.latest('b').waits_for))
            fixtures.bring(self.drains, found, drains.RELEASED)
            self.clock.go(number)

    def test_nothing_before_its_moves_are_sent_out(self):
        """The plan is the one of the drain, and starts in the same evaluation."""
        self.assertEqual('', self.waits_for())
        self.assertEqual(datetime.timedelta(0), self.clock() - self.drains.latest('b').looked_at)
