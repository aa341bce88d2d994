"""Room that is made for servers that found no host, without that an operator asked for it."""

import dataclasses
import datetime

import fixtures

from kronos_nova.cycle import refused_boots
from kronos_nova.objects import automation
from kronos_nova.objects import hold
from kronos_nova.objects import plan as plans
from kronos_nova.objects.automation import PAUSE
from kronos_nova.objects.automation import Switch
from tests.unit.cycle import test_evaluation
from tests.unit.cycle import test_room
from tests.unit.db import test_holds


class RefusedBootsTest(test_room.RoomTestCase):
    """Room for a server that takes a whole host, unless the one server leaves b."""

    def wish(self, **more):
        self.holds.request(test_holds.wish('r1', self.clock(), **{
            'shape': test_room.WHOLE, 'count': 1, 'aggregate': hold.ANY,
            'requested_by': hold.KRONOS,
            'expires_at': self.clock() + datetime.timedelta(seconds=hold.CHOICE_SECONDS), **more}))

    def found(self):
        known = self.holds.get('r1')
        return known.state, known.aggregate, known.moves

    def test_it_is_proposed_below_auto(self):
        self.wish()
        self.evaluate(self.level(gpu='observe'))
        self.assertEqual((hold.PROPOSED, 'gpu', 1), self.found())
        self.assertEqual([], self.journal.moves())

    def test_its_moves_begin_at_auto(self):
        self.wish()
        self.evaluate()
        [move] = self.journal.moves()
        self.assertEqual(('vm4', plans.MAKE_ROOM), (move.instance_uuid, move.phase))
        self.assertEqual((hold.MAKING, 'gpu', 1), self.found())

    def test_none_is_made_in_an_aggregate_that_is_off(self):
        self.wish()
        self.evaluate(self.level(gpu=automation.OFF))
        self.assertEqual((hold.REQUESTED, hold.ANY, 0), self.found())

    def test_it_is_proposed_while_kronos_is_paused(self):
        self.ports().switches.set(Switch(kind=PAUSE, aggregate='gpu', value='pause',
                                         set_at=self.clock(), set_by='jane'))
        self.wish()
        self.evaluate()
        self.assertEqual((hold.PROPOSED, 'gpu', 1), self.found())

    def test_none_is_made_where_there_is_room(self):
        self.wish(shape=test_room.FITS)
        self.evaluate()
        self.assertEqual((hold.REQUESTED, hold.ANY, 0), self.found())

    def test_hosts_of_another_zone_do_not_count(self):
        self.wish(availability_zone='az2')
        self.evaluate()
        self.assertEqual((hold.REQUESTED, hold.ANY, 0), self.found())

    def test_hosts_of_its_zone_count(self):
        real = self.cloud.read
        self.cloud.read = lambda *args: dataclasses.replace(
            found := real(*args), aggregates=tuple(
                dataclasses.replace(each, availability_zone='az2') for each in found.aggregates))
        self.wish(availability_zone='az2')
        self.evaluate(self.level(gpu='approve'))
        self.assertEqual((hold.PROPOSED, 'gpu', 1), self.found())

    def test_it_is_given_up_after_a_while(self):
        self.wish(availability_zone='az2')
        self.clock.go(hold.CHOICE_SECONDS + 1)
        self.evaluate()
        self.assertEqual(hold.EXPIRED, self.holds.get('r1').state)

    def test_few_are_looked_for_in_one_evaluation_the_newest_first(self):
        for number in range(refused_boots.TRIED + 1):
            self.holds.request(test_holds.wish(
                f'w{number}', self.clock(), shape=test_room.WHOLE, count=1, aggregate=hold.ANY,
                requested_by=hold.KRONOS, project_id=f'p{number}',
                expires_at=self.clock() + datetime.timedelta(seconds=hold.CHOICE_SECONDS)))
            self.clock.go(1)
        self.evaluate(self.level(gpu='approve'))
        self.assertEqual([hold.REQUESTED] + refused_boots.TRIED * [hold.PROPOSED], [
            self.holds.get(f'w{number}').state for number in range(refused_boots.TRIED + 1)])

    def test_an_error_in_it_keeps_no_plan_from_being_made(self):
        self.wish()
        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.cycle.refused_boots.choose_aggregates', lambda *_args: 1 // 0))
        [report] = self.evaluate(test_evaluation.RULES)
        self.assertEqual(plans.PLANNED, report.outcome)
