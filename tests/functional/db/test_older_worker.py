"""A worker from before the rename of rooms and modules and one of this code, side by side on one
control database and one broker, as in a rolling upgrade.

``older/`` has what the older one (commit 0624aae, 22 revisions of the control database) wrote:
``control.sql``, its database, and ``messages.json``, its messages and the words that it knows.
Either code has to read what the other writes, or to refuse the database with the remedy.
"""

import collections
import dataclasses
import datetime
import json
import pathlib
import sqlite3

import fixtures
import sqlalchemy as sa
import testtools

from kronos_nova import exception
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal as db_journal
from kronos_nova.db import load_stats
from kronos_nova.db import migrate
from kronos_nova.db import server_names
from kronos_nova.db import switches
from kronos_nova.engine import locks
from kronos_nova.engine import planning_worker
from kronos_nova.executor import broker
from kronos_nova.executor import liveness
from kronos_nova.executor import messages
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans

FOLDER = pathlib.Path(__file__).with_name('older')
REVISION = '0022'
WRITTEN_AT = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)


def of_version(version):
    return tuple(map(int, version.split('.')))


class OlderWorkerTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.facts = json.loads((FOLDER / 'messages.json').read_text())
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'kronos.sqlite')
        connection = sqlite3.connect(path)
        connection.executescript((FOLDER / 'control.sql').read_text())
        connection.close()
        self.engine = self.engine_of(path)
        self.database = db_engine.Database(self.engine)
        self.journal = db_journal.Journal(self.database, 'newer:2')

    def engine_of(self, path):
        engine = db_engine.create_engine(f'sqlite:///{path}')
        self.addCleanup(engine.dispose)
        return engine

    def instances(self, found):
        return [move.instance_uuid for move in found]


class DatabaseTest(OlderWorkerTestCase):
    def test_its_database_is_as_this_code_makes_one_or_is_refused(self):
        """A change of the one revision gives it another number, so that 0022 is refused."""
        head = migrate.head(migrate.CONTROL)
        if head != REVISION:
            self.assert_refused()
            return
        migrate.check(self.engine, migrate.CONTROL)
        self.assertEqual((head, head), migrate.sync(self.engine, migrate.CONTROL))

        fresh = self.engine_of(self.useFixture(fixtures.TempDir()).path + '/kronos.sqlite')
        migrate.sync(fresh, migrate.CONTROL)
        self.assertEqual(self.schema(fresh), self.schema(self.engine))

    def schema(self, engine):
        inspector = sa.inspect(engine)
        return {table: (
            {each['name']: (str(each['type']), each['nullable'])
             for each in inspector.get_columns(table)},
            inspector.get_pk_constraint(table)['constrained_columns'],
            {(each['name'], tuple(each['column_names']), each['unique'])
             for each in inspector.get_indexes(table)}) for table in inspector.get_table_names()}

    def test_a_database_of_an_older_revision_is_refused_with_the_remedy(self):
        with self.engine.begin() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = '0021'"))
        self.assert_refused()

    def assert_refused(self):
        for refuse in (migrate.check, migrate.sync):
            error = self.assertRaises(
                exception.DatabaseVersionError, refuse, self.engine, migrate.CONTROL)
            self.assertIn('are not upgraded', str(error))
            self.assertIn('kronos-manage db sync control', str(error))


class JournalTest(OlderWorkerTestCase):
    def setUp(self):
        super().setUp()
        if migrate.head(migrate.CONTROL) != REVISION:
            self.skipTest('the two do not share a database: this one refuses that of the older one')

    def test_its_moves_are_left_to_it_while_it_lives(self):
        self.assertEqual([('older:1', 'executor')],
                         [worker[:2] for worker in self.journal.workers(WRITTEN_AT)])
        silent = liveness.Liveness(lambda: 0.0).silent(self.journal.owners(), 60)
        self.assertEqual({}, silent)
        self.assertEqual([], self.journal.adopt(WRITTEN_AT + 9 * SECOND, silent))

    def test_its_moves_are_carried_on_once_it_is_dead(self):
        now = WRITTEN_AT + 600 * SECOND
        [move] = self.journal.adopt(now, self.journal.owners())
        self.assertEqual(('vm1', moves.MIGRATING), (move.instance_uuid, move.state))
        move = self.journal.advance(move, moves.VERIFYING, now)
        self.journal.advance(move, moves.COMPLETED, now, finished_at=now)
        found = {each.instance_uuid: each.state for each in self.journal.moves()}
        self.assertEqual(moves.COMPLETED, found['vm1'])

    def test_what_it_sent_is_taken_on_and_what_it_planned_is_sent(self):
        task = self.facts['task']
        move = self.journal.claim(task['move_uuid'], WRITTEN_AT)
        self.assertEqual('vm2', move.instance_uuid)
        caps = moves.Caps(total=9, per_source=9, per_destination=9)
        self.assertEqual(['vm3'], self.instances(self.journal.dispatch(
            caps, lambda: WRITTEN_AT + SECOND)))

    def test_its_open_plan_keeps_another_from_being_made(self):
        report = plans.AggregateReport(name='gpu', outcome=plans.PLANNED, mode='spread',
                                       planner='spread')
        self.assertRaises(exception.PlanPending, self.journal.record_plan, report,
                          plans.EXECUTING, WRITTEN_AT, WRITTEN_AT + SECOND)

    def test_what_else_it_wrote_is_read(self):
        found = switches.SwitchBoard(self.database).read()
        self.assertEqual('approve', found.level('gpu', automation.Defaults(level='auto')))
        self.assertEqual('jane', found.pause('db').set_by)
        last = cycles.Cycles(self.database).of_aggregate('gpu')
        report = plans.AggregateReport.from_json(last.report)
        self.assertEqual(['vm1', 'vm2', 'vm3'], self.instances(report.moves))
        self.assertEqual((), report.notes)
        known = cooldowns.Cooldowns(self.database)
        self.assertEqual({'vm4'}, set(known.cooling(cooldowns.INSTANCE, WRITTEN_AT)))
        self.assertEqual({'vm5'}, set(known.quarantined(WRITTEN_AT)))
        stats = load_stats.LoadStatsStore(self.database).read(('gpu',))['gpu']['cpu']
        self.assertEqual((('vm1', 'vm2'), 9.0), (stats.vms, stats.figures[1, 4]))
        self.assertEqual({'vm1': 'web-1'},
                         server_names.ServerNames(self.database).read(['vm1']))


class WordsTest(OlderWorkerTestCase):
    """What this code writes is read by the older one, which knows no other words."""

    def test_moves_and_plans_have_the_states_that_it_knows(self):
        self.assertEqual(self.facts['transitions'],
                         {old: sorted(new) for old, new in moves.TRANSITIONS.items()})
        words = {value for name, value in vars(plans).items()
                 if name.isupper() and isinstance(value, str)}
        self.assertEqual(set(), words - set(self.facts['words']))
        self.assertEqual(self.facts['levels'], list(automation.LEVELS))

    def test_it_reads_reports_of_this_code(self):
        """It passes over keys that it does not know, but an object only where it knows the key;
        what it does not find is by default."""
        report = plans.AggregateReport(
            name='gpu', outcome=plans.PLANNED, mode='spread', planner='spread', moves=(
                plans.PlannedMove(
                    order=1, phase=plans.SPREAD, instance_uuid='vm1', source='a', destination='b',
                    memory_mb=1, combined_after=0.1, reason='spreads'),))
        objects = collections.Counter()
        for tree in (json.loads(report.to_json()), json.loads(report.to_summary_json())):
            for part in (tree, *tree['moves']):
                objects.update(name for name, value in part.items() if isinstance(value, dict))
        self.assertEqual(set(), objects.keys() - set(self.facts['optional_parts']))
        for name, keys in self.facts['report_keys'].items():
            here = {each.name for each in dataclasses.fields(getattr(plans, name))}
            self.assertEqual(set(), set(keys) - here, f'{name} lacks what the older one reads')


class BrokerTest(OlderWorkerTestCase):
    def move(self, instance):
        """A MoveRecord as the facts have it."""
        [row] = sqlite3.connect(self.engine.url.database).execute(
            'SELECT uuid, plan_uuid FROM moves WHERE instance_uuid = ?', [instance])
        task = self.facts['task']
        return moves.MoveRecord(
            uuid=row[0], plan_uuid=row[1], ordinal=1, state=moves.DISPATCHED, memory_mb=1024,
            reason='spreads', not_before=WRITTEN_AT, created_at=WRITTEN_AT, **{
                name: task[name] for name in ('aggregate', 'instance_uuid', 'source', 'destination',
                                              'phase')})

    def test_a_task_has_the_same_form_for_both(self):
        move = self.move('vm2')
        self.assertEqual(self.facts['task'], messages.task(move))
        old, new = (of_version(version) for version in (
            self.facts['task_version'], messages.TASK_VERSION))
        self.assertEqual(old[0], new[0])
        accepted = []
        broker.TaskEndpoint(accepted.append).execute_migration({}, task=self.facts['task'])
        self.assertEqual([move.uuid], accepted)

    def test_a_result_has_the_same_form_for_both(self):
        event, payload = self.facts['result']
        self.assertTrue(messages.is_understood(payload['version']))
        here = messages.result(dataclasses.replace(self.move('vm1'), state=moves.COMPLETED))
        self.assertEqual((event, set(payload)), (here[0], set(here[1])))

    def test_topics_are_the_same(self):
        self.assertEqual(self.facts['topics'], [messages.migrations_topic('gpu 1'),
                                                messages.results_topic('gpu 1')])

    def test_locks_are_the_same(self):
        """Both plan an aggregate under one lock."""
        self.assertEqual(self.facts['lock'], locks._name('gpu').decode())


class PlanningWorkerTest(OlderWorkerTestCase):
    def test_an_engine_from_before_the_package_was_upgraded_starts_one_of_this_code(self):
        """It starts a module by its name, and speaks the protocol of the answers."""
        self.assertEqual(self.facts['answers'], [
            planning_worker.PLANNED, planning_worker.NOT_PLANNED, planning_worker.STAYS,
            planning_worker.LEAVES])
        self.assertEqual(self.facts['arguments'], vars(planning_worker.parse(
            'p', ['--answers', '7', '--', '--config-file', 'x'])))
        for module in ('kronos_nova/cmd/cycle.py', 'kronos_nova/plugin/cycle.py'):
            self.assertTrue((pathlib.Path(__file__).parents[3] / module).exists())
