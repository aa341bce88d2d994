"""HTTP requests to a Prometheus API. Each request returns the body of the answer or raises an
error."""

import contextlib
import http.client
import threading
from collections.abc import Callable
from collections.abc import Iterator

import requests
import urllib3

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.metrics import authorization
from kronos_nova.metrics import connections
from kronos_nova.metrics import http_errors
from kronos_nova.metrics.endpoint import Endpoint

_CHUNK = 1 << 16
"""Maximum number of bytes of an answer of Prometheus that are read at a time. Raised, an answer may
exceed its size limit by more before it is refused; lowered, a large answer takes more calls. Not
measured."""
_LONGEST_GET = 2000
"""Maximum number of characters of the parameters of a query that is sent to Prometheus by GET. A
longer query is sent by POST. Fixed by proxies, some of which refuse longer URLs."""

# Encodings that Prometheus and proxies use. Others, and nested ones, could decompress to more than
# the limit.
_ENCODINGS = ('', 'identity', 'gzip', 'deflate')

_LONGEST_PROBLEM = 1000
"""Maximum number of characters in the text of an error about Prometheus. The text may quote texts
of other programs. Raised, a message can fill a screen; lowered, the cause of the error may be cut
off. Not measured."""


class Transport:
    """A sender of requests to one :class:`Endpoint`. Redirects are not followed, and requests are
    not retried."""

    def __init__(self, endpoint: Endpoint):
        self.endpoint = endpoint
        self._authorization = authorization.Authorization(endpoint)
        self._open_session()

    def _open_session(self) -> None:
        self._connections = connections.Connections()
        self._session = requests.Session()
        for scheme in ('http://', 'https://'):
            self._session.mount(scheme, connections.Adapter(self._connections))
        self._session.auth = self._authorization
        self._session.headers['Accept-Encoding'] = 'gzip'
        if self.endpoint.tenant:
            self._session.headers[self.endpoint.tenant_header] = self.endpoint.tenant

    @property
    def source(self) -> str:
        """Return the name of the source for errors."""
        return f'Prometheus at {self.endpoint.url}'

    def fetch(self, path: str, parameters: dict[str, str],
              seconds: float = float('inf')) -> bytes:
        """Return the body of the answer to ``path``, such as ``/api/v1/query``. The answer must
        have status 200. The timeout is the endpoint's timeout, or ``seconds`` if ``seconds`` is
        less.

        A separate thread sends the request, so that the caller waits no longer than the timeout,
        even if a name server, a handshake or the peer is slow. At the timeout the connections are
        shut, and the thread then ends.

        :raises MetricsError: the request failed; the subclass of the error depends on the cause
        """
        exchange = _Exchange(lambda: self._exchange(path, parameters))
        if exchange.is_done_within(min(self.endpoint.timeout, seconds)):
            return exchange.result()
        self._connections.shut()
        self._open_session()  # the thread that timed out still uses the old session
        raise self._timeout()

    def _exchange(self, path: str, parameters: dict[str, str]) -> bytes:
        """Send a request, and return the body of the answer. If the token is refused, send the
        request once more with a new token."""
        session, opened = self._session, self._connections
        response, body = self._answer(session, opened, path, parameters)
        if response.status_code == requests.codes.unauthorized and self._authorization.renew():
            response, body = self._answer(session, opened, path, parameters)
        if response.status_code != requests.codes.ok:
            raise self._error_of(response, body)
        return body

    def _answer(self, session: requests.Session, opened: connections.Connections, path: str,
                parameters: dict[str, str]) -> tuple[requests.Response, bytes]:
        try:
            with self._classify_errors(), self._send(session, path, parameters) as response:
                self._refuse_redirect(response)
                self._refuse_encoding(response)
                body = self._read(response)
        finally:
            opened.sweep()
        return response, body

    def _send(self, session: requests.Session, path: str,
              parameters: dict[str, str]) -> requests.Response:
        url = self.endpoint.url.rstrip('/') + path
        # A reverse proxy may let nothing but GET through, and another one cuts long URLs.
        length = sum(len(value) for value in parameters.values())
        endpoint = self.endpoint
        is_get = length <= _LONGEST_GET or endpoint.keystone is not None
        # The CA file is given here, because REQUESTS_CA_BUNDLE would take precedence over the
        # session's.
        verify = endpoint.ca_file or True
        cert = ((endpoint.cert_file, endpoint.key_file)
                if endpoint.cert_file and endpoint.key_file else endpoint.cert_file)
        return session.request(
            'GET' if is_get else 'POST', url, params=parameters if is_get else None,
            data=None if is_get else parameters, stream=True, allow_redirects=False,
            timeout=endpoint.timeout, verify=verify, cert=cert)

    @contextlib.contextmanager
    def _classify_errors(self) -> Iterator[None]:
        """Translate errors that libraries raise in the ``with`` block into errors of Kronos. The
        requests library raises its own errors while a connection is made; urllib3 raises errors
        while a body is read."""
        try:
            yield
        except (requests.exceptions.SSLError, urllib3.exceptions.SSLError) as error:
            raise self._error(exception.MetricsUntrusted,
                              http_errors.of_tls(_cause(error))) from error
        except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise self._timeout() from error
        except urllib3.exceptions.DecodeError as error:
            raise self._error(exception.MetricsNotUnderstood,
                              f'the answer is damaged: {error}') from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
            raise self._error(*http_errors.of_connection(
                _cause(error), self.endpoint, self._proxy())) from error
        except (http.client.HTTPException, ValueError) as error:
            # An answer that neither library expects, such as a negative length.
            raise self._error(exception.MetricsUnreachable,
                              f'the answer is not HTTP: {error}') from error
        except OSError as error:
            # Raised by requests itself for files that are not there.
            raise exception.MetricsMisconfigured(
                option='ca_file, cert_file, key_file', problem=error) from error

    def _refuse_redirect(self, response: requests.Response) -> None:
        if not 300 <= response.status_code < 400:
            return
        raise self._error(exception.MetricsRedirected, http_errors.of_redirect(
            response.status_code, response.headers.get('Location', ''), self.endpoint))

    def _refuse_encoding(self, response: requests.Response) -> None:
        encoding = response.headers.get('Content-Encoding', '').strip().lower()
        if encoding not in _ENCODINGS:
            raise self._error(
                exception.MetricsNotUnderstood,
                f'the answer is compressed with "{encoding}", which the request did not permit')

    def _read(self, response: requests.Response) -> bytes:
        """Return the body of a response. It is read in chunks, and the read ends with an error once
        the body is longer than permitted."""
        body = bytearray()
        while chunk := response.raw.read1(_CHUNK, decode_content=True):
            body += chunk
            if len(body) > self.endpoint.max_bytes:
                raise self._error(
                    exception.MetricsTooLarge,
                    f'the answer is longer than {self.endpoint.max_bytes} bytes; aggregate in the '
                    'query or raise max_answer_mib')
        return bytes(body)

    def _error_of(self, response: requests.Response, body: bytes) -> exception.MetricsError:
        reply = http_errors.Reply(
            status=response.status_code, reason=response.reason or '', headers=response.headers,
            body=body, method=response.request.method or '', proxy=self._proxy())
        error_class, problem = http_errors.of_reply(reply, self.endpoint)
        return self._error(error_class, problem)

    def _proxy(self) -> str | None:
        """Return the URL of the HTTP proxy that environment variables set for this endpoint; None
        if they set no proxy."""
        url = self.endpoint.url
        proxies = requests.utils.get_environ_proxies(url)
        return requests.utils.select_proxy(url, proxies)

    def _timeout(self) -> exception.MetricsError:
        return self._error(exception.MetricsTimeout,
                           f'no complete answer within {self.endpoint.timeout:g} s')

    def _error(self, error_class: type[exception.MetricsError],
               problem: str) -> exception.MetricsError:
        return error_class(source=self.source, problem=boundary.shown(problem, _LONGEST_PROBLEM))


class _Exchange:
    """A request that runs in a daemon thread."""

    def __init__(self, work: Callable[[], bytes]):
        self._done = threading.Event()
        self._body = b''
        self._error: BaseException | None = None
        threading.Thread(target=self._run, args=(work,), daemon=True,
                         name='kronos-metrics').start()

    def _run(self, work: Callable[[], bytes]) -> None:
        try:
            self._body = work()
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error
        finally:
            self._done.set()

    def is_done_within(self, seconds: float) -> bool:
        return self._done.wait(seconds)

    def result(self) -> bytes:
        if self._error is not None:
            raise self._error
        return self._body


def _cause(error: Exception) -> Exception:
    """Return the innermost cause of an error. requests wraps errors of urllib3, and urllib3 wraps
    errors of the operating system."""
    while True:
        inner = getattr(error, 'reason', None) or error.__cause__ or error.__context__
        if not isinstance(inner, Exception):
            return error
        error = inner
