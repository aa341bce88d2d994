"""The page in a browser over a cloud whose servers move: approve, watch, abort, stop."""

import datetime

from selenium.common import exceptions
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from kronos_nova import clock
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from tests.browser import Browser
from tests.e2e.box import identity
from tests.e2e.executor import base

PATIENCE = 60
AT_ONCE = 4


class PageTest(base.ExecutorTestCase):
    keystone = True
    executor = {'max_concurrent_migrations': AT_ONCE, 'max_concurrent_per_source': AT_ONCE,
                'max_concurrent_per_destination': AT_ONCE}

    def setUp(self):
        super().setUp()
        self.addCleanup(self.cloud.manage, 'resume', '--all')
        self.browser = self.useFixture(Browser())
        self.driver = self.browser.driver
        self.browser.size(1400, 1400)
        self.log_in()

    def log_in(self):
        """Log in with the password of the box' administrator, by keystone."""
        self.driver.get(f'{self.cloud.api.url}/ui/#/aggregates')
        for name, value in (('user', 'admin'), ('password', identity.PASSWORD),
                            ('project', 'admin')):
            field = self.wait_for(lambda name=name: self.find(f'[name={name}]'))
            field.clear()   # of what was refused
            field.send_keys(value)
        self.find('#login [type=submit]').click()
        self.wait_for(lambda: self.find('#stop-all'))

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def wait_for(self, condition, seconds=PATIENCE):
        return WebDriverWait(self.driver, seconds, 0.2, ignored_exceptions=[
            exceptions.NoSuchElementException, exceptions.StaleElementReferenceException,
        ]).until(lambda _driver: condition())

    def do(self, selector):
        """Press something, and say yes."""
        self.wait_for(lambda: self.find(selector)).click()
        self.wait_for(lambda: self.find('dialog #confirm')).click()

    def propose(self, chosen):
        now = clock.utcnow()
        report = plans.AggregateReport(
            name=snapshot.UNASSIGNED, outcome=plans.PLANNED, mode='spread', planner='test',
            combined_before=1.0, combined_after=0.0, moves=tuple(chosen))
        return self.journal.record_plan(report, plans.PROPOSED, now,
                                        now + datetime.timedelta(minutes=30))

    def run_approved(self, uuid):
        """Run an approved plan as the next evaluation would: here nothing is
        evaluated."""
        record = self.journal.plan(uuid)
        self.assertEqual(plans.APPROVED, record.state)
        self.journal.start_plan(uuid, plans.AggregateReport.from_json(record.report).moves,
                                clock.utcnow())

    def states(self, plan):
        return [move.state for move in self.journal.moves(plan)]

    def shown(self):
        return [row.text for row in self.driver.find_elements(By.CSS_SELECTOR, '[data-move]')]

    def test_a_plan_is_approved_watched_aborted_in_part_and_stopped(self):
        servers = self.boot(2 * AT_ONCE)
        # The later half hangs: one is aborted, the others are stopped.
        self.orders(default={'seconds': 8}, instances={
            uuid: {'outcome': 'hang'} for uuid, _host in servers[AT_ONCE:]})
        plan = self.propose(self.round_robin(servers))
        self.do('#approve')
        self.wait_for(lambda: 'approved' in self.find('#plan').text)
        self.run_approved(plan)
        # Watched: every move is shown where the journal has it.
        self.wait_for(lambda: sum('migrating' in row for row in self.shown()) == AT_ONCE)
        self.browser.screenshot('box-moving')
        self.wait_for(lambda: any('completed' in row for row in self.shown()))
        self.wait_for(lambda: self.states(plan).count(moves.COMPLETED) == AT_ONCE and
                      self.states(plan).count(moves.MIGRATING) == AT_ONCE)
        [first, *_others] = [move for move in self.journal.moves(plan)
                             if move.state == moves.MIGRATING and move.migration_uuid]
        self.do(f'[data-abort="{first.uuid}"]')
        self.wait_for(lambda: 'abandoned' in self.find(f'[data-move="{first.ordinal}"]').text)
        self.assertEqual(moves.ABANDONED, self.journal.move(first.uuid).state)
        self.do('#stop-all')
        self.wait_for(lambda: 'stopped' in self.find('#stopped').text)
        self.wait_for(lambda: 'No plan waits or runs' in self.find('#plan').text)
        self.assertEqual({moves.COMPLETED: AT_ONCE, moves.ABANDONED: AT_ONCE}, {
            state: self.states(plan).count(state) for state in {*self.states(plan)}})
        self.assert_allocations_exact()
        self.assertEqual([], [each for each in self.driver.get_log('browser')
                              if each['level'] == 'SEVERE'])
        self.assertEqual([], [each for each in self.browser.requests()
                              if not each.startswith(f'{self.cloud.api.url}/')])

    def test_a_wrong_password_is_reported_and_a_level_is_set(self):
        self.find('#whoami button').click()
        for name, value in (('user', 'admin'), ('password', 'wrong'), ('project', 'admin')):
            self.find(f'[name={name}]').send_keys(value)
        self.find('#login [type=submit]').click()
        self.wait_for(lambda: 'did not accept' in self.find('[role=alert]').text)
        self.log_in()
        self.wait_for(lambda: self.find('#level')).click()
        Select(self.wait_for(lambda: self.find('dialog [name=level]'))).select_by_value('observe')
        self.addCleanup(self.cloud.manage, 'automation', 'set', 'auto')
        self.find('dialog #confirm').click()
        self.find('nav [data-view=settings]').click()
        self.wait_for(lambda: 'observe' in self.find('#switches').text)
        self.assertIn('observe', self.cloud.manage('automation', 'show'))
