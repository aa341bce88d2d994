"""Serves one WSGI application under waitress, with an access log of a JSON object a line.

    python -m tests.e2e.box.serve MODULE PORT ACCESSLOG [PROCESSES]

``MODULE`` has an attribute ``application``. A logged request has ``time``, ``method``,
``path``, ``query``, ``status``, ``agent`` (the sender's User-Agent, which names the service),
``request`` (the global request id) and, for what is written under ``/allocations``, the ``body``.
"""

import importlib
import io
import json
import os
import socket
import sys
import threading
import time

THREADS = 12


class AccessLog:
    def __init__(self, application, path):
        self._application = application
        self._path = path
        self._lock = threading.Lock()

    def __call__(self, environ, start_response):
        entry = {'time': time.time(), 'method': environ['REQUEST_METHOD'],
                 'path': environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', ''),
                 'query': environ.get('QUERY_STRING', ''),
                 'agent': environ.get('HTTP_USER_AGENT', ''),
                 'request': environ.get('HTTP_X_OPENSTACK_REQUEST_ID')}
        if entry['method'] in ('PUT', 'POST') and entry['path'].startswith('/allocations'):
            entry['body'] = self._read_body(environ)

        def started(status, headers, exc_info=None):
            self._write(dict(entry, status=int(status.split()[0])))
            return start_response(status, headers, exc_info)
        return self._application(environ, started)

    @staticmethod
    def _read_body(environ):
        body = environ['wsgi.input'].read(int(environ.get('CONTENT_LENGTH') or 0))
        environ['wsgi.input'] = io.BytesIO(body)
        return json.loads(body or b'null')

    def _write(self, entry):
        with self._lock, open(self._path, 'a') as log:
            log.write(json.dumps(entry) + '\n')


def main(module, port, log, processes=1):
    # Bound, but no request is read before the application is there: until then clients are to be
    # refused, and not to wait.
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(('127.0.0.1', int(port)))
    # Before the application is loaded: what it opens is each process' own.
    for _another in range(int(processes) - 1):
        if os.fork() == 0:
            break
    # The services parse sys.argv as their own, and keystoneauth takes its User-Agent from it.
    sys.argv = [module.partition('.')[0] + '-api']
    application = importlib.import_module(module).application
    # Only now: it must not come before a service has chosen its concurrency mode.
    import waitress
    waitress.serve(AccessLog(application, log), sockets=[bound], threads=THREADS,
                   clear_untrusted_proxy_headers=False)


if __name__ == '__main__':
    main(*sys.argv[1:])
