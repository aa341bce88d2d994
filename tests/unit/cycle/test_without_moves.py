"""The contention that there would be without the moves of the last weeks."""

import dataclasses
import datetime

import testtools

from kronos_nova.cycle import without_moves
from kronos_nova.cycle.without_moves import CompletedMove
from kronos_nova.db import models
from kronos_nova.db import sums
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.cycle import test_evaluation

ALWAYS = datetime.date(2000, 1, 1), datetime.date(2100, 1, 1)


def by_load(source, destination, uuid='vm', phase=plans.SPREAD):
    return CompletedMove(instance_uuid=uuid, source=source, destination=destination, phase=phase)


class HomesTest(testtools.TestCase):
    def homes(self, *past, now='b'):
        return without_moves.homes(past, {'vm': now})

    def test_a_server_would_be_where_it_was_before_the_first_move(self):
        self.assertEqual({'vm': ('b', 'a')}, self.homes(by_load('a', 'b')))
        self.assertEqual({'vm': ('c', 'a')}, self.homes(by_load('a', 'b'), by_load('b', 'c'),
                                                        now='c'))

    def test_a_server_that_came_back_is_at_home(self):
        self.assertEqual({}, self.homes(by_load('b', 'a'), by_load('a', 'b')))

    def test_what_others_moved_since_is_where_they_put_it(self):
        self.assertEqual({}, self.homes(by_load('a', 'b'), now='c'))
        self.assertEqual({'vm': ('b', 'c')}, self.homes(by_load('a', 'd'), by_load('c', 'b')))

    def test_moves_that_are_not_made_for_load_would_have_been_made(self):
        for phase in (plans.EVACUATE, plans.AFFINITY):
            self.assertEqual({}, self.homes(by_load('a', 'b', phase=phase)))
            self.assertEqual({}, self.homes(by_load('a', 'c'), by_load('c', 'b', phase=phase)))

    def test_servers_that_are_gone_count_for_nothing(self):
        self.assertEqual({}, self.homes(by_load('a', 'b', uuid='gone')))


class EvaluationTest(test_evaluation.CycleTestCase):
    """Hosts a and b; a server is a tenth of the load of either."""

    def setUp(self):
        super().setUp()
        self.cloud.placed = {f'vm{number}': 'ab'[number % 2] for number in range(16)}

    def moved(self, uuid, source='a', destination='b', days=1, phase=plans.SPREAD):
        """Have a move that ended some days ago."""
        at = self.clock() - datetime.timedelta(days=days)
        with self.database.writer() as session:
            if session.get(models.PlanRow, 'plan') is None:
                session.add(models.PlanRow(
                    uuid='plan', aggregate='gpu', mode='spread', planner='spread', state='done',
                    created_at=at, expires_at=at, move_count=1))
            session.add(models.MoveRow(
                uuid=f'move-{uuid}', plan_uuid='plan', aggregate='gpu', ordinal=1,
                depends_on='[]', phase=phase, instance_uuid=uuid, source=source,
                destination=destination, memory_mb=512, reason='', state=moves.COMPLETED,
                not_before=at, created_at=at, finished_at=at, settled_at=at))

    def found(self):
        [report] = self.run_cycle().aggregates
        without = report.without_moves
        return without.hot_hosts, without.contended_servers

    def test_servers_count_on_the_hosts_that_they_were_moved_off(self):
        self.assertEqual((0, 0), self.found())
        self.moved('vm1')
        self.assertEqual((0, 0), self.found())
        self.moved('vm3')
        self.assertEqual((1, 10), self.found())

    def test_moves_of_long_ago_and_those_that_emptied_hosts_count_for_nothing(self):
        self.moved('vm1', days=plans.REPLAYED.days + 1)
        self.moved('vm3', phase=plans.EVACUATE)
        self.moved('vm5')
        self.assertEqual((0, 0), self.found())

    def test_hosts_that_are_not_up_would_have_none_of_them(self):
        self.moved('vm1')
        self.moved('vm3')
        self.cloud.status['a'] = 'disabled'
        self.assertEqual((0, 0), self.found())

    def test_without_data_nothing_is_known(self):
        self.cloud.query = lambda query: test_evaluation.metrics.Vector(())
        [report] = self.run_cycle().aggregates
        self.assertIsNone(report.without_moves)

    def test_sums_of_the_day_have_both(self):
        self.moved('vm1')
        self.moved('vm3')
        observe = dataclasses.replace(
            test_evaluation.RULES, automation=test_evaluation.Defaults(level='observe'))
        for _cycle in range(2):
            self.run_cycle(observe)
            self.clock.go(60)
        [found] = sums.Sums(self.database).loads(*ALWAYS, (), 'gpu')
        self.assertEqual((60.0, 0.0, 0.0, 60.0, 60.0, 600.0), (
            found.observed_seconds, found.hot_seconds, found.contended_seconds,
            found.replayed_seconds, found.unmoved_hot_seconds, found.unmoved_contended_seconds))
