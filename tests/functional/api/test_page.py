"""The page that kronos-api serves, in a real browser, over the journal of a large cloud."""

import time

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from kronos_nova import clock
from kronos_nova.db import maintenances
from kronos_nova.objects import maintenance
from kronos_nova.objects import plan as plans
from tests.functional.api import fakes_large_cloud
from tests.functional.api import pages
from tests.unit.api import base

PICTURE_SECONDS = 1.5
FROZEN_MS = 1000
HEARD_SECONDS = 5
"""Half of what passes between two looks of a page that hears of everything."""

UPDATES = 60
"""One a second."""

FEWEST_SEEN = UPDATES // 3
"""Updates seen at least by a page that shares two processors with its server and the writer."""

WATCH = """
longTasks.length = 0;
window.seen = new Set();
window.frames = {last: performance.now(), longest: 0};
const frame = now => {
  frames.longest = Math.max(frames.longest, now - frames.last);
  frames.last = now;
  requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
new MutationObserver(() => seen.add(document.querySelector('[data-move="1"] progress')?.value))
  .observe(document.querySelector('#plan'),
           {subtree: true, childList: true, attributes: true, characterData: true});
"""
PICTURE = 'return performance.getEntriesByName("kronos-drawn")[0]?.startTime ?? null'


class SpeedTest(pages.PageTestCase):
    def test_a_thousand_hosts_are_there_soon_and_stay_quick(self):
        self.open(base.READER)
        pictures = []
        for _time in range(3):
            self.driver.refresh()
            self.wait('#aggregate canvas')
            pictures.append(self.wait_for(lambda: self.driver.execute_script(PICTURE)) / 1000)
        self.filled.start(self.plan_uuid, 20)
        self.wait_for(lambda: self.count('#plan progress') > 10)
        self.driver.execute_script(WATCH)
        for step in range(1, UPDATES + 1):
            begun = time.monotonic()
            self.filled.progress(self.plan_uuid, step / UPDATES / 2)
            self.filled.evaluate('racks', shift=step)
            time.sleep(max(0.0, 1.0 - (time.monotonic() - begun)))
        # The last is never lost, whatever was passed over on the way.
        self.wait_for(lambda: self.find('[data-move="1"] progress').get_attribute('value') == '50')
        tasks, gap, seen = self.driver.execute_script(
            'return [longTasks, Math.round(frames.longest), [...seen].filter(Boolean).length]')
        self.browser.keep('page.txt', f'first picture {pictures} s; {seen} of {UPDATES} updates '
                          f'seen; longest task {max(tasks, default=0)} of {len(tasks)} long ones, '
                          f'longest time without a frame {gap} ms')
        self.assertLess(min(pictures), PICTURE_SECONDS)
        self.assertGreaterEqual(seen, FEWEST_SEEN)
        self.assertLess(max(*tasks, gap), FROZEN_MS)
        self.assertSound()


class AccessTest(pages.PageTestCase):
    def test_the_page_has_no_violations_of_accessibility(self):
        self.filled.drain()
        self.open(base.ADMIN)
        for theme in ('light', 'dark'):
            for size, is_phone in (((1400, 1800), False), ((390, 1200), True)):
                self.browser.theme(theme)
                self.browser.size(*size, is_phone)
                self.assertEqual([], self.browser.violations(), f'{theme} {size}')
                self.assertSound()
                self.browser.screenshot(f'live-{theme}-{size[0]}')
        self.click('#as-table')
        self.wait_for(lambda: self.count('#hosts tbody tr') == 200)
        self.click('#stop')
        self.wait('dialog')
        self.assertEqual([], self.browser.violations())


class LookTest(pages.PageTestCase):
    def test_what_happens_is_heard_of_and_not_only_asked_for(self):
        self.open(base.READER)
        self.wait_for(lambda: f'{self.url}/v1/events' in self.browser.requests())
        self.journal.reject_plan(self.plan_uuid, 'another', clock.utcnow())
        begun = time.monotonic()
        self.wait_for(lambda: 'No plan waits or runs' in self.text('#plan'))
        self.assertLess(time.monotonic() - begun, HEARD_SECONDS)
        self.assertSound()

    def test_by_keyboard_alone(self):
        self.open()
        canvas = self.find('#hosts canvas')
        self.driver.execute_script('arguments[0].focus()', canvas)
        self.press(Keys.ARROW_RIGHT)
        first = self.text('#hosts .caption')
        self.assertIn('cpu', first)
        self.press(Keys.END)
        self.assertNotEqual(first, self.text('#hosts .caption'))
        reached = self.tabs(400)
        for wanted in ('approve', 'reject', 'pause', 'stop', 'stop-all', 'theme', 'filter',
                       'as-table'):
            self.assertIn(wanted, reached)
        self.driver.execute_script('document.getElementById("reject").focus()')
        self.press(Keys.ENTER)
        self.wait('dialog')
        self.press(Keys.ESCAPE)
        self.wait_for(lambda: not self.count('dialog'))
        self.assertEqual('reject', self.focused())
        self.assertEqual(plans.PROPOSED, self.journal.plan(self.plan_uuid).state)

    def press(self, key):
        ActionChains(self.driver).send_keys(key).perform()

    def focused(self):
        return self.driver.execute_script('return document.activeElement.id')

    def tabs(self, most):
        """Ids of what the tab key reaches, in its order."""
        self.driver.execute_script('document.activeElement.blur()')
        found = []
        for _time in range(most):
            self.press(Keys.TAB)
            found.append(self.focused())
            if found[-1] and found.count(found[-1]) > 1:
                break
        return found


class BalancedTest(pages.PageTestCase):
    kronos = 'aggregates = racks, gpu, db\nautomation = auto'
    content = {'is_balanced': True, 'hosts': 320, 'servers': 6000}

    def test_where_all_is_well_that_is_plain_to_see(self):
        self.browser.size(1280, 1180)
        self.open(base.READER)
        self.wait_for(lambda: self.text('#severity') == 'all is well')
        self.assertEqual(0, self.count('.badge.bad, .badge.warn'))
        self.assertIn('100 of 100', self.text('#chosen'))
        self.assertSound()
        self.browser.screenshot('page')
        self.go('overview')
        self.assertFalse(self.find('#problems').is_displayed())
        self.assertEqual(0, self.count('.badge.bad, .badge.warn'))


class RolesTest(pages.PageTestCase):
    def test_a_reader_is_offered_nothing_that_writes(self):
        self.filled.drain()
        self.open(base.READER)
        self.wait('#aggregate canvas')
        buttons = {each.text for each in self.driver.find_elements(By.TAG_NAME, 'button')}
        self.assertEqual({'Map', 'Table', 'Only hosts in the plan', 'Show', 'Find', 'Log out'}, {
            each for each in buttons - {''} if not each.startswith('▸')})
        self.assertEqual(0, self.count('#plan [type=checkbox]'))
        self.assertSound()

    def test_an_operator_sets_no_levels_and_an_administrator_does(self):
        self.open(base.OPERATOR)
        self.assertEqual(0, self.count('#level'))
        self.click('#whoami button')
        self.open(base.ADMIN)
        self.click('#level')
        self.confirm(reason='by night')
        self.go('settings')
        self.wait_for(lambda: 'by night' in self.text('#switches'))

    def test_who_may_not_look_is_shown_why(self):
        self.driver.get(f'{self.url}/ui/')
        self.click('#by-token')
        self.find('[name=token]').send_keys(base.TENANT, Keys.ENTER)
        self.wait_for(lambda: 'does not permit' in self.text('[role=alert]'))


class MaintenanceTest(pages.PageTestCase):
    content = {'hosts': 12, 'servers': 100}

    def test_how_far_a_maintenance_is_is_shown(self):
        known = maintenances.Maintenances(self.database)
        known.begin(maintenance.Maintenance(
            uuid='m', state=maintenance.RUNNING, requested_by='jane',
            requested_at=clock.utcnow(), options=maintenance.MaintenanceOptions(),
            hosts={fakes_large_cloud.Filled.host(1): maintenance.HOOK,
                   fakes_large_cloud.Filled.host(2): maintenance.WAITING}))
        self.open(base.READER, 'overview')
        self.assertEqual(['Maintenance of 2 hosts: running, asked for by jane',
                          'compute-0001.example hook', 'compute-0002.example waiting'],
                         self.text('#maintenance').splitlines())
        self.assertEqual([], self.browser.violations())
        known.set_host('m', fakes_large_cloud.Filled.host(1), maintenance.FINISHED)
        self.look()
        self.wait_for(lambda: 'compute-0001.example finished' in self.text('#maintenance'))
        known.set_state('m', maintenance.DONE)
        self.look()
        self.wait_for(lambda: not self.find('#maintenance').is_displayed())
