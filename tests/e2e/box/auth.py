"""Stands where keystonemiddleware does in a paste pipeline: one token, one administrator."""

import json

TOKEN = 'admin'
USER_ID = '0a6d1d0b8f6f4f7c9d7e3c1f2b4a5968'
PROJECT_ID = '5f3c1b7a9e2d4c6f8a0b1c2d3e4f5a6b'
HEADERS = {'HTTP_X_IDENTITY_STATUS': 'Confirmed', 'HTTP_X_USER_ID': USER_ID,
           'HTTP_X_PROJECT_ID': PROJECT_ID, 'HTTP_X_USER_DOMAIN_ID': 'default',
           'HTTP_X_PROJECT_DOMAIN_ID': 'default', 'HTTP_X_ROLES': 'admin,member,reader,service',
           'HTTP_X_SERVICE_CATALOG': json.dumps([])}


def filter_factory(_global_conf, **_local_conf):
    def make(application):
        def authenticated(environ, start_response):
            if environ.get('HTTP_X_AUTH_TOKEN') != TOKEN:
                start_response('401 Unauthorized', [('Content-Type', 'text/plain')])
                return [b'The token is not the one of this cloud.']
            return application({**environ, **HEADERS}, start_response)
        return authenticated
    return make
