"""A network service without networks: every collection is empty.

Showing a server asks for its ports, so some endpoint must answer even where servers boot with
``networks: none``.
"""

import json


def application(environ, start_response):
    collection = environ['PATH_INFO'].rstrip('/').rpartition('/')[2]
    start_response('200 OK', [('Content-Type', 'application/json')])
    return [json.dumps({collection.replace('-', '_'): []}).encode()]
