"""Headless Chromium, driven as a person would."""

import importlib.resources
import json
import os
import shutil

import fixtures
from selenium import webdriver
from selenium.webdriver.chrome import service

FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
         '--disable-background-networking', '--disable-component-update', '--disable-sync',
         '--window-size=1400,1800')


class Browser(fixtures.Fixture):
    """``driver`` is Selenium's."""

    def _setUp(self):
        program, driver = shutil.which('chromium'), shutil.which('chromedriver')
        if not (program and driver):
            raise RuntimeError('chromium and chromium-driver are not installed; see bindep.txt')
        options = webdriver.ChromeOptions()
        options.binary_location = program
        folder = self.useFixture(fixtures.TempDir()).path
        for flag in (*FLAGS, f'--user-data-dir={folder}'):
            options.add_argument(flag)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
        self.driver = webdriver.Chrome(options=options, service=service.Service(driver))
        self.addCleanup(self.driver.quit)

    def theme(self, name):
        """Set the preference of the operating system: light or dark."""
        self.driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {
            'features': [{'name': 'prefers-color-scheme', 'value': name}]})

    def requests(self):
        """The addresses of all requests since this was last asked."""
        messages = [json.loads(each['message'])['message']
                    for each in self.driver.get_log('performance')]
        found = [each['params']['request']['url'] for each in messages
                 if each['method'] == 'Network.requestWillBeSent']
        # The browser's own first page is made of chrome: addresses, and these stay in it.
        return [url for url in found if not url.startswith(('chrome:', 'data:'))]

    def before_every_page(self, script):
        """Run a script in every page that is opened from now on, before its own."""
        self.driver.execute_cdp_cmd('Page.addScriptToEvaluateOnNewDocument', {'source': script})

    def size(self, width, height, is_phone=False):
        """Set the size of the page, without the window around it."""
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': is_phone})

    def violations(self):
        """Return axe-core's findings by the rules of WCAG 2.2, levels A and AA, and good
        practice."""
        axe = importlib.resources.files('axe_core_python').joinpath('axe.min.js')
        self.driver.execute_script(axe.read_text())
        found = self.driver.execute_async_script(
            'const done = arguments[arguments.length - 1];'
            'axe.run(document).then(done, error => done({violations: [String(error)]}))')
        return [each if isinstance(each, str) else (
            each['id'], each['help'], [node['html'][:200] for node in each['nodes'][:3]])
            for each in found['violations']]

    def keep(self, name, text):
        """As :meth:`screenshot`, for figures."""
        folder = os.environ.get('KRONOS_TEST_SCREENSHOTS')
        if folder:
            with open(os.path.join(folder, name), 'w') as file:
                file.write(f'{text}\n')

    def screenshot(self, name):
        """Kept for people to look at, where KRONOS_TEST_SCREENSHOTS names a folder."""
        folder = os.environ.get('KRONOS_TEST_SCREENSHOTS')
        if folder:
            self.driver.save_screenshot(os.path.join(folder, f'{name}.png'))
        return self.driver.get_screenshot_as_png()
