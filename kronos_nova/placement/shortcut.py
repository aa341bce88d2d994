"""GET requests that need a fourth of the processor time of keystoneauth's own requests.

With keystoneauth and the requests library, each request takes one or two milliseconds of processor
time. The time is spent on finding the endpoint, on preparing the request, on proxies and cookies,
and on the log. The first evaluation of a cloud with a thousand hosts sends two thousand requests.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import urllib3
from keystoneauth1 import exceptions as ks_exceptions


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The parts of a response that :class:`kronos_nova.placement.client.PlacementClient` reads."""

    status_code: int
    content: bytes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Track:
    """The parts of an earlier request of keystoneauth that later requests reuse. ``pool`` is the
    connection pool with its TLS settings, and ``prefix`` the part of the URL path before the path
    of the request."""

    pool: urllib3.HTTPConnectionPool
    prefix: str
    headers: Mapping[str, str]


class Shortcut:
    """A keystoneauth adapter that sends a GET with the endpoint and connections of an earlier GET.

    A GET that this class sends differs from the earlier GET only in its path, and in its token if
    the token was renewed. The wrapped adapter sends the first GET and all writes. The wrapped
    adapter also repeats each GET that did not return 200, so that it can renew the token, follow a
    redirect or raise an error. The timeout of the adapter's session applies to every request.

    :param adapter: the keystoneauth adapter to wrap
    """

    def __init__(self, adapter: Any):
        self._adapter = adapter
        self._track: _Track | None = None

    def request(self, path: str, method: str, headers: Mapping[str, str], **kwargs: Any) -> Any:
        """Send a request, as the adapter's method does. The path begins with a slash. The result of
        a GET may be an :class:`Answer`, which has only some attributes of a response."""
        if method != 'GET':
            return self._adapter.request(path, method, headers=headers, **kwargs)
        answer = self.get(path, headers)
        if answer is None:
            answer = self._adapter.request(path, method, headers=headers, **kwargs)
            self._track = self._track_of(answer, path) or self._track
        return answer

    def get(self, path: str, headers: Mapping[str, str]) -> Answer | None:
        """Send a GET with the endpoint and connections of an earlier GET. Return None if there is
        no earlier GET to reuse, if the request fails, or if the status is not 200. The caller then
        sends the request through the adapter."""
        track, session = self._track, self._adapter.session
        if track is None:
            return None
        try:
            token = session.get_auth_headers(self._adapter.auth) or {}
            response = track.pool.urlopen(
                'GET', track.prefix + path, headers={**track.headers, **headers, **token},
                timeout=session.timeout, redirect=False, retries=False)
        except (urllib3.exceptions.HTTPError, ks_exceptions.ClientException):
            return None
        return Answer(response.status, response.data) if response.status == 200 else None

    def _track_of(self, response: Any, path: str) -> _Track | None:
        """Return the :class:`_Track` of the request that led to a response, so that later requests
        can reuse the track. Return None if the request failed, was redirected, used a proxy, or did
        not use HTTP, as in tests."""
        sent, transport = response.request, getattr(response, 'connection', None)
        if response.status_code != 200 or response.history or transport is None or (
                not sent.path_url.endswith(path)):
            return None
        session = self._adapter.session
        found = session.session.merge_environment_settings(
            sent.url, {}, stream=False, verify=session.verify, cert=session.cert)
        if found['proxies']:
            return None
        pool = transport.get_connection_with_tls_context(
            sent, found['verify'], cert=found['cert'])
        return _Track(pool=pool, prefix=sent.path_url.removesuffix(path), headers=sent.headers)
