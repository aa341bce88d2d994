"""The resources of falcon that answer the requests to the paths of the API."""

import contextlib
import dataclasses
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import falcon
import msgspec
from oslo_context import context as oslo_context
from oslo_log import log as logging
from oslo_policy import policy

from kronos_client.contract import versions
from kronos_client.contract.base import Response
from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova.api import protocol
from kronos_nova.api import routes
from kronos_nova.api.operation import Call
from kronos_nova.api.operation import Identity
from kronos_nova.api.operation import Operation
from kronos_nova.api.operation import Services
from kronos_nova.services import dispatch

EVENT_STREAM = 'text/event-stream'

LOG = logging.getLogger(__name__)

LONGEST_NAME = 200
"""Maximum number of characters of the name and domain of an API user in the record of a change. A
longer text is cut, and a remark about the cut is added. Fixed by the columns of the database, which
have 255 characters for the text and the remark."""

AGAIN_SECONDS = 5
"""Seconds in the header ``Retry-After`` of the answer to a request that was refused because too
many slow operations are in progress. Raised, clients wait longer than necessary; lowered, clients
are refused again more often. Chosen because a slow operation takes seconds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Turns:
    """The limits on the number of operations that run at the same time: one limit for quick
    operations, and one for slow operations. A quick operation waits while the limit for quick
    operations is reached. A slow operation is refused while the limit for slow operations is
    reached, because a wait would hold a thread for seconds."""

    quick: threading.BoundedSemaphore
    slow: threading.BoundedSemaphore

    @contextlib.contextmanager
    def limit(self, operation: Operation) -> Iterator[None]:
        """Count ``operation`` as running while the block runs. If the limit for such operations is
        reached, a quick operation waits, and a slow operation is refused with 503."""
        turn = self.slow if operation.is_slow else self.quick
        if not turn.acquire(blocking=not operation.is_slow):
            raise falcon.HTTPServiceUnavailable(
                description='kronos-api is busy: it runs only a few slow requests, such as this '
                            'one, at a time. Send the request again in a few seconds.',
                retry_after=AGAIN_SECONDS)
        try:
            yield
        finally:
            turn.release()


class Resource:
    """The resource of one path, with its operations."""

    def __init__(self, operations: Iterable[Operation], services: Services,
                 enforcer: policy.Enforcer, turns: Turns):
        self._services = services
        self._enforcer = enforcer
        self._turns = turns
        for operation in operations:
            # falcon looks for methods of these names.
            setattr(self, f'on_{operation.method.lower()}', self._answering(operation))

    def _answering(self, operation: Operation) -> Callable[..., None]:
        def answer(request: falcon.Request, response: falcon.Response, **path: str) -> None:
            context = request.context.keystone
            if not self._enforcer.authorize(operation.rule, {}, context):
                raise falcon.HTTPForbidden(
                    description=f'The policy rule "{operation.rule}" does not permit this '
                                'operation for your roles.')
            given_by = who(context)
            path = {name: protocol.with_slashes(value) for name, value in path.items()}
            query: Any = None
            body: Any = None
            asked: Any = None
            if operation.contract is None:
                query = msgspec.convert(request.params, operation.query, strict=False)
                body = _body(request, operation.body)
                for part in (path, msgspec.structs.asdict(query),
                             msgspec.structs.asdict(body) if body is not None else {}):
                    dispatch.check(part)
            else:
                body_kind = dict if operation.contract.has_body else None
                asked = operation.contract.read(path, request.params,
                                                _body(request, body_kind) or {})
            call = Call(services=self._services, path=path, who=given_by, query=query, body=body,
                        request=asked,
                        expires_at=request.env['keystone.token_auth'].user.expires,
                        identify=lambda: _identity(request, self._enforcer),
                        last_event_id=request.get_header('Last-Event-ID'))
            if operation.events is not None:
                _stream(response, operation.run(call))
                return
            with self._turns.limit(operation):
                given = operation.run(call)
            if operation.method != 'GET':
                LOG.info('%(operation)s by %(user)s: %(path)s',
                         {'operation': operation.name, 'user': given_by,
                          'path': protocol.with_slashes(request.path)})
            response.status = operation.status
            if operation.media is not None:
                response.content_type, response.stream = operation.media, given
            elif given is not None:
                response.content_type = falcon.MEDIA_JSON
                response.data = msgspec.json.encode(given)

        return answer


def _stream(response: falcon.Response, events: Iterable[bytes]) -> None:
    response.content_type, response.stream = EVENT_STREAM, events
    response.cache_control = ['no-store']
    # Without this header nginx buffers answers until they have a few KiB.
    response.set_header('X-Accel-Buffering', 'no')


def _identity(request: falcon.Request, enforcer: policy.Enforcer) -> Identity:
    context = request.context.keystone
    token = request.env.get('keystone.token_info', {}).get('token', {})
    expires_at = token.get('expires_at')
    return Identity(
        user=context.user_name or context.user_id, project=context.project_name,
        is_system=context.system_scope == 'all', roles=tuple(context.roles),
        expires_at=expires_at and clock.parsed(expires_at),
        may=[each.name for each in routes.OPERATIONS if enforcer.authorize(each.rule, {}, context)])


def _body(request: falcon.Request, kind: Any) -> Any:
    """Read the body of a request.

    :param kind: the type of the body; None if the request has no body
    :raises MsgspecError: the body is not of this type
    :raises OutOfBounds: the body has too many levels of nesting
    """
    if kind is None:
        return None
    try:
        return msgspec.json.decode(request.bounded_stream.read() or b'{}', type=kind)
    except RecursionError as error:
        raise boundary.OutOfBounds(
            what='The body of the request', problem='is nested too deep') from error


def who(context: oslo_context.RequestContext) -> str:
    """Return the name of the sender of a request. This name is recorded with changes."""
    name = context.user_name or context.user_id
    domain = context.user_domain_name or context.user_domain_id
    return boundary.remark(f'{name}@{domain} (API)' if domain else f'{name} (API)', LONGEST_NAME)


PREFERRED = (falcon.MEDIA_JSON, falcon.MEDIA_HTML)


class Version(Response):
    """A version of the API. A client requests a microversion with the header
    ``OpenStack-API-Version: kronos N``."""

    id: str
    status: str
    min_version: str
    version: str
    links: list[dict[str, str]]


class Versions(Response):
    versions: list[Version]


class VersionsResource:
    """The list of API versions, by which clients of OpenStack find the API. A browser is redirected
    to the web page."""

    is_public = True

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        response.append_header('Vary', 'Accept')
        if request.client_prefers(PREFERRED) == falcon.MEDIA_HTML:
            response.status, response.location = falcon.HTTP_303, f'{request.root_path}/ui/'
            return
        response.content_type = falcon.MEDIA_JSON
        response.data = msgspec.json.encode(Versions(versions=[Version(
            id='v1', status='CURRENT', min_version=versions.VERSIONS[0],
            version=versions.VERSIONS[-1],
            links=[{'rel': 'self', 'href': f'{request.prefix}/v1'}])]))


class ToPage:
    """The redirection from ``/ui`` to ``/ui/``, the address of the web page. Users may type the
    address without the last slash."""

    is_public = True

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        response.status, response.location = falcon.HTTP_303, f'{request.root_path}/ui/'


class Document:
    """The resource of the OpenAPI document."""

    is_public = True

    def __init__(self, text: str):
        self._text = text

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.content_type, response.text = falcon.MEDIA_JSON, self._text


class Healthcheck:
    """The resource of the health check of load balancers. It answers OK while this process runs,
    and checks neither the database nor other services."""

    is_public = True

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.content_type, response.text = falcon.MEDIA_TEXT, 'OK'
