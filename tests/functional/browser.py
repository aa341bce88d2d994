"""Headless Chromium, driven as a person would."""

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
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self.driver = webdriver.Chrome(options=options, service=service.Service(driver))
        self.addCleanup(self.driver.quit)

    def theme(self, name):
        """What the operating system says it prefers: light or dark."""
        self.driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {
            'features': [{'name': 'prefers-color-scheme', 'value': name}]})

    def screenshot(self, name):
        """Kept for people to look at, where KRONOS_TEST_SCREENSHOTS names a folder."""
        folder = os.environ.get('KRONOS_TEST_SCREENSHOTS')
        if folder:
            self.driver.save_screenshot(os.path.join(folder, f'{name}.png'))
        return self.driver.get_screenshot_as_png()
