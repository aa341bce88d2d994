"""A worker from before the rename of rooms and modules and one of this code, side by side on one
control database and one broker, as in a rolling upgrade.

``older/`` has what the older one (commit 0624aae, 22 revisions of the control database) wrote:
``control.sql``, its database, and ``messages.json``, its messages and the words that it knows.
This code refuses the database with the remedy, and reads the messages.
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
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.engine import locks
from kronos_nova.engine import planning_worker
from kronos_nova.executor import broker
from kronos_nova.executor import messages
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import transitions

FOLDER = pathlib.Path(__file__).with_name('older')
REVISION = '0022'
WRITTEN_AT = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)


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

    def engine_of(self, path):
        engine = db_engine.create_engine(f'sqlite:///{path}')
        self.addCleanup(engine.dispose)
        return engine


class DatabaseTest(OlderWorkerTestCase):
    def test_its_database_is_refused_with_the_remedy(self):
        self.assertNotEqual(REVISION, migrate.head(migrate.CONTROL))
        self.assert_refused()

    def test_nothing_of_its_database_is_changed_and_an_empty_one_beside_it_does(self):
        def dump():
            with sqlite3.connect(self.engine.url.database) as connection:
                return list(connection.iterdump())
        before = dump()
        self.assert_refused()
        self.assertEqual(before, dump())
        self.assertIn('vm1', ''.join(before))
        renewed = self.engine_of(f'{self.engine.url.database}.new')
        migrate.sync(renewed, migrate.CONTROL)
        migrate.check(renewed, migrate.CONTROL)

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


class WordsTest(OlderWorkerTestCase):
    """Words that this code writes are known to the older one."""

    def test_moves_and_plans_have_the_states_that_it_knows(self):
        known = {(old, new) for old, states in self.facts['transitions'].items() for new in states}
        made = {(old, new) for old, states in transitions.MOVE_TRANSITIONS.items()
                for new in states}
        self.assertEqual(self.facts['transitions'].keys(), transitions.MOVE_TRANSITIONS.keys())
        # The worker that makes a transition is the one that checks it.
        self.assertEqual({(moves.CLAIMING, moves.VERIFYING)}, made - known)
        self.assertEqual(set(), known - made)
        words = {value for name, value in vars(plans).items()
                 if name.isupper() and isinstance(value, str)}
        # New words are written to a database that it refuses.
        new = words - set(self.facts['words'])
        self.assertEqual({plans.SUPERSEDED, plans.STOPPED, plans.MAKE_ROOM}, new)
        self.assertNotEqual(REVISION, migrate.head(migrate.CONTROL))
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
