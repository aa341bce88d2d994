"""The metrics of Kronos from the first moment of a demo to its last."""

import io
import os
import pathlib
import subprocess
import threading

import fixtures
import requests
import testtools
from rich import console
from testtools import content
from testtools import content_type

from tests.e2e.demo import __main__ as demo
from tests.e2e.demo import view

PERIOD_SECONDS = 1


class Scraper(fixtures.Fixture):
    """Keeps every answer of an exporter, from when it first gives one."""

    def __init__(self, url):
        self.answers = []
        self._url, self._ended = url, threading.Event()

    def _setUp(self):
        thread = threading.Thread(target=self._scrape, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 30)
        self.addCleanup(self._ended.set)

    def _scrape(self):
        while not self._ended.wait(PERIOD_SECONDS):
            try:
                self.answers.append(requests.get(self._url, timeout=10).text)
            except requests.ConnectionError:
                continue    # it has not started yet, or has ended


class ScrapesTest(testtools.TestCase):
    def test_promtool_finds_nothing_to_say_of_any_scrape_of_a_whole_demo(self):
        plan, cloud = demo.prepare(demo.parse(
            [] if os.environ.get('KRONOS_E2E_DEMO') == 'whole' else ['--fast']))
        self.addCleanup(cloud.stop)
        said = io.StringIO()
        self.addDetail('said', content.Content(
            content_type.UTF8_TEXT, lambda: [said.getvalue().encode()]))
        with (Scraper(cloud.alerting.exporter_url) as scraper,
              view.Plain(console.Console(file=said)) as screen):
            cloud.progress = screen.step
            result = demo.Demo(plan, cloud, screen, {}, pathlib.Path(
                self.useFixture(fixtures.TempDir()).path, 'page.png')).run()
        self.assertTrue(result['passed'], result)
        self.assertLess(30, len(scraper.answers))
        self.assertEqual({}, {
            number: complaint for number, answer in enumerate(scraper.answers)
            if (complaint := self.complaint(answer))})
        series = max(sum(not line.startswith('#') for line in answer.splitlines())
                     for answer in scraper.answers)
        print(f'{len(scraper.answers)} scrapes, {series} series at most')
        hosts = sum(map(len, plan.hosts.values()))
        self.assertLess(series, 40 + 6 * hosts)

    def complaint(self, answer):
        checked = subprocess.run(['promtool', 'check', 'metrics'], input=answer,
                                 capture_output=True, text=True, timeout=60)
        return f'{checked.stdout}{checked.stderr}{checked.returncode or ""}'
