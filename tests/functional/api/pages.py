"""The page that kronos-api serves, in a real browser, over the journal of a large cloud."""

from selenium.common import exceptions
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser import Browser
from tests.functional.api import fakes_large_cloud
from tests.unit.api import base

PATIENCE = 20

WATCH_TASKS = """
window.longTasks = [];
new PerformanceObserver(list => { for (const each of list.getEntries())
  window.longTasks.push(Math.round(each.duration)); }).observe({type: 'longtask', buffered: true});
"""


class PageTestCase(base.ApiTestCase):
    kronos = 'aggregates = racks, gpu, db'
    content = {}

    def setUp(self):
        super().setUp()
        self.filled = fakes_large_cloud.Filled(
            self.database, ('racks', 'gpu', 'db'), **self.content)
        self.plan_uuid = self.filled.fill()
        self.browser = self.useFixture(Browser())
        self.driver = self.browser.driver
        self.browser.before_every_page(WATCH_TASKS)

    def read_cloud(self):
        raise AssertionError('the cloud is not read for that')

    # -- as a person does

    def open(self, token=base.OPERATOR, place='aggregates'):
        """Log in at an address within the page."""
        self.driver.get(f'{self.url}/ui/#/{place}')
        self.click('#by-token')
        self.find('[name=token]').send_keys(token)
        self.find('[name=token]').send_keys(Keys.ENTER)
        if token:
            self.wait_for_view(place)

    def go(self, place):
        """Follow a link to another view."""
        self.driver.execute_script('location.hash = arguments[0]', f'#/{place}')
        self.wait_for_view(place)

    def wait_for_view(self, place):
        view = place.partition('?')[0].partition('/')[0]
        self.wait(f'.view[data-view={view}]')

    def unfold(self):
        """Open every fold of the plan."""
        self.wait('#plan .fold button')
        for each in self.driver.find_elements(By.CSS_SELECTOR, '.fold [aria-expanded=false]'):
            each.click()

    def look(self):
        """Have the page look now, as it does when its tab is shown again."""
        self.driver.execute_script('document.dispatchEvent(new Event("visibilitychange"))')

    def wait(self, selector):
        return WebDriverWait(self.driver, PATIENCE).until(
            expected_conditions.visibility_of_element_located((By.CSS_SELECTOR, selector)))

    def wait_for(self, condition, message=''):
        return WebDriverWait(self.driver, PATIENCE, 0.1, ignored_exceptions=[
            exceptions.StaleElementReferenceException]).until(lambda _driver: condition(), message)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def count(self, selector):
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def text(self, selector='body'):
        return self.find(selector).text

    def click(self, selector):
        self.wait(selector).click()

    def confirm(self, **fields):
        self.wait('dialog #confirm')
        for name, value in fields.items():
            self.find(f'dialog [name={name}]').send_keys(value)
        self.find('dialog #confirm').click()

    def assertSound(self):  # noqa: N802 - as testtools spells it
        """Nothing failed, nothing was kept back by the policy, nothing asked elsewhere."""
        self.assertEqual([], [each for each in self.driver.get_log('browser')
                              if '401 (Unauthorized)' not in each['message']])
        self.assertEqual([], [each for each in self.browser.requests()
                              if not each.startswith(f'{self.url}/')])
        self.assertLessEqual(*self.driver.execute_script(
            'return [document.documentElement.scrollWidth, '
            'innerWidth * Math.min(1, visualViewport.scale)]'))
