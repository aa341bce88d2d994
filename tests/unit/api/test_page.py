"""The files of the page: what they are served as, and what they forbid browsers to do with them.
What the page does is tried in a browser, in the functional tests."""

import re

import requests
import testtools

from kronos_nova import page
from kronos_nova.api import application
from tests.unit.api import base

TYPES = {'js': 'text/javascript', 'css': 'text/css', 'svg': 'image/svg+xml'}
TOP_LEVEL = re.compile(r'^(?:async )?(?:const|let|class|function) (\w+)', re.MULTILINE)


class ServedTest(base.ApiTestCase):
    def get(self, path, **headers):
        return requests.get(f'{self.url}{path}', headers=headers, timeout=60,
                            allow_redirects=False)

    def test_a_browser_is_led_to_the_page_and_a_program_is_not(self):
        answer = self.get('/', Accept='text/html,application/xhtml+xml,*/*;q=0.8')
        self.assertEqual((303, f'{self.url}/ui/'), (
            answer.status_code, answer.headers['location']))
        for accept in ('application/json', '*/*'):
            self.assertEqual('v1', self.get('/', Accept=accept).json()['versions'][0]['id'])

    def test_every_file_has_its_type_and_needs_no_token(self):
        files = {'': 'text/html', **{name: TYPES[name.rpartition('.')[2]]
                                     for name in page.served()}}
        self.assertIn('live.js', files)
        for name, wanted in files.items():
            answer = self.get(f'/ui/{name}')
            self.assertEqual((200, f'{wanted}; charset=utf-8', 'nosniff'), (
                answer.status_code, answer.headers['content-type'],
                answer.headers['x-content-type-options']))

    def test_what_a_browser_has_is_not_sent_again(self):
        answer = self.get('/ui/live.js')
        self.assertEqual('no-cache', answer.headers['cache-control'])
        again = self.get('/ui/live.js', **{'If-None-Match': answer.headers['etag']})
        self.assertEqual((304, b''), (again.status_code, again.content))
        self.assertEqual(200, self.get('/ui/live.js', **{'If-None-Match': '"other"'}).status_code)

    def test_the_page_permits_no_inline_scripts_and_no_frames(self):
        policy = dict(part.split(' ', 1) for part in self.get('/ui/').headers[
            'content-security-policy'].split('; '))
        self.assertEqual("'none'", policy['default-src'])
        for source in ('script-src', 'style-src', 'connect-src', 'img-src'):
            self.assertEqual("'self'", policy[source])
        self.assertEqual("'none'", policy['frame-ancestors'])
        self.assertNotIn('unsafe', str(policy))
        text = self.get('/ui/').text
        self.assertEqual([], re.findall(r'<style|style=|<script(?![^>]* src=)|\son\w+=', text))

    def test_it_knows_which_ways_to_log_in_there_are(self):
        self.assertIn('<meta name="kronos-logins" content="password token">', self.get('/ui/').text)
        self.conf.set_override('password_login', False, 'kronos_api')
        self.url = self.serve(application.make(self.conf, self.services()))
        self.assertIn('<meta name="kronos-logins" content="token">', self.get('/ui/').text)

    def test_answers_of_the_api_are_not_cached(self):
        self.ask('/v1/access')
        self.assertEqual(('no-store', 'nosniff', "default-src 'none'; frame-ancestors 'none'"), (
            self.answer.headers['cache-control'], self.answer.headers['x-content-type-options'],
            self.answer.headers['content-security-policy']))

    def test_nothing_else_of_the_package_is_served(self):
        for name in ('__init__.py', 'replay.html', '../api/page.py', 'none.js'):
            self.assertEqual(404, self.get(f'/ui/{name}').status_code)


class ComponentsTest(testtools.TestCase):
    def test_no_file_names_another_place(self):
        self.assertGreater(len(page.served()), 20)
        for name, (_type, content) in page.served().items():
            found = re.findall(r'https?://[^\s\'"]+', content.decode())
            self.assertEqual([], [each for each in found if 'www.w3.org' not in each], name)

    def test_what_is_imported_is_there(self):
        files, imported = page.served(), set()
        for name, (_type, content) in files.items():
            for names, source in re.findall(r"^import \{([^}]*)\} from '\./([\w.]+)';",
                                            content.decode(), re.MULTILINE):
                exported = files[source][1].decode()
                imported.add(source)
                for each in names.split(','):
                    self.assertRegex(exported, rf'(?m)^export (async )?\w+ {each.strip()}\b',
                                     f'{name} imports {each} from {source}')
        self.assertGreater(len(imported), 10)

    def test_joined_modules_name_nothing_twice_and_import_nothing(self):
        text = page.joined('replay.js')
        self.assertEqual([], re.findall(r'^(?:import|export)\b.*', text, re.MULTILINE))
        names = TOP_LEVEL.findall(text)
        self.assertEqual(sorted({*names}), sorted(names))
