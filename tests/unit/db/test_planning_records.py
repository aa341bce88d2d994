import datetime

import sqlalchemy as sa
import testtools
from fixtures import TempDir
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles as db_cycles
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import scores as db_scores
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures

WIDE = moves.Caps(total=100, per_source=100, per_destination=100)


class ControlDatabaseTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.clock = fixtures.Clock()

    def later(self, seconds):
        return self.clock() + datetime.timedelta(seconds=seconds)


class CooldownsTest(ControlDatabaseTest):
    def setUp(self):
        super().setUp()
        self.cooldowns = cooldowns.Cooldowns(self.database)

    def test_what_cools_is_reported_with_the_seconds_left(self):
        fixtures.cool(self.database, cooldowns.INSTANCE, ['vm1', 'vm2'], self.later(60))
        self.clock.go(20)
        self.assertEqual({'vm1': 40, 'vm2': 40},
                         self.cooldowns.cooling(self.clock())[cooldowns.INSTANCE])
        self.assertEqual({}, self.cooldowns.cooling(self.clock())[cooldowns.AGGREGATE])
        self.clock.go(41)
        self.assertEqual({}, self.cooldowns.cooling(self.clock())[cooldowns.INSTANCE])

    def test_cooling_again_counts_and_never_shortens(self):
        fixtures.cool(self.database, cooldowns.INSTANCE, ['vm1'], self.later(60))
        fixtures.cool(self.database, cooldowns.INSTANCE, ['vm1'], self.later(10))
        self.assertEqual({'vm1': 60}, self.cooldowns.cooling(self.clock())[cooldowns.INSTANCE])
        self.assertEqual({'vm1': 2}, self.cooldowns.times())

    def begin(self, *uuids, phase=plans.SPREAD, begun=()):
        """Start a plan that moves some instances, with their cooldowns of 60 s.

        :param begun: uuids of instances whose moves are requested from Nova
        """
        found = journal.Journal(self.database, 'one')
        found.record_plan(
            fixtures.report([(uuid, 'a', 'b') for uuid in uuids], phase=phase), plans.EXECUTING,
            self.clock(), self.clock(), cooldowns=[
                cooldowns.Cooldown(cooldowns.INSTANCE, uuids, self.later(60))])
        for move in found.dispatch(WIDE, self.clock) if begun else ():
            if move.instance_uuid in begun:
                claimed = found.claim(move.uuid, self.clock())
                found.advance(claimed, moves.MIGRATING, self.clock(), requested_at=self.clock())
        return found

    def cooling(self):
        return self.cooldowns.cooling(self.clock())[cooldowns.INSTANCE]

    def test_an_instance_whose_move_is_abandoned_before_it_began_does_not_cool(self):
        fixtures.cool(self.database, cooldowns.INSTANCE, ['vm1'], self.later(10))
        self.clock.go(20)
        found = self.begin('vm1', 'vm2')
        self.clock.go(5)
        found.abandon(self.clock(), self.later(-4))
        self.assertEqual({}, self.cooling())
        self.assertEqual({'vm1': 1, 'vm2': 0}, self.cooldowns.times())
        found.close_plans(self.clock())
        self.begin('vm2', 'vm3')
        self.assertEqual({'vm2': 60, 'vm3': 60}, self.cooling())
        self.assertEqual({'vm1': 1, 'vm2': 1, 'vm3': 1}, self.cooldowns.times())

    def test_an_instance_whose_move_was_requested_cools(self):
        found = self.begin('vm1', 'vm2', begun=['vm1'])
        for move in found.mine():
            found.advance(move, moves.ABANDONED, self.clock(), finished_at=self.clock())
        self.assertEqual({'vm1': 60, 'vm2': 60}, self.cooling())

    def test_an_instance_whose_move_an_operator_aborts_cools(self):
        found = self.begin('vm1', 'vm2')
        found.request_abort(found.moves()[0].uuid, 'jane', self.clock())
        self.clock.go(5)
        found.abandon(self.clock(), self.later(-4))
        self.assertEqual({'vm1': 55}, self.cooling())

    def test_a_cooldown_of_another_plan_does_not_end_with_an_abandoned_move(self):
        """Moves off hosts that are emptied are planned during cooldowns."""
        fixtures.cool(self.database, cooldowns.INSTANCE, ['vm1'], self.later(60), self.clock())
        for phase in (plans.EVACUATE, plans.SPREAD):
            self.clock.go(1)
            found = journal.Journal(self.database, 'one')
            found.record_plan(fixtures.report([('vm1', 'a', 'b')], phase, phase), plans.EXECUTING,
                              self.clock(), self.clock())
        self.begin('vm2', phase=plans.EVACUATE)
        self.clock.go(5)
        self.assertEqual(3, len(found.abandon(self.clock(), self.later(-4))))
        self.assertEqual({'vm1': 53, 'vm2': 55}, self.cooling())

    def test_a_quarantine_ends_by_time_or_by_hand(self):
        self.cooldowns.quarantine('vm1', 60, 'failed', self.clock())
        self.cooldowns.quarantine('vm2', -1, 'failed', self.clock())
        self.assertEqual({'vm1': 60, 'vm2': -1}, self.cooldowns.quarantined(self.clock()))
        self.clock.go(61)
        self.assertEqual({'vm2': -1}, self.cooldowns.quarantined(self.clock()))
        self.cooldowns.release('vm2')
        self.assertRaises(exception.QuarantineNotFound, self.cooldowns.release, 'vm2')


class CyclesTest(ControlDatabaseTest):
    def test_only_one_worker_begins_a_cycle(self):
        cycles = db_cycles.Cycles(self.database)
        self.assertTrue(cycles.begin('gpu', 'one', self.clock(), 300))
        self.clock.go(299)
        self.assertFalse(cycles.begin('gpu', 'two', self.clock(), 300))
        self.clock.go(1)
        self.assertTrue(cycles.begin('gpu', 'two', self.clock(), 300))
        self.assertFalse(cycles.begin('gpu', 'one', self.clock(), 300))

    def test_imbalanced_cycles_are_counted_in_a_row(self):
        cycles = db_cycles.Cycles(self.database)
        cycles.begin('gpu', 'one', self.clock(), 300)
        counts = []
        for imbalanced in (True, True, False, True):
            cycles.end('gpu', self.clock(), 'planned', imbalanced, '{}')
            counts.append(cycles.imbalanced()['gpu'])
        self.assertEqual([1, 2, 0, 1], counts)


class ScoresTest(ControlDatabaseTest):
    def test_the_weighted_sum_of_fresh_scores(self):
        scores = db_scores.Scores(self.database)
        scores.replace('spread', {'cpu': 0.75, 'memory': 0.25},
                       {'a': {'cpu': 0.4, 'memory': 0.8}}, self.clock())
        self.clock.go(10)
        scores.replace('spread', {'cpu': 0.75, 'memory': 0.25},
                       {'b': {'cpu': 0.2, 'memory': 0.2}}, self.clock())
        self.assertEqual({'a': ('spread', 0.5), 'b': ('spread', 0.2)},
                         scores.combined(self.later(-10)))
        self.assertEqual({'b': ('spread', 0.2)}, scores.combined(self.later(-9)))

    def test_a_host_that_lacks_a_policy_of_others_has_no_weighted_sum(self):
        """Its load is not known; without one of its parts it would look lower than it is."""
        scores, weights = db_scores.Scores(self.database), {'cpu': 0.75, 'memory': 0.25}
        scores.replace('spread', weights, {
            'a': {'cpu': 0.4, 'memory': 0.8}, 'b': {'memory': 0.8}}, self.clock())
        self.assertEqual({'a': ('spread', 0.5)}, scores.combined(self.clock()))
        scores.replace('spread', weights, {'a': {'memory': 0.8}}, self.clock())
        self.assertEqual({'a': ('spread', 0.2), 'b': ('spread', 0.2)},
                         scores.combined(self.clock()))


class DatabaseTest(ControlDatabaseTest):
    def test_what_a_database_refuses_is_one_kind_of_error(self):
        with self.database.writer() as session:
            session.execute(sa.text('DROP TABLE scores'))
        engine = db_engine.create_engine(f'sqlite:///{self.useFixture(TempDir()).path}')
        self.addCleanup(engine.dispose)
        for broken in (self.database, db_engine.Database(engine)):
            self.assertRaises(db_exc.DBError, db_scores.Scores(broken).combined, self.clock())
