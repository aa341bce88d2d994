"""Two parts of HTTP that falcon does not handle: slashes within names, and HEAD requests."""

import re
import urllib.parse
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

import falcon

#: A WSGI application.
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

SLASH = '\0'
"""Character that stands for a slash within a name while a path is split at the other slashes. Names
never contain this character."""

_ENCODED = re.compile('%2f', re.IGNORECASE)


class Slashes:
    """A middleware that replaces each encoded slash (``%2F``) in the path of a request by
    :data:`SLASH`. An encoded slash is part of a name. In the path that WSGI provides, an encoded
    slash looks the same as a slash between names. So the middleware reads the path that the client
    sent, from ``REQUEST_URI`` or ``RAW_URI``."""

    def process_request(self, request: falcon.Request, _response: falcon.Response) -> None:
        if SLASH in request.path:
            raise falcon.HTTPBadRequest(description='The path of the request has characters '
                                                    'that no name may have.')
        env = request.env
        sent = (env.get('REQUEST_URI') or env.get('RAW_URI') or '').partition('?')[0]
        if not _ENCODED.search(sent):
            return
        marked = urllib.parse.unquote(_ENCODED.sub('%00', sent))[-len(request.path):]
        # A server or a proxy may have changed the path since.
        if with_slashes(marked) == request.path:
            request.path = marked


def with_slashes(text: str) -> str:
    """Return a text from a path, with ``/`` in place of each :data:`SLASH`. A :data:`SLASH` stands
    for an encoded slash."""
    return text.replace(SLASH, '/')


def answering_head(application: Application) -> Application:
    """Return a WSGI application that also answers HEAD. The answer to HEAD is the answer of
    ``application`` to GET, without the content."""
    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ['REQUEST_METHOD'] != 'HEAD':
            return application(environ, start_response)
        content = application({**environ, 'REQUEST_METHOD': 'GET'}, start_response)
        # The body is not sent, so it is closed: a stream of events would stay open for ever.
        getattr(content, 'close', lambda: None)()
        return ()

    return answer
