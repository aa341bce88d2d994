"""The views of the page: their addresses, and what each shows of a large cloud."""

import datetime

import sqlalchemy as sa
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.db import drains as db_drains
from kronos_nova.db import holds
from kronos_nova.db import models
from kronos_nova.db import server_names
from kronos_nova.db import switches
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.functional.api import fakes_large_cloud
from tests.functional.api import pages
from tests.unit.api import base
from tests.unit.api import test_room
from tests.unit.db import test_holds

Filled = fakes_large_cloud.Filled

HIGHEST = {(1400, 1000): 3000, (390, 844): 6000}
"""Pixels that a plan of 50 moves takes at most, by the size of the window: 5,100 and 13,100 before
plans were folded."""

FROZEN_MS = 1000

BROKEN_NAMES = """
const wide = document.documentElement.clientWidth;
return [...document.querySelectorAll('.host, .name')].filter(node => node.checkVisibility() &&
  node.getClientRects().length > 1 && node.textContent.length < 30).map(node => node.textContent);
"""
"""Short names that stand on several lines."""

TOO_WIDE = """
return [...document.querySelectorAll('.scroll')].filter(node => node.checkVisibility() &&
  node.scrollWidth > node.clientWidth + 1).map(node => node.getAttribute('aria-label'));
"""
"""Regions whose content is wider than they are."""


class ViewsTestCase(pages.PageTestCase):
    content = {'hosts': 120, 'servers': 1000}

    def finish(self, count):
        """Let the plan run, and the first of its moves end."""
        self.filled.start(self.plan_uuid, count)
        now = clock.utcnow()
        for move in self.journal.moves(self.plan_uuid)[:count]:
            record = self.filled.journal.move(move.uuid)
            for state in (moves.VERIFYING, moves.COMPLETED):
                record = self.filled.journal.advance(record, state, now, finished_at=now)


class LargeTest(ViewsTestCase):
    content = {}

    def setUp(self):
        super().setUp()
        server_names.ServerNames(self.database).save(
            {Filled.server(number): f'web-{number:05}' for number in range(30_000)},
            clock.utcnow())
        self.filled.drain()
        switches.SwitchBoard(self.database).set(automation.Switch(
            kind=automation.PAUSE, value='pause', aggregate='db', set_by='jane',
            set_at=clock.utcnow(), reason='new switches'))
        self.places = (
            'overview', 'aggregates/racks', 'plans', f'plans/{self.plan_uuid}', 'hosts',
            f'hosts/{Filled.host(5)}', 'servers', f'servers/{Filled.server(3)}', 'maintenance',
            'room', 'reports', 'settings', 'search?name=web-000')

    def test_every_view_is_sound_and_open_to_all(self):
        self.open(base.ADMIN, self.places[0])
        for place in self.places:
            self.go(place)
            self.wait_for(lambda: not self.count('#refused'))
            self.assertLess(max(self.long_tasks(), default=0), FROZEN_MS, place)
            for size, is_phone in (((1400, 1000), False), ((390, 844), True)):
                self.browser.size(*size, is_phone)
                self.assertEqual([], self.browser.violations(), f'{place} {size}')
                self.assertEqual([], self.driver.execute_script(BROKEN_NAMES), f'{place} {size}')
                self.assertEqual([], self.driver.execute_script(TOO_WIDE), f'{place} {size}')
                self.assertSound()
                self.browser.screenshot(f'view-{place.replace("/", "-")[:30]}-{size[0]}')
            self.long_tasks()       # those of the checker of accessibility

    def long_tasks(self):
        """Milliseconds of each long task since this was last asked."""
        return self.driver.execute_script('return longTasks.splice(0)')

    def test_a_plan_is_short_until_it_is_unfolded(self):
        self.open(base.READER, f'plans/{self.plan_uuid}')
        for size, most in HIGHEST.items():
            self.browser.size(*size, is_phone=size[0] < 400)
            self.assertLess(self.find('#plan').size['height'], 1500)
            self.unfold()
            self.assertEqual(50, self.count('#plan [data-move]'))
            self.assertLess(self.find('#plan').size['height'], most)
            self.find('#plan .fold button').click()
            self.wait_for(lambda: not self.count('#plan [data-move]'))
        self.find('#changed-hosts summary').click()
        self.assertIn('−1', self.text('#changed-hosts'))

    def test_a_host_of_a_thousand_and_a_server_of_thirty_thousand_are_found(self):
        self.open(base.READER, 'overview')
        self.search('0777')
        self.wait_for(lambda: 'compute-0777.example' in self.text('#all-hosts'))
        self.wait_for(lambda: 'web-10777' in self.text('#server-names'))
        self.find('#all-hosts a').click()
        self.wait_for(lambda: self.text('#host h2') == 'compute-0777.example')
        self.search(Filled.server(61))
        self.wait_for(lambda: 'locked' in self.text('#server'))

    def search(self, text):
        self.find('#search [name=name]').clear()
        self.find('#search [name=name]').send_keys(text, Keys.ENTER)


class RoomTest(test_room.LoadTestCase, ViewsTestCase):
    """Questions about room, of a cloud of three hosts."""

    kronos = 'aggregates = gpu, racks, db'

    flavor_reads = 0
    is_away = False

    def read_flavors(self):
        self.flavor_reads += 1
        if self.is_away:
            raise exception.InventoryError(problem='Nova is away')
        return super().read_flavors()

    def ask_for(self, what, expected, **fields):
        """Fill in the form, and return what the page answers."""
        Select(self.wait('[name=ask]')).select_by_value(what)
        for name, value in fields.items():
            field = self.find(f'#question [name={name}]')
            field.clear()
            field.send_keys(value)
        self.click('#question button')
        self.wait_for(lambda: expected in self.text('#answer'), expected)
        return self.text('#answer')

    def test_questions_are_answered(self):
        now = clock.utcnow()
        holds.Holds(self.database).request(test_holds.wish(
            'r1', now, aggregate='gpu', expires_at=now + datetime.timedelta(hours=1)))
        self.open(base.READER, 'room')
        self.wait_for(lambda: 'requested' in self.text('#rooms'))
        self.assertIn('1:1024', self.ask_for('capacity', 'm1.large', flavors='m1.large 1:1024',
                                             moves='5'))
        self.assertEqual(['m1.large', '1', '–', '2'], [
            each.text for each in self.driver.find_elements(
                By.CSS_SELECTOR, '#answer tbody tr:first-child > *')][:4])
        self.driver.refresh()
        self.wait_for(lambda: 'm1.large' in self.text('#answer'))
        self.ask_for('failover', '3 of 3 hosts may fail', boot='1:1:1024')
        self.assertIn('gpu, cpu', self.ask_for(
            'what-if', 'Servers that restart elsewhere: 1', lose='a', boot=''))
        self.assertSound()

    def test_a_question_that_is_refused_is_asked_once(self):
        self.open(base.READER, 'room')
        self.driver.execute_script('location.hash = "#/room?ask=capacity&flavors=m1.huge"')
        self.wait_for(lambda: 'm1.huge' in self.text('#refused'))
        for _look in range(3):
            self.look()
        self.driver.execute_script('location.hash = "#/room?ask=capacity"')
        self.wait_for(lambda: 'm1.small' in self.text('#answer'))
        self.assertEqual(2, self.flavor_reads)

    def test_a_question_without_an_answer_is_asked_again(self):
        """As the page says."""
        self.open(base.READER, 'room')
        self.is_away = True
        self.driver.execute_script('location.hash = "#/room?ask=capacity"')
        self.wait_for(lambda: 'asked again every few seconds' in self.text('#fresh'))
        self.is_away = False
        self.wait_for(lambda: 'm1.small' in self.text('#answer'))


class AddressTest(ViewsTestCase):
    def test_one_is_kept_over_reload_and_login(self):
        place = f'hosts/{Filled.host(7)}?since=2020-01-01T00%3A00'
        self.open(base.READER, place)
        self.wait_for(lambda: self.text('#host h2') == Filled.host(7))
        self.driver.refresh()
        self.wait_for(lambda: self.text('#host h2') == Filled.host(7))
        self.assertEqual('2020-01-01T00:00', self.find('[name=since]').get_attribute('value'))
        self.find('#whoami button').click()
        self.click('#by-token')
        self.find('[name=token]').send_keys(base.READER, Keys.ENTER)
        self.wait_for(lambda: self.text('#host h2') == Filled.host(7))

    def test_the_name_of_an_aggregate_alone_still_leads_to_it(self):
        self.driver.get(f'{self.url}/ui/#gpu')
        self.click('#by-token')
        self.find('[name=token]').send_keys(base.READER, Keys.ENTER)
        self.wait_for(lambda: self.text('#chosen h2') == 'gpu')

    def test_one_of_nothing_says_so_and_the_way_on_stays(self):
        self.open(base.READER, 'overview')
        for place, said in (('hosts/none', 'none'), ('plans/none', 'none'),
                            ('servers/none', 'no server'), ('aggregates/none', 'none')):
            self.driver.execute_script('location.hash = arguments[0]', f'#/{place}')
            self.wait_for(lambda said=said: said in self.text('#refused'), place)
        self.find('nav [data-view=settings]').click()
        self.wait('#levels')
        for place in ('constructor', '__proto__', 'none', '%'):
            self.driver.execute_script('location.hash = arguments[0]', f'#/{place}')
            self.wait('#aggregates')
            self.go('settings')

    def test_nothing_of_a_view_is_left_after_logging_out(self):
        self.open(base.READER, f'hosts/{Filled.host(7)}')
        self.wait_for(lambda: Filled.host(7) in self.driver.title)
        self.find('#whoami button').click()
        self.wait('#login')
        self.assertEqual('Kronos', self.driver.title)
        self.assertNotIn(Filled.host(7), self.driver.page_source)

    def test_views_are_walked_by_keyboard_and_back_leads_back(self):
        self.open(base.READER, 'overview')
        self.assertIn('Overview', self.driver.title)
        link = self.find('nav [data-view=plans]')
        self.driver.execute_script('arguments[0].focus()', link)
        ActionChains(self.driver).send_keys(Keys.ENTER).perform()
        self.wait('#plans')
        self.wait_for(lambda: 'Plans' in self.driver.title)
        self.assertEqual('main', self.driver.execute_script('return document.activeElement.id'))
        self.assertEqual('page', link.get_attribute('aria-current'))
        self.driver.back()
        self.wait('#aggregates')


class FactsTest(ViewsTestCase):
    kronos = ('aggregates = racks, gpu, db\nautomation = auto\n[kronos_nova]\n'
              'region_name = Vienna')

    def test_what_is_stopped_is_above_every_view(self):
        board = switches.SwitchBoard(self.database)
        board.set(automation.Switch(
            kind=automation.PAUSE, value='stop', aggregate=automation.EVERY, set_by='jane',
            set_at=clock.utcnow() - datetime.timedelta(days=2), reason='packet loss'))
        self.open(base.READER, 'reports')
        said = self.wait('#stopped').text
        for part in ('stopped', 'all aggregates', 'jane', 'packet loss',
                     f'{clock.utcnow() - datetime.timedelta(days=2):%Y}'):
            self.assertIn(part, said)
        self.assertEqual(0, self.count('#stopped button'))

    def test_an_aggregate_is_stopped_although_all_are_paused_too(self):
        board = switches.SwitchBoard(self.database)
        for aggregate, value in ((automation.EVERY, 'pause'), ('racks', 'stop')):
            board.set(automation.Switch(
                kind=automation.PAUSE, value=value, aggregate=aggregate, set_by='jane',
                set_at=clock.utcnow()))
        self.open(base.READER, 'overview')
        self.wait('#aggregates')
        self.wait_for(lambda: 'stopped' in self.text('[data-name=racks]'))
        self.assertIn('paused', self.text('[data-name=gpu]'))

    def test_the_cloud_has_its_name(self):
        self.open(base.READER, 'overview')
        self.wait_for(lambda: self.text('h1') == 'Kronos Vienna')
        self.assertIn('Vienna', self.driver.title)

    def test_servers_of_an_evaluation_without_data_are_not_said_to_be_planned(self):
        now = clock.utcnow()
        for name, outcome in (('gpu', plans.NO_DATA), ('db', plans.PLANNED)):
            report = plans.AggregateReport(name=name, outcome=outcome, mode='spread',
                                           planner='spread')
            self.filled.cycles.begin(name, 'filler', now, 1)
            self.filled.cycles.end(name, now, outcome, False, report.to_json())
        self.open(base.READER, 'aggregates/gpu')
        self.wait_for(lambda: 'no data' in self.text('#chosen'))
        self.assertIn('The last evaluation gave no reasons.', self.text('#stayed'))
        self.go('aggregates/db')
        self.wait_for(lambda: 'every server that was considered was planned'
                      in self.text('#stayed'))

    def test_a_notice_that_becomes_a_warning_is_shown_as_one(self):
        """It has the same text as before."""
        def kinds():
            return [each.get_attribute('class') for each in self.driver.find_elements(
                By.CSS_SELECTOR, '#problems li') if 'waits for approval' in each.text]

        self.open(base.READER, 'overview')
        self.wait_for(lambda: kinds() == ['problem notice'])
        with self.database.writer() as session:
            for plan in session.scalars(sa.select(models.PlanRow)):
                plan.created_at = clock.utcnow() - datetime.timedelta(days=1)
        self.look()
        self.wait_for(lambda: kinds() == ['problem warning'])

    def test_a_server_has_its_story(self):
        self.finish(3)
        self.open(base.READER, f'servers/{Filled.server(0)}')
        self.wait_for(lambda: 'web-00000' in self.text('#server'))
        story = self.text('#story')
        for part in ('completed', Filled.host(1), 'evens the load', 'imbalance cpu 0.370 to 0.362',
                     'combined imbalance 0.370 → 0.090', f'{clock.utcnow():%Y}'):
            self.assertIn(part, story)

    def test_a_host_has_the_servers_that_left_it_in_a_time(self):
        self.finish(3)
        self.open(base.OPERATOR, f'hosts/{Filled.host(1)}')
        self.wait_for(lambda: 'web-00000' in self.text('#moves'))
        self.assertIn('racks', self.text('#host'))
        self.driver.execute_script('arguments[0].value = "2020-01-01T00:00"',
                                   self.find('[name=until]'))
        self.find('#moves [type=submit]').click()
        self.wait_for(lambda: 'No server was moved' in self.text('#moves'))
        self.assertEqual(0, self.count('#moves tbody tr'))
        self.click('#drain-host')
        self.assertEqual(Filled.host(1), self.wait('dialog [name=hosts]').get_attribute('value'))

    def test_plans_are_found_by_aggregate_state_and_time(self):
        self.open(base.READER, 'plans')
        self.wait_for(lambda: 'racks' in self.text('#plans tbody'))
        for place in ('plans?aggregate=gpu', 'plans?state=done', 'plans?until=2020-01-01T00%3A00'):
            self.go(place)
            self.wait_for(lambda: 'None was made' in self.text('#plans'), place)
        self.go('plans?since=2020-01-01T00%3A00')
        self.wait_for(lambda: self.count('#plans tbody tr') == 1)
        self.find('#plans tbody a').click()
        self.wait_for(lambda: 'Plan: 50 moves' in self.text('#plan'))

    def test_what_a_plan_may_take_does_not_count_down(self):
        self.finish(3)
        self.open(base.READER, f'plans/{self.plan_uuid}')
        self.wait_for(lambda: 'executing' in self.text('#plan'))
        self.assertNotIn(' left', self.text('#plan'))
        self.assertNotRegex(self.text('#plan'), r'\d+ s\b')

    def test_the_past_has_dates(self):
        self.filled.evaluate('racks')
        self.open(base.READER, 'aggregates/racks')
        self.wait('#history figure')
        times = [each.get_attribute('textContent') for each in
                 self.driver.find_elements(By.CSS_SELECTOR, '#history .times span')]
        self.assertTrue(times)
        for each in times:
            self.assertRegex(each, r'^\d+ \w{3} 20\d\d, ')
        self.go('aggregates/racks?since=2020-01-01T00%3A00&until=2020-01-02T00%3A00')
        self.wait_for(lambda: 'No load was measured in that time' in self.text('#history'))

    def test_a_report_has_a_chart_and_its_figures(self):
        self.finish(3)
        self.open(base.READER, 'reports')
        month = f'{clock.utcnow():%Y-%m}'
        self.wait_for(lambda: month in self.text('#report tbody'))
        self.assertIn(f'{month} completed 3', self.find('#report svg').get_attribute('aria-label'))
        self.assertIn('no evaluation after', self.text('#compared'))
        with self.database.writer() as session:
            for days, hot in ((-2, 600), (2, 60)):
                session.add(models.LoadSumRow(
                    day=(clock.utcnow() + datetime.timedelta(days=days)).date(), aggregate='racks',
                    observed_seconds=86400, hot_seconds=60 * hot, contended_seconds=0,
                    replayed_seconds=86400, unmoved_hot_seconds=60 * 480,
                    unmoved_contended_seconds=0))
        self.go(f'reports?until={clock.utcnow() + datetime.timedelta(days=5):%Y-%m-%dT%H:%M}')
        self.wait_for(lambda: self.count('#compared tbody tr') == 3)
        self.assertEqual(['600', '60', '480'], [each.text for each in self.driver.find_elements(
            By.CSS_SELECTOR, '#compared td:nth-child(2)')])
        self.assertIn('without moves not known', self.drawn(3))
        self.go(f'reports?since={clock.utcnow() + datetime.timedelta(days=1):%Y-%m-%dT%H:%M}'
                f'&until={clock.utcnow() + datetime.timedelta(days=5):%Y-%m-%dT%H:%M}')
        self.wait_for(lambda: 'with the moves 60, without moves 480' in self.drawn(3))
        self.go('reports?by=aggregate')
        self.wait_for(lambda: 'racks' in self.text('#report tbody'))

    def drawn(self, number):
        """The words for the drawing of a report."""
        return self.find(f'#report figure:nth-child({number}) svg').get_attribute('aria-label')

    def test_settings_say_who_set_what(self):
        switches.SwitchBoard(self.database).set(automation.Switch(
            kind=automation.LEVEL, value='observe', aggregate='gpu', set_by='sam',
            set_at=clock.utcnow(), reason='after the move'))
        self.open(base.READER, 'settings')
        self.wait_for(lambda: 'after the move' in self.text('#levels'))
        self.assertIn('sam', self.text('#levels'))
        self.assertIn('after the move', self.text('#switches'))
        self.assertIn('Vienna', self.text('#installation'))
        self.assertIn('receivers for a chat and e-mail', self.text('#installation'))

    def test_drains_of_a_host_are_with_it(self):
        self.filled.drain()
        self.open(base.OPERATOR, f'hosts/{Filled.host(5)}')
        self.wait_for(lambda: '2 of 30' in self.text('#drains'))
        self.go(f'hosts/{Filled.host(6)}')
        self.wait_for(lambda: not self.find('#drains').is_displayed())
        self.assertEqual(1, len(db_drains.Drains(self.database).in_states(['blocked'])))

    def test_a_plan_whose_report_is_not_kept_says_so(self):
        self.finish(50)
        with self.database.writer() as session:
            session.delete(session.get(models.ReportRow, self.plan_uuid))
            session.get(models.PlanRow, self.plan_uuid).state = plans.DONE
        self.open(base.READER, f'plans/{self.plan_uuid}')
        self.wait_for(lambda: self.count('#plan [data-fold=ended]'))
        self.assertEqual(0, self.count('#plan .picture [data-policy]'))
