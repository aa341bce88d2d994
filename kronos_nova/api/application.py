"""The WSGI application: the operations behind keystonemiddleware, oslo.policy and request ids."""

import threading

import falcon
import microversion_parse
from keystonemiddleware import auth_token
from oslo_context import context as oslo_context
from oslo_middleware import http_proxy_to_wsgi
from oslo_middleware import opts as middleware_opts
from oslo_middleware import request_id

from kronos_nova.api import errors
from kronos_nova.api import login
from kronos_nova.api import openapi
from kronos_nova.api import page
from kronos_nova.api import policies
from kronos_nova.api import resources
from kronos_nova.api import routes
from kronos_nova.api.call import Services

SLOW_AT_ONCE = 2
"""Of those operations that take seconds: each reads a whole cloud."""


def make(conf, services: Services):
    """The application, whole.

    :param conf: the ConfigOpts, of which keystonemiddleware reads ``[keystone_authtoken]``
    """
    application = falcon.App(middleware=[
        page.Protection(), BodyLimit(conf), Microversion(), Authentication()])
    application.add_error_handler(Exception, errors.translate)
    application.add_error_handler(falcon.HTTPError, _as_it_is)
    application.set_error_serializer(errors.serialize)
    _add_routes(application, services, policies.enforcer(conf), resources.Turns(
        quick=threading.BoundedSemaphore(conf.kronos_api.threads),
        slow=threading.BoundedSemaphore(SLOW_AT_ONCE)))
    application.add_route('/ui/login', login.Login(conf))
    page.add_routes(application)
    for wrap in (_authenticated, request_id.RequestId, http_proxy_to_wsgi.HTTPProxyToWSGI):
        application = wrap(application, conf)
    return application


def _add_routes(application, services, enforcer, turns):
    for path in dict.fromkeys(operation.path for operation in routes.OPERATIONS):
        application.add_route(path, resources.Resource(
            [each for each in routes.OPERATIONS if each.path == path], services, enforcer,
            turns))
    application.add_route('/', resources.Versions())
    application.add_route('/v1', resources.Versions())
    application.add_route('/v1/openapi.json', resources.Document(openapi.text()))
    application.add_route('/healthcheck', resources.Healthcheck())


def _authenticated(application, conf):
    """Tokens are judged here; whether one is needed, by the application."""
    return auth_token.AuthProtocol(application, {
        'oslo_config_config': conf, 'delay_auth_decision': True})


def _as_it_is(_request, _response, error, _params):
    raise error


class BodyLimit:
    """Refuses a body that is larger than ``[oslo_middleware] max_request_body_size``; oslo's own
    middleware for that answers in plain text."""

    def __init__(self, conf):
        for group, options in middleware_opts.list_opts_sizelimit():
            conf.register_opts(options, group=group)
        self._group = conf.oslo_middleware

    def process_request(self, request, _response):
        # A body of unknown length is not read by falcon at all.
        most = self._group.max_request_body_size
        if (request.content_length or 0) > most:
            raise falcon.HTTPContentTooLarge(description=f'A body may have {most} bytes.')


class Microversion:
    """Agrees on a microversion, and tells it."""

    def process_request(self, request, response):
        response.append_header('Vary', microversion_parse.STANDARD_HEADER)
        try:
            found = microversion_parse.extract_version(
                {name.lower(): value for name, value in request.headers.items()}, routes.SERVICE,
                routes.VERSIONS)
        except TypeError as error:
            raise falcon.HTTPBadRequest(description=f'Invalid microversion: {error}') from error
        except ValueError as error:
            raise falcon.HTTPNotAcceptable(
                description=f'{error}; this is {routes.VERSIONS[0]} to {routes.VERSIONS[-1]}'
            ) from error
        response.set_header(microversion_parse.STANDARD_HEADER, f'{routes.SERVICE} {found}')


class Authentication:
    """Lets nobody in without a token that keystone knows, but for what everybody may know."""

    def process_resource(self, request, _response, resource, _params):
        if getattr(resource, 'is_public', False):
            return
        if request.env.get('HTTP_X_IDENTITY_STATUS') != 'Confirmed':
            raise falcon.HTTPUnauthorized(description='A token of keystone is needed.')
        request.context.keystone = oslo_context.RequestContext.from_environ(request.env)
