"""A proxy in front of an API, which misbehaves at a test's order."""

import http.server
import threading

import fixtures
import requests

PASS, HANG = 'pass', 'hang'
HOP_BY_HOP = {'connection', 'transfer-encoding', 'content-length', 'content-encoding', 'host'}


class Proxy(fixtures.Fixture):
    """``url`` leads to ``target`` while ``mode`` is PASS. With HANG nothing is answered until
    ``mode`` is another. An HTTP status as ``mode`` is the status of every answer."""

    def __init__(self, target):
        self.target = target
        self._changed = threading.Condition()
        self._mode = PASS

    def path(self, path):
        """Return the path and query to ask the target for."""
        return path

    def content(self, content):
        """Return what to answer where the target answered ``content``."""
        return content

    @property
    def mode(self):
        return self._mode

    @mode.setter
    def mode(self, mode):
        with self._changed:
            self._mode = mode
            self._changed.notify_all()

    def _setUp(self):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def pass_on(self):
                body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
                with proxy._changed:
                    proxy._changed.wait_for(lambda: proxy.mode != HANG)
                    mode = proxy.mode
                if mode != PASS:
                    self.say(mode, b'{"computeFault": {"message": "by order of a test"}}', {})
                    return
                answer = requests.request(
                    self.command, proxy.target + proxy.path(self.path), data=body, timeout=60,
                    headers={name: value for name, value in self.headers.items()
                             if name.lower() not in HOP_BY_HOP})
                self.say(answer.status_code, proxy.content(answer.content), answer.headers)

            def say(self, status, body, headers):
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() not in HOP_BY_HOP:
                        self.send_header(name, value)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = pass_on  # noqa: N815 - the names http.server looks for

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        server.daemon_threads = True
        server.handle_error = lambda *args: None  # clients that gave up waiting
        self.url = f'http://127.0.0.1:{server.server_port}'
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(setattr, self, 'mode', PASS)
