"""HTTP to a Prometheus API: one request, one body or one error."""

import contextlib
import dataclasses
import re
import time
from collections.abc import Callable

import requests
import urllib3
from requests import auth

from kronos_nova import exception
from kronos_nova.metrics import answer

_CHUNK = 1 << 16
_LONGEST_GET = 2000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a Prometheus API is and how it is entered.

    url : base URL, with a path prefix if there is one, without credentials
    timeout : seconds for a whole answer, from connecting to its last byte
    max_bytes : an answer that is longer, decompressed, is refused
    bearer_token, bearer_token_file : at most one; the file is read for every request
    tenant_header, tenant : sent when ``tenant`` is set
    """

    url: str
    timeout: float = 10.0
    max_bytes: int = 64 << 20
    bearer_token: str | None = None
    bearer_token_file: str | None = None
    username: str | None = None
    password: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    tenant_header: str = 'X-Scope-OrgID'
    tenant: str | None = None


class _Authorization(auth.AuthBase):
    """Given to every request, also when there is nothing to add: without one the requests library
    would look for credentials in the .netrc of whoever runs the service."""

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def __call__(self, request):
        endpoint = self.endpoint
        if endpoint.username is not None:
            return auth.HTTPBasicAuth(endpoint.username.encode(),
                                      (endpoint.password or '').encode())(request)
        token = endpoint.bearer_token
        if endpoint.bearer_token_file:
            token = _read_token(endpoint.bearer_token_file)
        if token is not None:
            request.headers['Authorization'] = f'Bearer {token}'
        return request


def _read_token(path):
    try:
        with open(path, encoding='ascii') as file:
            token = file.read().strip()
    except (OSError, ValueError) as error:
        raise exception.MetricsMisconfigured(
            option='bearer_token_file', problem=f'{path} cannot be read: {error}') from error
    if not re.fullmatch(r'[\x21-\x7e]+', token):
        raise exception.MetricsMisconfigured(
            option='bearer_token_file',
            problem=f'{path} must hold one line of printable characters without spaces')
    return token


class Transport:
    """Sends requests to one :class:`Endpoint`. Follows no redirect and retries nothing."""

    def __init__(self, endpoint: Endpoint, clock: Callable[[], float] = time.monotonic):
        self.endpoint = endpoint
        self._clock = clock
        self._session = requests.Session()
        self._session.auth = _Authorization(endpoint)
        if endpoint.tenant:
            self._session.headers[endpoint.tenant_header] = endpoint.tenant

    @property
    def source(self) -> str:
        """What errors name."""
        return f'Prometheus at {self.endpoint.url}'

    def fetch(self, path: str, parameters: dict[str, str]) -> bytes:
        """The body of the answer to ``path`` (``/api/v1/query``), status 200.

        :raises MetricsError: a subclass for each way to fail; see :mod:`kronos_nova.exception`
        """
        deadline = self._clock() + self.endpoint.timeout
        with self._told_apart(), self._send(path, parameters) as response:
            self._refuse_redirect(response)
            body = self._read(response, deadline)
        if response.status_code != requests.codes.ok:
            raise self._error_of(response, body)
        return body

    def _send(self, path, parameters):
        url = self.endpoint.url.rstrip('/') + path
        # A reverse proxy may let nothing but GET through, and another one cuts long URLs.
        length = sum(len(value) for value in parameters.values())
        payload = {'params': parameters} if length <= _LONGEST_GET else {'data': parameters}
        endpoint = self.endpoint
        # Given here, not on the session: REQUESTS_CA_BUNDLE would win over the session's.
        verify = endpoint.ca_file or True
        cert = (endpoint.cert_file, endpoint.key_file) if endpoint.key_file else endpoint.cert_file
        return self._session.request(
            'GET' if 'params' in payload else 'POST', url, stream=True, allow_redirects=False,
            timeout=endpoint.timeout, verify=verify, cert=cert, **payload)

    @contextlib.contextmanager
    def _told_apart(self):
        """Turns what requests raises while it connects, and urllib3 while a body is read, into
        ours."""
        try:
            yield
        except (requests.exceptions.SSLError, urllib3.exceptions.SSLError) as error:
            raise self._error(exception.MetricsUntrusted, f'TLS: {_cause(error)}; check ca_file, '
                              'cert_file and the host name in url') from error
        except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise self._timeout() from error
        except urllib3.exceptions.DecodeError as error:
            raise self._error(exception.MetricsNotUnderstood,
                              f'a damaged answer: {error}') from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
            raise self._error(exception.MetricsUnreachable,
                              f'no connection: {_cause(error)}') from error
        except OSError as error:
            # Raised by requests itself for files that are not there.
            raise exception.MetricsMisconfigured(
                option='ca_file, cert_file, key_file', problem=error) from error

    def _refuse_redirect(self, response):
        if not 300 <= response.status_code < 400:
            return
        raise self._error(
            exception.MetricsRedirected,
            f'status {response.status_code} sends to '
            f'{response.headers.get("Location", "nowhere")[:200]}; Kronos follows no redirect: '
            'give the final URL, and credentials if it is a login')

    def _read(self, response, deadline):
        """The body, never more than a chunk over the limit of it in memory.

        What has arrived is taken at once, so that a server that sends a byte now and then cannot
        hold a cycle for longer than the timeout.
        """
        body = bytearray()
        while chunk := response.raw.read1(_CHUNK, decode_content=True):
            body += chunk
            if len(body) > self.endpoint.max_bytes:
                raise self._error(
                    exception.MetricsTooLarge,
                    f'the answer is longer than {self.endpoint.max_bytes} bytes; aggregate in the '
                    'query or raise max_answer_mib')
            if self._clock() > deadline:
                raise self._timeout()
        return bytes(body)

    def _error_of(self, response, body):
        status = response.status_code
        if status in (401, 403, 407):
            return self._error(exception.MetricsDenied,
                               f'status {status}: credentials or tenant refused')
        if status == 429 or status >= 500:
            return self._error(exception.MetricsUnavailable,
                               f'status {status}: {_said(body) or response.reason}')
        if status in (400, 422) and _said(body):
            return self._error(exception.MetricsQueryRefused, f'status {status}: {_said(body)}')
        return self._error(
            exception.MetricsNotFound,
            f'status {status}: no Prometheus API under that URL; does it lack a path prefix?')

    def _timeout(self):
        return self._error(exception.MetricsTimeout,
                           f'no complete answer within {self.endpoint.timeout:g} s')

    def _error(self, error_class, problem):
        return error_class(source=self.source, problem=problem)


def _said(body):
    """What the API itself says in the body of an error, or None."""
    try:
        answer.read_answer(body, '')
    except exception.MetricsQueryRefused as error:
        return error.kwargs['problem']
    except exception.MetricsNotUnderstood:
        return None
    return None


def _cause(error):
    """The innermost reason: requests wraps urllib3, which wraps the operating system's."""
    while True:
        inner = getattr(error, 'reason', None) or error.__cause__ or error.__context__
        if not isinstance(inner, Exception):
            return error
        error = inner
