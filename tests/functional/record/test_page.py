"""The page of a replay in a real browser, light and dark, small and with a thousand hosts."""

import dataclasses
import os
import time

import fixtures
import testtools
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from kronos_nova.objects import plan
from kronos_nova.record import html
from tests.browser import Browser
from tests.unit.record.reports import a_cloud
from tests.unit.record.reports import a_report

EVIL = '</script><img src=x onerror="document.title=\'owned\'">{}'

# WCAG's contrast of every element that has text of its own against what is painted behind it.
CONTRASTS = """
const light = colour => { const [r, g, b] = colour.map(v => { v /= 255;
  return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const parse = text => text.match(/[0-9.]+/g).map(Number);
const behind = node => { for (; node; node = node.parentElement) {
  const colour = parse(getComputedStyle(node).backgroundColor);
  if (colour.length < 4 || colour[3] > 0) return colour.slice(0, 3); } return [255, 255, 255]; };
const low = {};
for (const node of document.querySelectorAll('body *:not(script):not(noscript):not(option)')) {
  if (![...node.childNodes].some(c => c.nodeType === 3 && c.data.trim())) continue;
  const [a, b] = [light(parse(getComputedStyle(node).color).slice(0, 3)), light(behind(node))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) low[node.tagName + '.' + node.className] = contrast;
}
return low;
"""


class PageTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.browser = self.useFixture(Browser())
        self.driver = self.browser.driver

    def open(self, *cycles):
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'page.html')
        page = html.Page()
        for cycle in cycles:
            page.add(*cycle)
        with open(path, 'w') as file:
            page.write(file)
        started = time.monotonic()
        self.driver.get(f'file://{path}')
        return time.monotonic() - started

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def assertSound(self):  # noqa: N802 - as testtools spells it
        """Nothing failed, nothing was fetched, nothing sticks out."""
        self.assertEqual([], self.driver.get_log('browser'))
        self.assertEqual(0, self.driver.execute_script(
            'return performance.getEntriesByType("resource").length'))
        self.assertLessEqual(*self.driver.execute_script(
            'return [document.documentElement.scrollWidth, innerWidth]'))

    def test_everything_is_reported_light_and_dark(self):
        cloud = a_cloud(hosts=12, instances=60, display_name=EVIL)
        report = a_report(cloud, policies=('cpu', 'memory'), moves=5)
        aggregate = dataclasses.replace(
            report.aggregates[0], warnings=('cmp2 cannot be emptied',), hosts_emptied=('cmp0',))
        self.browser.theme('light')
        self.open(('tonight', cloud, dataclasses.replace(report, aggregates=(aggregate,))))
        self.assertIn('tonight', self.text('#when'))
        self.assertIn('0.800 → 0.300', self.text('#aggregates'))
        self.assertEqual(12, len(self.find('#hosts tbody tr')))
        self.assertEqual(5, len(self.find('#moves tbody tr')))
        self.assertIn('cmp0 → cmp11', self.text('#moves tbody tr'))
        self.assertIn('evens the load', self.text('#moves tbody tr'))
        self.assertIn('cmp2 cannot be emptied', self.text('#warnings'))
        self.assertIn('emptied', self.text('[data-host=cmp0]'))
        self.assertIn('disabled', self.text('[data-host=cmp2]'))
        self.find('#stayed summary')[0].click()
        self.assertEqual(55, len(self.find('#stayed .list > div')))
        self.assertEqual('Kronos plan', self.driver.title)  # EVIL is only text
        self.assertSound()
        shots = []
        for theme in ('light', 'dark'):
            self.browser.theme(theme)
            self.assertEqual({}, self.driver.execute_script(CONTRASTS), theme)
            shots.append(self.browser.screenshot(f'page-{theme}'))
        self.assertNotEqual(*shots)
        Select(self.find('#theme')[0]).select_by_value('light')
        self.assertEqual('light', self.driver.execute_script(
            'return document.documentElement.dataset.theme'))


    def test_bars_are_as_long_as_what_they_stand_for(self):
        cloud = a_cloud(hosts=4, instances=8)
        self.open(('now', cloud, a_report(cloud)))
        before, after = self.driver.execute_script(
            'const bar = document.querySelector("[data-host=cmp0] .bar"),'
            ' all = bar.getBoundingClientRect().width;'
            'bar.getAnimations({subtree: true}).forEach(each => each.finish());'
            'return [...bar.children].map(part => part.getBoundingClientRect().width / all)')
        self.assertAlmostEqual(0.9, before, delta=0.01)
        self.assertAlmostEqual(0.6, after, delta=0.01)

    def test_a_thousand_hosts_can_be_found_and_ordered(self):
        cloud = a_cloud(hosts=1000, instances=10000)
        seconds = self.open(('big', cloud, a_report(cloud, ('cpu', 'memory'), moves=100)))
        self.assertLess(seconds, 10)
        self.assertEqual('1,000 hosts of 1,000', self.text('#host-count'))
        self.assertEqual(50, len(self.find('#moves tbody tr')))
        self.find('#moves button')[0].click()
        self.assertEqual(100, len(self.find('#moves tbody tr')))
        self.assertEqual(2, len(self.find('#hosts canvas')))
        self.find('#only')[0].click()
        self.assertEqual('200 hosts of 1,000', self.text('#host-count'))
        self.find('#only')[0].click()
        self.find('#as-table')[0].click()
        Select(self.find('#order')[0]).select_by_visible_text('fullest first')
        self.assertEqual('cmp0', self.find('#hosts tbody tr')[0].get_attribute('data-host'))
        self.assertEqual(200, len(self.find('#hosts tbody tr')))
        self.find('#filter')[0].send_keys('cmp99')
        self.assertEqual(11, len(self.find('#hosts tbody tr')))
        self.assertSound()
        for theme in ('light', 'dark'):
            self.browser.theme(theme)
            self.browser.screenshot(f'page-1000-{theme}')

    def test_a_policy_that_ends_above_its_threshold_is_no_success(self):
        cloud = a_cloud(hosts=4, instances=8)
        self.open(('now', cloud, a_report(cloud)))
        self.assertIn('above threshold', self.text('#aggregates'))
        self.assertEqual([], self.find('#aggregates .badge.good'))
        self.assertIn('above threshold', self.text('[data-policy=cpu]'))

    def test_a_reason_says_nothing_that_stands_beside_it(self):
        cloud = a_cloud(hosts=4, instances=8)
        report = a_report(cloud)
        move = dataclasses.replace(report.aggregates[0].moves[0], reason=(
            'evens the load: imbalance cpu 0.800 to 0.300; load of cmp0 cpu 0.900 to 0.600; '
            '2048 MiB to copy'))
        self.open(('now', cloud, dataclasses.replace(report, aggregates=(
            dataclasses.replace(report.aggregates[0], moves=(move,)),))))
        self.assertEqual('evens the load\nimbalance cpu 0.800 to 0.300\n'
                         'load of cmp0 cpu 0.900 to 0.600', self.text('#moves td.why'))
        self.assertIn('2.0 GiB', self.text('#moves'))
        self.assertNotIn('MiB', self.text('#moves'))
        self.assertIn('20 Nov 2026, 12:00:00 UTC', self.text('#when'))

    def test_a_day_of_snapshots_one_of_them_without_data(self):
        cloud = a_cloud(hosts=4, instances=8)
        nothing = plan.AggregateReport(
            name='gpu', outcome='no_data', mode='spread', planner='spread', policies=(
                plan.PolicyReport(name='cpu', state='no_data', weight=1.0, threshold=0.1,
                                  detail='no series has the label "host"'),))
        self.open(('00:00', cloud, a_report(cloud)),
                  ('00:05', cloud, plan.CycleReport(planning_seconds=0.1, aggregates=(nothing,))),
                  ('00:10', cloud, plan.CycleReport(planning_seconds=0.1)))
        rows = self.find('#day tbody tr')
        self.assertEqual(3, len(rows))
        self.assertIn('00:00', self.text('#when'))
        rows[1].find_element(By.TAG_NAME, 'button').click()
        self.assertIn('00:05', self.text('#when'))
        self.assertIn('no series has the label "host"', self.text('#policies'))
        self.assertIn('not measured', self.text('#hosts'))
        self.assertEqual([], self.find('#moves'))
        self.browser.screenshot('page-day')
        rows[2].find_element(By.TAG_NAME, 'button').click()
        self.assertIn('No aggregate', self.text('#aggregate'))
        self.assertSound()

    def test_a_narrow_window(self):
        cloud = a_cloud(hosts=12, instances=60)
        self.driver.set_window_size(600, 900)
        self.open(('small', cloud, a_report(cloud)))
        self.assertSound()
