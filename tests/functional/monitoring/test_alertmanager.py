"""The sample of receivers, with a real Alertmanager, a chat and a mail server of the test."""

import json
import pathlib
import queue
import socketserver
import subprocess
import threading
import time

import fixtures
import requests
import testtools
import yaml

from tests.e2e.box import settings
from tests.unit.fakes_web_server import WebServer

PROMETHEUS = pathlib.Path(__file__).parents[3] / 'etc/kronos/prometheus'
SECONDS = 60


class MailServer(socketserver.StreamRequestHandler):
    """As much of SMTP (RFC 5321) as a mail needs."""

    def handle(self):
        self.wfile.write(b'220 test\r\n')
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word == b'DATA':
                self.wfile.write(b'354 go on\r\n')
                self.server.mails.put(b''.join(iter(self.rfile.readline, b'.\r\n')).decode())
            self.wfile.write(b'221 bye\r\n' if word == b'QUIT' else b'250 ok\r\n')


class ReceiversTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.messages = queue.Queue()
        mails = socketserver.ThreadingTCPServer(('127.0.0.1', 0), MailServer)
        mails.mails, mails.daemon_threads = queue.Queue(), True
        self.mails = mails.mails
        threading.Thread(target=mails.serve_forever, daemon=True).start()
        self.addCleanup(mails.server_close)
        self.addCleanup(mails.shutdown)
        self.web_server = self.useFixture(WebServer(self.answer))
        conf = yaml.safe_load((PROMETHEUS / 'alertmanager.yaml').read_text())
        conf['global'] |= {'smtp_smarthost': f'127.0.0.1:{mails.server_address[1]}',
                           'smtp_require_tls': False}
        for name in ('smtp_auth_username', 'smtp_auth_password_file'):
            del conf['global'][name]
        conf['route'] |= {'group_wait': '0s', 'group_interval': '1s'}
        next(each for each in conf['receivers'] if each['name'] == 'chat')[
            'slack_configs'][0]['api_url'] = self.web_server.url
        self.start(conf)
        rules = yaml.safe_load((PROMETHEUS / 'kronos.rules.yaml').read_text())
        self.rules = {rule['alert']: rule for group in rules['groups'] for rule in group['rules']
                      if 'alert' in rule}

    def answer(self, handler):
        """Answer as the webhook of a chat does."""
        _method, _path, _headers, body = self.web_server.requests[-1]
        self.messages.put(json.loads(body)['attachments'][0])
        handler.send_response(200)
        handler.send_header('Content-Length', '2')
        handler.end_headers()
        handler.wfile.write(b'ok')

    def start(self, conf):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / 'conf.yml').write_text(yaml.safe_dump(conf))
        port = settings.Ports().take()
        self.url = f'http://127.0.0.1:{port}'
        with open(folder / 'log', 'wb') as log:
            process = subprocess.Popen(
                ['prometheus-alertmanager', f'--config.file={folder / "conf.yml"}',
                 f'--storage.path={folder}', f'--web.listen-address=127.0.0.1:{port}',
                 '--cluster.listen-address='], stdout=log, stderr=log)
        self.addCleanup(process.wait, 20)
        self.addCleanup(process.terminate)
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                if requests.get(f'{self.url}/-/ready', timeout=1).ok:
                    return
            except requests.RequestException:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((folder / 'log').read_text()) from None
            time.sleep(0.05)

    def fire(self, name):
        rule = self.rules[name]
        requests.post(f'{self.url}/api/v2/alerts', timeout=10, json=[{
            'labels': {'alertname': name, 'aggregate': 'gpu', **rule['labels']},
            'annotations': rule['annotations']}]).raise_for_status()
        return rule['annotations']

    def test_a_critical_alert_reaches_the_chat_and_the_mail(self):
        said = self.fire('KronosDatabaseDown')
        message, mail = self.messages.get(timeout=SECONDS), self.mails.get(timeout=SECONDS)
        self.assertEqual('FIRING: KronosDatabaseDown', message['title'])
        self.assertEqual(f'https://docs.example.com/kronos/{said["playbook"]}',
                         message['title_link'])
        self.assertIn(said['summary'], message['text'])
        self.assertIn('Subject: FIRING: KronosDatabaseDown gpu', mail)
        self.assertIn(said['playbook'], mail)

    def test_a_warning_is_a_mail_and_information_is_neither(self):
        severities = {name: rule['labels']['severity'] for name, rule in self.rules.items()}
        self.fire(next(name for name, severity in severities.items() if severity == 'info'))
        warning = next(name for name, severity in severities.items() if severity == 'warning')
        self.fire(warning)
        self.assertIn(f'FIRING: {warning}', self.mails.get(timeout=SECONDS))
        time.sleep(2)
        self.assertEqual((True, True), (self.mails.empty(), self.messages.empty()))
