"""Operations of the page: each asks first, and is carried out."""

import contextlib
import dataclasses

from selenium.common import exceptions
from selenium.webdriver.support.select import Select

from kronos_nova import clock
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import drains as db_drains
from kronos_nova.db import models
from kronos_nova.db import switches
from kronos_nova.drain import states as drains
from kronos_nova.objects import automation
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from tests.functional.api import fakes_large_cloud
from tests.functional.api import pages
from tests.unit.api import base
from tests.unit.cmd import test_host

WHO = 'jane@Default (API)'


class PlanTest(pages.PageTestCase):
    kronos = 'aggregates = racks, gpu, db\nautomation = auto'
    content = {'hosts': 120, 'servers': 1000}

    def test_a_plan_is_approved_without_a_move(self):
        self.open()
        self.assertIn('Approve 50 of 50 moves', self.text('#approve'))
        self.unfold()
        self.find('[data-move="7"] [type=checkbox]').click()
        self.assertIn('Approve 49 of 50 moves', self.text('#approve'))
        self.click('#approve')
        self.assertIn('49 servers will be migrated', self.wait('dialog').text)
        self.confirm()
        self.wait_for(lambda: 'Approved: 49 of 50' in self.text('#notice'))
        plan = self.journal.plan(self.plan_uuid)
        self.assertEqual((plans.APPROVED, 'jane@Default (API)'), (plan.state, plan.approved_by))
        self.wait_for(lambda: 'approved' in self.text('#plan'))
        self.assertEqual(0, self.count('#approve'))

    def test_moves_of_a_group_are_chosen_together(self):
        with self.journal.database.writer() as session:
            row = session.get(models.ReportRow, self.plan_uuid)
            report = plans.AggregateReport.from_json(row.body)
            row.body = dataclasses.replace(report, moves=tuple(
                dataclasses.replace(move, group=1 if move.order in (7, 9) else None)
                for move in report.moves)).to_summary_json()
        self.open()
        self.unfold()
        self.assertIn('9, group 1', self.text('[data-move="9"]'))
        self.find('[data-move="7"] [type=checkbox]').click()
        self.assertIn('Approve 48 of 50 moves', self.text('#approve'))
        self.assertFalse(self.find('[data-move="9"] [type=checkbox]').is_selected())
        self.find('[data-move="9"] [type=checkbox]').click()
        self.assertIn('Approve 50 of 50 moves', self.text('#approve'))

    def test_a_plan_is_rejected(self):
        self.open()
        self.click('#reject')
        self.confirm()
        self.wait_for(lambda: 'No plan waits or runs' in self.text('#plan'))
        self.assertEqual(plans.REJECTED, self.journal.plan(self.plan_uuid).state)

    def test_an_approved_plan_is_rejected_before_it_starts(self):
        self.open()
        self.click('#approve')
        self.confirm()
        self.wait_for(lambda: 'approved' in self.text('#plan') and not self.count('#approve'))
        self.click('#reject')
        self.confirm()
        self.wait_for(lambda: 'No plan waits or runs' in self.text('#plan'))
        self.assertEqual(plans.REJECTED, self.journal.plan(self.plan_uuid).state)

    def test_a_move_is_aborted(self):
        self.filled.start(self.plan_uuid, 5)
        self.open()
        [first, *_others] = self.journal.moves(self.plan_uuid)
        self.click(f'[data-abort="{first.uuid}"]')
        self.confirm()
        self.wait_for(lambda: 'abort asked for' in self.text('[data-move="1"]'))
        self.assertTrue(self.journal.move(first.uuid).abort_requested)

    def test_everything_is_paused_stopped_and_resumed(self):
        self.open()
        self.click('#pause-all')
        self.confirm(reason='packet loss')
        self.wait_for(lambda: 'packet loss' in self.text('#stopped'))
        self.click('#resume-all')
        self.confirm()
        self.wait_for(lambda: self.count('#pause'))
        self.click('#stop')
        self.confirm(reason='smoke')
        self.wait_for(lambda: 'stopped' in self.text('#stopped'))
        self.go('overview')
        self.assertIn('stopped', self.text('[data-name=racks]'))
        self.assertNotIn('stopped', self.text('[data-name=gpu]'))

    def test_what_is_refused_is_reported(self):
        self.open()
        self.click('#reject')
        self.wait('dialog')
        self.journal.reject_plan(self.plan_uuid, 'another', clock.utcnow())
        self.confirm()
        self.wait_for(lambda: 'rejected' in self.text('#notice'))

    def test_a_host_is_released(self):
        self.filled.drain()
        self.open(place='maintenance')
        self.assertIn('2 of 30', self.text('#drains'))
        with contextlib.suppress(exceptions.NoSuchElementException):
            self.find('#drains summary').click()
        self.assertIn('every host is full', self.text('#drains'))
        self.find('#drains tbody button').click()
        self.confirm()
        self.wait_for(lambda: 'is released' in self.text('#notice'))

    def test_a_cancelled_dialog_changes_nothing(self):
        self.open()
        for button in ('approve', 'reject', 'pause', 'stop', 'stop-all'):
            self.click(f'#{button}')
            self.wait('dialog #confirm')
            self.find('dialog form').find_element('xpath', './/button[text()="Cancel"]').click()
            self.wait_for(lambda: not self.count('dialog'))
        self.assertEqual(plans.PROPOSED, self.journal.plan(self.plan_uuid).state)
        self.assertEqual([], self.switched())

    def switched(self):
        return [(each.kind, each.value, each.aggregate, each.set_by, each.reason)
                for each in switches.SwitchBoard(self.database).history()]

    def test_one_aggregate_is_paused_and_resumed(self):
        self.open()
        self.click('#pause')
        self.confirm(reason='switch upgrade')
        self.click('#resume')
        self.confirm(reason='done')
        self.wait('#pause')
        self.assertEqual([(automation.PAUSE, '', 'racks', WHO, 'done'),
                          (automation.PAUSE, 'pause', 'racks', WHO, 'switch upgrade')],
                         self.switched())

    def test_everything_is_stopped(self):
        self.filled.start(self.plan_uuid, 5)
        self.open()
        self.click('#stop-all')
        self.confirm(reason='smoke')
        self.wait_for(lambda: '45 moves given up, 5 still in progress' in self.text('#notice'))
        self.assertEqual([(automation.PAUSE, 'stop', automation.EVERY, WHO, 'smoke')],
                         self.switched())
        self.assertEqual(5, sum(each.abort_requested for each in self.journal.moves(
            self.plan_uuid)))

    def test_a_stop_may_let_what_runs_go_on(self):
        self.filled.start(self.plan_uuid, 5)
        self.open()
        self.click('#stop')
        self.wait('dialog [name=let_finish]').click()
        self.confirm(reason='smoke')
        self.wait_for(lambda: '45 moves given up, 5 still in progress' in self.text('#notice'))
        self.assertFalse(any(each.abort_requested for each in self.journal.moves(self.plan_uuid)))

    def test_an_administrator_sets_the_level(self):
        self.open(base.ADMIN)
        self.click('#level')
        Select(self.wait('dialog [name=level]')).select_by_value('approve')
        self.confirm(reason='by day')
        self.wait_for(lambda: 'racks: level approve' in self.text('#notice'))
        self.assertEqual([(automation.LEVEL, 'approve', 'racks', WHO, 'by day')], self.switched())

    def test_a_quarantine_is_ended(self):
        cooldowns = db_cooldowns.Cooldowns(self.database)
        server = fakes_large_cloud.Filled.server(3)
        cooldowns.quarantine(server, -1, 'MigrationFailed', clock.utcnow())
        self.open(place='servers')
        self.wait_for(lambda: 'MigrationFailed' in self.text('#quarantine'))
        self.find('#quarantine tbody button').click()
        self.assertIn('web-00003', self.wait('dialog').text)
        self.confirm()
        self.wait_for(lambda: 'The quarantine is ended' in self.text('#notice'))
        self.assertEqual([], cooldowns.quarantines(clock.utcnow()))


class DrainTest(test_host.WithRecordedCloud, pages.PageTestCase):
    content = {'hosts': 12, 'servers': 100}

    def begin(self, hosts):
        self.open(place='maintenance')
        self.click('#drain')
        self.wait('dialog [name=hosts]').send_keys(hosts)
        self.confirm(reason='new memory')

    def kept(self):
        return db_drains.Drains(self.database).in_states((*drains.ACTIVE, drains.RELEASING))

    def test_a_host_is_drained_and_released(self):
        self.begin('a')
        self.wait_for(lambda: 'Drain a?' in self.text('dialog'))
        self.assertIn('2 of 2', self.text('dialog'))
        self.assertEqual([], self.kept())
        self.confirm()
        self.wait_for(lambda: '1 host to be drained' in self.text('#notice'))
        [drain] = self.kept()
        self.assertEqual(('a', drains.REQUESTED, WHO, 'new memory'),
                         (drain.host, drain.state, drain.requested_by, drain.reason))
        self.wait_for(lambda: 'requested' in self.text('#drains tbody'))
        self.find('#drains tbody button').click()
        self.confirm()
        self.wait_for(lambda: 'releasing' in self.text('#drains tbody'))
        self.assertEqual(drains.RELEASING, self.kept()[0].state)

    def test_what_becomes_of_servers_that_do_not_move_live_is_chosen(self):
        self.cloud.live['web1'] = snapshot.Movability(can=snapshot.COLD, why='a share is attached')
        self.open(place='maintenance')
        for way, said in (('leave', 'stays on a'),
                          ('cold', 'is interrupted and migrated cold from a: a share is attached'),
                          ('stop', 'is stopped until the release of a: a share is attached')):
            self.click('#drain')
            Select(self.wait('dialog [name=unmovable]')).select_by_value(way)
            self.confirm(hosts='a')
            self.wait_for(lambda: 'Drain a?' in self.text('dialog'))
            self.assertIn(said, self.text('dialog'))
            if way != 'stop':
                self.cancel()
        self.confirm()
        self.wait_for(lambda: '1 host to be drained' in self.text('#notice'))
        self.assertEqual([drains.STOP], [drain.unmovable for drain in self.kept()])

    def test_what_stays_is_reported_before_anything_is_done(self):
        self.cloud.room = 1
        self.begin('a b')
        self.wait_for(lambda: 'stays on' in self.text('dialog'))
        self.cancel()
        self.assertEqual([], self.kept())

    def cancel(self):
        self.find('dialog form').find_element('xpath', './/button[text()="Cancel"]').click()
        self.wait_for(lambda: not self.count('dialog'))

    def test_a_host_that_there_is_not_is_reported(self):
        self.begin('x')
        self.wait_for(lambda: self.text('#notice'))
        self.assertIn('x', self.text('#notice'))
        self.assertEqual([], self.kept())
