"""Answers the queries of the bench's policies as Prometheus would.

    python -m bench.cloud.prometheus PORT FILE

``FILE`` is JSON: {query: [label, {value of the label: number}]}.
"""

import http.server
import json
import sys
import time
import urllib.parse

NOW = '@now@'


def bodies(series):
    """Return {query: JSON of the answer}, with NOW in place of the time of the samples."""
    return {query: json.dumps({'status': 'success', 'data': {
        'resultType': 'vector',
        'result': [{'metric': {label: name, 'job': 'libvirt', 'instance': '10.0.0.1:9177'},
                    'value': [NOW, repr(value)]} for name, value in values.items()]}})
        for query, (label, values) in series.items()}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    answers = {}

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get('query', [''])[0]
        body = self.answers.get(query, json.dumps({
            'status': 'success', 'data': {'resultType': 'vector', 'result': []}}))
        body = body.replace(f'"{NOW}"', f'{time.time():.3f}').encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Log nothing, because the bench has a report of its own."""


def main(port, path):
    with open(path) as file:
        Handler.answers = bodies(json.load(file))
    http.server.ThreadingHTTPServer(('127.0.0.1', int(port)), Handler).serve_forever()


if __name__ == '__main__':
    main(*sys.argv[1:])
