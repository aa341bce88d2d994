"""The WSGI application of kronos-api. Each request passes keystonemiddleware, oslo.policy and the
middleware for request ids before its operation runs."""

import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import falcon
import microversion_parse
import webob.exc
from keystoneauth1 import exceptions as ks_exceptions
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import log as logging
from oslo_middleware import http_proxy_to_wsgi
from oslo_middleware import opts as middleware_opts
from oslo_middleware import request_id
from oslo_policy import policy

from kronos_client.contract import versions
from kronos_nova.api import errors
from kronos_nova.api import login
from kronos_nova.api import openapi
from kronos_nova.api import page
from kronos_nova.api import policies
from kronos_nova.api import protocol
from kronos_nova.api import resources
from kronos_nova.api import routes
from kronos_nova.api.operation import Services

LOG = logging.getLogger(__name__)

SLOW_AT_ONCE = 2
"""Maximum number of slow operations that one process of kronos-api runs at a time. A slow
operation, such as one that reads the whole cloud, takes seconds. Further slow operations are
refused with 503. Raised, the process takes more memory and processor time; lowered, more requests
are refused. Not measured."""

KEYSTONE_SECONDS = 5
"""Maximum seconds to wait for keystone when a token is validated. The option
``http_connect_timeout`` of ``[keystone_authtoken]``, if it is set, is used instead. Raised, each
request holds a thread for longer while keystone does not answer; lowered, requests fail while
keystone is slow. Not measured."""

AWAY = 'kronos.keystone_is_away'
"""Key in the WSGI environment of a request whose token could not be validated, because keystone did
not answer."""


def make(conf: cfg.ConfigOpts, services: Services) -> protocol.Application:
    """Make the WSGI application of kronos-api, with all of its routes and limits.

    :param conf: the ConfigOpts, from which keystonemiddleware reads ``[keystone_authtoken]``
    """
    middleware: list[Any] = [
        page.Protection(), protocol.Slashes(), BodyLimit(conf), Microversion(), Authentication()]
    application = falcon.App(middleware=middleware)
    application.add_error_handler(Exception, errors.translate)
    application.add_error_handler(falcon.HTTPError, _as_it_is)
    application.set_error_serializer(errors.serialize)
    _add_routes(application, services, policies.enforcer(conf), resources.Turns(
        quick=threading.BoundedSemaphore(conf.kronos_api.threads),
        slow=threading.BoundedSemaphore(SLOW_AT_ONCE)))
    application.add_route('/ui/login', login.Login(conf))
    page.add_routes(application, conf.kronos_api.password_login)
    application.add_route('/ui', resources.ToPage())
    wrapped: Any = protocol.answering_head(application)
    for wrap in (_authenticated, _OwnContext, request_id.RequestId,
                 http_proxy_to_wsgi.HTTPProxyToWSGI):
        wrapped = wrap(wrapped, conf)
    return wrapped


def _add_routes(application: falcon.App, services: Services, enforcer: policy.Enforcer,
                turns: resources.Turns) -> None:
    for path in dict.fromkeys(operation.path for operation in routes.OPERATIONS):
        application.add_route(path, resources.Resource(
            [each for each in routes.OPERATIONS if each.path == path], services, enforcer,
            turns))
    application.add_route('/', resources.VersionsResource())
    application.add_route('/v1', resources.VersionsResource())
    application.add_route('/v1/openapi.json', resources.Document(openapi.text()))
    application.add_route('/healthcheck', resources.Healthcheck())


class _OwnContext:
    """A middleware that gives each request a new context. Otherwise, log messages about a request
    could have the context of the request that the same thread handled before."""

    def __init__(self, application: protocol.Application, _conf: cfg.ConfigOpts):
        self._application = application

    def __call__(self, environ: dict[str, Any],
                 start_response: Callable[..., Any]) -> Iterable[bytes]:
        oslo_context.RequestContext(request_id=environ.get(request_id.ENV_REQUEST_ID))
        return self._application(environ, start_response)


def _authenticated(application: protocol.Application, conf: cfg.ConfigOpts) -> 'Keystone':
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
    return Keystone(application, {
        'oslo_config_config': conf, 'delay_auth_decision': False,
        'http_connect_timeout':
            conf[login.KEYSTONE].http_connect_timeout or KEYSTONE_SECONDS})


class Keystone(auth_token.AuthProtocol):
    """A middleware that validates the tokens of requests. A request without a valid token passes
    this middleware; :class:`Authentication` then refuses the request, unless it is for a public
    resource.

    If keystone does not answer, this class records the outage, and the request is refused with 503.
    The option ``delay_auth_decision`` of keystonemiddleware would also let such requests pass. It
    is not used: with this option, valid tokens seem invalid during an outage.
    """

    def process_request(self, request: Any) -> Any:
        try:
            return super().process_request(request)
        except webob.exc.HTTPUnauthorized:
            return None  # the middleware has recorded the result in the request
        except (webob.exc.HTTPServiceUnavailable, ks_exceptions.ClientException) as error:
            LOG.error('A request is refused with 503, because keystone could not validate its '
                      'token: %s', error)
            request.environ[AWAY] = True
            return None


def _as_it_is(_request: falcon.Request, _response: falcon.Response, error: Exception,
              _params: Mapping[str, str]) -> None:
    raise error


class BodyLimit:
    """A middleware that refuses a body larger than ``[oslo_middleware] max_request_body_size``
    with a JSON error. The middleware of oslo.middleware is not used, because it answers in plain
    text. A body of unknown length is refused, too."""

    def __init__(self, conf: cfg.ConfigOpts):
        for group, options in middleware_opts.list_opts_sizelimit():
            conf.register_opts(options, group=group)
        self._group = conf.oslo_middleware

    def process_request(self, request: falcon.Request, _response: falcon.Response) -> None:
        # A web server may pass on a body in chunks without its length. falcon would not read such a
        # body, so an operation would use the default of every field.
        if request.content_length is None and request.get_header('Transfer-Encoding'):
            raise falcon.HTTPBadRequest(
                description='The request needs a Content-Length, because the web server does not '
                            'report the length of a body in chunks.')
        most = self._group.max_request_body_size
        if (request.content_length or 0) > most:
            raise falcon.HTTPContentTooLarge(
                description=f'The body of a request may have at most {most} bytes.')


class Microversion:
    """A middleware that negotiates the microversion of a request, and reports the microversion in
    the response."""

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        response.append_header('Vary', microversion_parse.STANDARD_HEADER)
        try:
            found = microversion_parse.extract_version(
                {name.lower(): value for name, value in request.headers.items()}, versions.SERVICE,
                versions.VERSIONS)
        except TypeError as error:
            raise falcon.HTTPBadRequest(description=f'Invalid microversion: {error}') from error
        except ValueError as error:
            raise falcon.HTTPNotAcceptable(
                description=f'{error}; this kronos-api supports {versions.VERSIONS[0]} to '
                            f'{versions.VERSIONS[-1]}.'
            ) from error
        response.set_header(microversion_parse.STANDARD_HEADER, f'{versions.SERVICE} {found}')


class Authentication:
    """A middleware that refuses requests without a valid token of keystone. Requests for public
    resources need no token."""

    def process_resource(self, request: falcon.Request, _response: falcon.Response,
                         resource: object, _params: Mapping[str, str]) -> None:
        if getattr(resource, 'is_public', False):
            return
        if AWAY in request.env:
            raise falcon.HTTPServiceUnavailable(
                description='keystone does not answer, so no token can be validated.',
                retry_after=resources.AGAIN_SECONDS)
        if request.env.get('HTTP_X_IDENTITY_STATUS') != 'Confirmed':
            raise falcon.HTTPUnauthorized(
                description='The request needs a valid token of keystone (X-Auth-Token).')
        request.context.keystone = oslo_context.RequestContext.from_environ(request.env)
