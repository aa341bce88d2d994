"""``openstack kronos ...``, by the client's own shell, against a kronos-api over HTTP."""

import contextlib
import datetime
import io
import json
import logging
import subprocess
import sys

import fixtures
import testtools
from openstackclient import shell
from osc_lib import clientmanager

from kronos_client import osc
from kronos_client.cli import hosts as hosts_cli
from kronos_client.cli import moves as moves_cli
from kronos_client.cli import plans as plans_cli
from kronos_nova import clock
from kronos_nova.cmd import manage
from kronos_nova.db import cooldowns
from kronos_nova.db import drains as db_drains
from kronos_nova.db import evaluations
from kronos_nova.db import models
from kronos_nova.db import switches
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.drain import orders
from kronos_nova.drain import states as drains
from kronos_nova.objects import maintenance
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects.shape import Shape
from tests.unit.api import base
from tests.unit.cmd import test_host
from tests.unit.db import fixtures as db_fixtures

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)
WHO = 'jane@Default (API)'


class CommandsTestCase(base.ApiTestCase):
    def openstack(self, *words, token=base.READER, expected=0):
        """Return the output of ``openstack kronos ...``."""
        out, self.err = io.StringIO(), io.StringIO()
        # The client keeps what it made for as long as its process lives, which is one command.
        kept = vars(clientmanager.ClientManager).get(osc.API_NAME)
        if kept is not None:
            kept._handle = None
        root = logging.getLogger()
        before = root.handlers[:], root.level
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(self.err):
                status = shell.main(['--os-auth-type', 'admin_token', '--os-endpoint', self.url,
                                     '--os-token', token, 'kronos', *words])
        finally:    # The client makes itself at home in a process of its own.
            root.handlers[:], root.level = before
        self.assertEqual(expected, status, out.getvalue() + self.err.getvalue())
        return out.getvalue()

    def table(self, *words, **given):
        return json.loads(self.openstack(*words, '-f', 'json', **given))

    def manage(self, *words):
        """Return the output of ``kronos-manage`` for the same control database."""
        out = io.StringIO()
        config = self.folder / 'manage.conf'
        config.write_text(
            (self.folder / 'nova.conf').read_text()
            + f'[kronos_database]\nconnection = {self.database.engine.url}\n')
        with contextlib.redirect_stdout(out):
            manage.main([f'--config-file={config}', *words, '-f', 'json'])
        return json.loads(out.getvalue())


class SameTest(CommandsTestCase):
    """Both commands list the same, to the letter."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable('TZ', 'UTC'))

    def same(self, *words):
        found = self.table(*words)
        self.assertEqual(self.manage(*words), found)
        self.assertTrue(found)
        return found

    def test_plans_and_moves(self):
        proposed = self.plan(('vm1', 'a', 'b'), ('vm2', 'b', 'c', 1))
        running = self.plan(('vm3', 'a', 'b'), name='db', state=plans.EXECUTING)
        self.journal.dispatch(WIDE, clock.utcnow)
        self.same('plan', 'list')
        [row] = self.same('plan', 'list', '--aggregate', 'gpu')
        self.assertEqual(plans_cli.COLUMNS, tuple(row))
        self.same('plan', 'show', proposed)
        self.same('plan', 'move', 'list', proposed)
        self.same('explain', 'name-of-vm1')
        self.assertIn('No move of the server is recorded.',
                      self.openstack('explain', 'name-of-vm2'))
        self.assertIn('No move of the server had begun by that time.',
                      self.openstack('explain', 'name-of-vm3', '--at', '2020-01-01'))
        [row] = self.same('move', 'list')
        self.assertEqual(moves_cli.COLUMNS, tuple(row))
        self.same('move', 'list', '--plan', running)
        self.same('move', 'list', '--host', 'b', '--since', '1h', '--state', 'dispatched')
        self.same('move', 'show', row['UUID'])

    def test_what_is_not_there_is_said(self):
        self.assertIn('--all lists the moves that have ended', self.openstack('move', 'list'))
        self.assertEqual([], self.table('move', 'list'))
        cooldowns.Cooldowns(self.database).quarantine('vm1', 600, 'it failed', clock.utcnow())
        self.assertNotIn('under no restriction', self.openstack('explain', 'vm1'))
        cooldowns.Cooldowns(self.database).quarantine('vm1', 0, 'it failed', clock.utcnow())
        self.assertIn('under no restriction', self.openstack('explain', 'vm1'))

    def test_sums_of_moves(self):
        self.plan(('vm1', 'a', 'b'), ('vm2', 'a', 'b', 1), ('vm3', 'a', 'b'),
                  state=plans.EXECUTING)
        now = datetime.datetime(2026, 10, 31, 23, tzinfo=datetime.UTC)
        for number, (move, state) in enumerate(zip(
                self.journal.moves(), ('completed', 'completed', 'failed'), strict=True)):
            with self.database.writer() as session:
                row = session.get(models.MoveRow, move.uuid)
                row.state, row.memory_mb, row.project_id = state, 2048, 'p1'
                row.requested_at = now + number * datetime.timedelta(minutes=58)
                row.finished_at = row.requested_at + datetime.timedelta(minutes=3)
        unknown = dict.fromkeys((
            'Observed minutes', 'Hot minutes', 'Contended minutes', 'Hot without moves',
            'Contended without moves'))
        self.assertEqual([
            {'Month': '2026-10', 'Completed': 1, 'Failed': 0, 'Abandoned': 0, 'Servers': 1,
             'GiB': 2.0, 'Minutes': 3.0, **unknown},
            {'Month': '2026-11', 'Completed': 1, 'Failed': 1, 'Abandoned': 0, 'Servers': 1,
             'GiB': 2.0, 'Minutes': 3.0, **unknown}], self.same('report'))
        [row] = self.same('report', '--by', 'aggregate', '--by', 'project')
        self.assertEqual(('p1', 'gpu', 2), (row['Project'], row['Aggregate'], row['Completed']))
        self.assertEqual(['2026-11'], [row['Month'] for row in self.same(
            'report', '--since', '2026-11-01')])
        self.assertIn('Moves are known since 2026-10-31 23:03:00 UTC.',
                      self.openstack('report'))
        self.assertIn('The report has no evaluation after 2026-10-31', self.openstack('report'))
        self.openstack('report', '--aggregate', 'nope', expected=1)

    def test_levels_switches_and_quarantine(self):
        self.openstack('pause', '--aggregate', 'gpu', '--reason', 'why', token=base.OPERATOR)
        self.same('automation', 'show')
        self.same('automation', 'history')
        cooldowns.Cooldowns(self.database).quarantine('vm1', 600, 'it failed', clock.utcnow())
        self.same('quarantine', 'list')

    def test_the_status(self):
        self.evaluate(policies=(plans.PolicyReport(
            name='cpu', weight=1.0, threshold=0.2, imbalance_before=0.4, imbalance_after=0.4,
            state='ok'),))
        self.plan(('vm1', 'a', 'b'))
        db_drains.Drains(self.database).request([orders.Wish(who='jane').to_drain('a')])
        ours = json.loads(self.openstack('status', '-f', 'json', expected=4))
        theirs = self.manage('status')
        for each in (ours, theirs):
            del each['at']
        self.assertEqual(theirs, ours)
        self.assertIn('gpu: observe', self.openstack('status', expected=4))


class ActingTest(CommandsTestCase):
    kronos = 'aggregates = gpu, db\nautomation = approve'

    def do(self, *words, token=base.OPERATOR, **given):
        return self.openstack(*words, token=token, **given)

    def test_a_plan_is_approved_without_a_move(self):
        uuid = self.plan(('vm1', 'a', 'b'), ('vm2', 'b', 'c', 1), ('vm3', 'a', 'c'))
        self.assertIn('1 of 3', self.do('plan', 'approve', uuid, '--skip', '1'))
        self.assertEqual(WHO, self.journal.plan(uuid).approved_by)
        self.do('plan', 'approve', uuid, expected=1)
        self.assertIn('does not wait for approval: its state is approved', self.err.getvalue())

    def test_a_plan_is_rejected(self):
        uuid = self.plan(('vm1', 'a', 'b'))
        self.do('plan', 'reject', uuid)
        self.assertEqual(plans.REJECTED, self.journal.plan(uuid).state)

    def test_a_reader_changes_nothing_and_learns_why(self):
        uuid = self.plan(('vm1', 'a', 'b'))
        self.openstack('plan', 'reject', uuid, expected=1)
        self.assertIn('kronos:plans:reject', self.err.getvalue())
        self.assertEqual(plans.PROPOSED, self.journal.plan(uuid).state)

    def test_a_move_is_ended(self):
        [move] = self.journal.moves(self.plan(('vm1', 'a', 'b'), state=plans.EXECUTING))
        self.do('move', 'abort', move.uuid)
        self.assertIn(f'by {WHO}: asked to end it', self.table('move', 'show', move.uuid)['events'])
        self.do('move', 'abort', '../..', expected=1)

    def test_levels_are_for_administrators(self):
        self.do('automation', 'set', 'approve', expected=1)
        [gpu, _db] = sorted(self.table('automation', 'set', 'approve', '--aggregate', 'gpu',
                                       token=base.ADMIN), key=lambda row: row['Aggregate'] != 'gpu')
        self.assertEqual(('approve', WHO), (gpu['Level'], gpu['Set by']))

    def test_it_is_paused_and_stopped_and_goes_on(self):
        rows = self.table('pause', '--reason', 'why', token=base.OPERATOR)
        self.assertIn('why', rows[0]['Paused'])
        rows = self.table('resume', token=base.OPERATOR)
        self.assertEqual([('*', 'pause', True)], [
            (row['Aggregate'], row['What'], row['Ended']) for row in rows])
        self.plan(('vm1', 'a', 'b'), state=plans.EXECUTING)
        self.assertIn('Waiting moves given up: 1; in progress: 0.', self.do('stop'))
        self.assertTrue(switches.SwitchBoard(self.database).read().pause('gpu'))

    def test_a_quarantine_is_ended(self):
        cooldowns.Cooldowns(self.database).quarantine('vm1', -1, 'it failed', clock.utcnow())
        self.do('quarantine', 'remove', 'vm1')
        self.assertEqual([], self.table('quarantine', 'list'))


class RefusedTest(CommandsTestCase):
    def test_an_api_that_does_not_answer_is_reported(self):
        self.url = 'http://127.0.0.1:9'
        self.openstack('plan', 'list', expected=1)
        self.assertIn('127.0.0.1', self.err.getvalue())

    def test_an_aggregate_that_there_is_not(self):
        for words in (('move', 'list', '--all'), ('plan', 'list')):
            self.openstack(*words, '--aggregate', 'nope', expected=1)
            self.assertIn('nope', self.err.getvalue())

    def test_what_is_missing_is_no_word_in_formats_without_null(self):
        self.plan(('vm1', 'a', 'b'), state=plans.EXECUTING)
        for form in ('csv', 'value'):
            said = self.openstack('move', 'list', '--all', '-f', form)
            self.assertIn('vm1', said)
            self.assertNotIn('None', said)
        [move] = self.table('move', 'list', '--all')
        self.assertIsNone(move['Ended at'])
        self.assertNotIn('None', self.openstack('move', 'show', move['UUID'], '-f', 'value'))

    def test_a_name_that_leads_to_another_path(self):
        self.openstack('plan', 'show', '..', expected=1)
        self.assertIn('kronos-api answers 404: Not Found.', self.err.getvalue())

    def test_what_is_no_kronos_api_is_reported(self):
        def other(_environ, start_response):
            start_response('404 Not Found', [('Content-Type', 'text/html')])
            return [b'<html>']

        self.url = self.serve(other)
        self.openstack('plan', 'list', expected=1)
        self.assertIn('not as kronos-api does', self.err.getvalue())


class RoomTest(test_host.WithRecordedCloud, CommandsTestCase):
    """Questions about the room of the recorded cloud, which only has VCPUs."""

    def read_flavors(self):
        return tuple(Shape(id=str(size), name=f'm1.{size}', vcpus=size, memory_mb=1,
                           resources={'VCPU': size}) for size in (1, 999))

    def test_slots_of_each_flavor_also_after_changes(self):
        rows = self.table('capacity', '--loss')
        self.assertEqual([('m1.1', 3, 1), ('m1.999', 0, 0)],
                         [(row['Flavor'], row['Now'], row['After loss']) for row in rows])
        [more] = self.table('capacity', '--flavor', 'm1.1', '--add', '1:like=a')
        self.assertEqual(3 + 2, more['Now'])
        self.assertIn('No room for 6 of the new servers m1.1', self.openstack(
            'capacity', '--boot', '9:m1.1', expected=4))

    def test_in_how_many_days_an_aggregate_is_full_is_shown_where_it_is_known(self):
        kept, now = evaluations.Evaluations(self.database), clock.utcnow()
        for day in range(8):
            kept.save(plans.AggregateReport(
                name='gpu', outcome=plans.BALANCED, mode='spread', planner='spread', slots=(
                    plans.SlotReport(flavor='m1.1', now=24 - 2 * day),)), [],
                now - datetime.timedelta(days=7 - day))
        rows = self.table('capacity', '--aggregate', 'gpu')
        self.assertEqual([('m1.1', '5 ± 0 days'), ('m1.999', None)],
                         [(row['Flavor'], row['Full in']) for row in rows])
        self.assertNotIn('Full in', self.table('capacity')[0])

    def test_hosts_whose_servers_do_not_restart_end_it_with_4(self):
        said = self.openstack('failover', '--lose', 'b', '--lose', 'c', expected=4)
        self.assertIn('not all restart', said)
        self.assertIn('hosts may fail', self.openstack('failover'))

    def test_programs_get_no_sentences_among_the_rows(self):
        for words, sentence, given in (
                (('capacity', '--loss', '--boot', '9:m1.1'), 'No room for 6', {'expected': 4}),
                (('failover', '--all'), 'hosts may fail', {}),
                (('room', 'check', 'm1.1'), 'There is room for 1', {}),
                (('room', 'fragments', 'm1.1'), 'new servers fit now', {}),
                (('room', 'what-if', '--add', '1:like=a'), 'would restart on other hosts', {}),
                (('room', 'make', 'm1.1', '--aggregate', 'gpu'), 'Room ',
                 {'token': base.OPERATOR})):
            self.table(*words, **given)
            self.assertIn(sentence, self.err.getvalue())

    def test_no_room_ends_it_with_4(self):
        self.assertIn('There is room for 1 of 1 server', self.openstack('room', 'check', 'm1.1'))
        said = self.openstack('room', 'check', 'm1.999', expected=4)
        self.assertIn('There is no room for the other servers: it needs 999 VCPU', said)
        said = self.openstack('room', 'make', 'm1.999', '--aggregate', 'gpu', token=base.OPERATOR,
                              expected=4)
        self.assertIn('Nothing was requested, and no server is moved.', said)


class HostTest(test_host.WithRecordedCloud, CommandsTestCase):
    kronos = 'aggregates = gpu'

    def test_what_stays_is_named(self):
        self.cloud.status['web1'] = 'SHUTOFF'
        said = self.openstack('host', 'drain', 'a', '--check', token=base.OPERATOR, expected=4)
        self.assertIn('blocked: web1 (web1): it is stopped', said)

    def test_a_drain_that_leaves_no_host_has_the_exit_code_of_kronos_manage(self):
        said = self.openstack('host', 'drain', 'a', 'b', 'c', token=base.OPERATOR, expected=4)
        self.assertIn('would have no host left', said)

    def test_a_host_is_drained_followed_and_released(self):
        self.patch(hosts_cli, 'RELEASE_SECONDS', 0)
        self.openstack('host', 'status', 'a', expected=3)
        self.assertIn('Everything can leave.',
                      self.openstack('host', 'drain', 'a', '--check', token=base.OPERATOR))
        self.assertEqual([], self.table('host', 'status'))
        self.openstack('host', 'drain', 'a', '--reason', 'fan', token=base.OPERATOR)
        [found] = self.table('host', 'status', expected=3)
        self.assertEqual(('a', 'requested', 'fan'), (
            found['host'], found['drain']['state'], found['drain']['reason']))
        known = db_drains.Drains(self.database)
        db_fixtures.bring(known, known.latest('a'), drains.EMPTY)
        self.cloud.placed.clear()
        self.openstack('host', 'status', 'a')
        self.openstack('host', 'release', 'a', token=base.OPERATOR, expected=3)
        self.assertEqual(drains.RELEASING, known.latest('a').state)

    def test_a_maintenance_is_shown_stopped_and_ended(self):
        Maintenances(self.database).begin(maintenance.Maintenance(
            uuid='m', state=maintenance.RUNNING, requested_by='jane', requested_at=clock.utcnow(),
            options=maintenance.MaintenanceOptions(),
            hosts={'a': maintenance.HOOK, 'b': maintenance.WAITING}))
        self.assertEqual(['hook', 'waiting'],
                         [row['State'] for row in self.table('maintenance', 'show')])
        self.openstack('maintenance', 'stop', expected=1)
        self.assertIn('hosts still at work: a.',
                      self.openstack('maintenance', 'stop', token=base.OPERATOR))
        self.assertIn('no process runs the maintenance',
                      self.openstack('maintenance', 'done', 'a', token=base.OPERATOR))
        self.openstack('maintenance', 'done', 'b', token=base.OPERATOR, expected=1)
        self.assertIn('is waiting, so it does not wait to be serviced', self.err.getvalue())
        said = self.openstack('maintenance', 'end', token=base.OPERATOR)
        self.assertIn('hosts not serviced: b.', said)
        self.assertIn('a is returning: "host release a" ends that.', said)
        self.openstack('maintenance', 'show', expected=1)


class CostTest(testtools.TestCase):
    def test_what_every_openstack_command_imports_of_kronos_is_next_to_nothing(self):
        """The two plugins and the names of the service; 158 modules of Kronos, SQLAlchemy and numpy
        were loaded for these."""
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', 'import sys, openstackclient.shell\n'
             'print(*sorted(sys.modules))'], capture_output=True, text=True, check=True,
            timeout=120)
        loaded = done.stdout.split()
        self.assertEqual(
            ['kronos_client', 'kronos_client.contract', 'kronos_client.contract.versions',
             'kronos_client.osc', 'kronos_nova', 'kronos_nova.osc', 'kronos_nova.osc.plugin'],
            [name for name in loaded if name.startswith('kronos')])
        self.assertEqual(set(), {'sqlalchemy', 'numpy', 'falcon'} & {*loaded})
