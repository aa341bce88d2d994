"""Messages about failed requests to a Prometheus API: the cause of the failure, and the remedy.

The cause is found by the status, the headers and the text of the reply. This module recognises the
texts of Prometheus, Thanos, Mimir, VictoriaMetrics, Grafana, nginx, Apache and squid. Each message
ends with the first line of the reply, cut to a maximum length and without control characters.
"""

import dataclasses
import http.client
import re
import socket
import ssl
import urllib.parse
from collections.abc import Mapping

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.metrics import answer
from kronos_nova.metrics.endpoint import Endpoint

URL = '[kronos_prometheus] url'

_WRITE_HTTPS = f'the port speaks TLS: write https:// in {URL}'
_GRAFANA = (f'this is Grafana, no Prometheus: set {URL} to the URL of the Prometheus that is its '
            'data source')
_PATHS = 'GET and POST of /api/v1/query and /api/v1/query_range'

_TLS_PORT = re.compile(r'HTTP request to an HTTPS server|HTTP request was sent to HTTPS port|'
                       r'speaking plain HTTP to an SSL', re.IGNORECASE)
_NO_ORG_ID = re.compile(r'no org.?id', re.IGNORECASE)
_TENANT = re.compile(r'no org.?id|tenant (header|id)\b.*(missing|required|empty|not)|'
                     r'(missing|no|empty|requires?)\b.* tenant\b', re.IGNORECASE)
_LIMIT = re.compile(r'err-mimir-max|-search\.max|too many samples|exceeded? (the )?(maximum|max|'
                    r'series|samples?|chunks?|bytes)|limit', re.IGNORECASE)
_DUPLICATES = re.compile(r'many-to-many|duplicate series|same labelset', re.IGNORECASE)
_LENGTHS = {413: 'client_max_body_size', 414: 'large_client_header_buffers',
            431: 'large_client_header_buffers'}

_NO_TLS = {'WRONG_VERSION_NUMBER', 'HTTP_REQUEST', 'RECORD_LAYER_FAILURE', 'UNKNOWN_PROTOCOL',
           'PACKET_LENGTH_TOO_LONG'}
"""Reasons that OpenSSL gives if the first bytes from the other side are not TLS."""

_EXPIRED = {9, 10}
"""Error codes of OpenSSL for a TLS certificate that is not yet valid (9) or has expired (10). Fixed
by OpenSSL."""
_OTHER_NAME = {62, 64}
"""Error codes of OpenSSL for a TLS certificate that was issued for another host name (62) or
another IP address (64). Fixed by OpenSSL."""


#: The class of an error, and a text about the cause.
_Found = tuple[type[exception.MetricsError], str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An HTTP answer whose status is neither 200 nor 3xx.

    reason : the text after the status in the status line
    headers : mapping whose keys are compared without regard to case
    method : method of the request
    proxy : URL of the HTTP proxy that environment variables set; None if they set no proxy
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    method: str
    proxy: str | None = None


def of_reply(reply: Reply, endpoint: Endpoint) -> _Found:
    """Return (class of the error for a reply, text with the cause, the remedy and the first line of
    the reply)."""
    kind, said = _api_error(reply.body)
    said = _without_secrets(said or answer.first_line(reply.body) or reply.reason, endpoint)
    for cause in _CAUSES:
        found = cause(reply, endpoint, kind, said)
        if found is not None:
            break
    else:
        found = _no_api(reply)
    error_class, remedy = found
    words = f'; it says "{boundary.shown(said)}"' if said else ''
    return error_class, f'status {reply.status}: {remedy}{words}'


def of_redirect(status: int, location: str, endpoint: Endpoint) -> str:
    """Return a text about a redirect. The text says whether the redirect leads to a login or to the
    URL that has to be configured."""
    shown = boundary.shown(location or 'nowhere', 200)
    said = f'status {status} sends to {shown}; Kronos follows no redirect: '
    target = urllib.parse.urlsplit(urllib.parse.urljoin(endpoint.url, location))
    base, found, _rest = target.path.partition('/api/v1/')
    if found:
        url = urllib.parse.urlunsplit((target.scheme, target.netloc, base, '', ''))
        return f'{said}set {URL} = {boundary.shown(url, 200)}'
    if target.path.rstrip('/').endswith('/login'):
        return (f'{said}it is a login, as that of Grafana or of a proxy; set {URL} to the URL of '
                'Prometheus itself, or give the credentials')
    return f'{said}give the final URL, and credentials if it is a login'


def of_tls(error: Exception) -> str:
    """Return a text about the cause and remedy of a failed TLS handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _EXPIRED:
            return f'TLS: {error}; renew its certificate, or set the clock of this host'
        if error.verify_code in _OTHER_NAME:
            return f'TLS: {error}; check the host name in url'
        return f'TLS: {error}; set ca_file to the authority that signed its certificate'
    reason = getattr(error, 'reason', None) or ''
    if reason in _NO_TLS:
        return f'TLS: {error}; the port speaks no TLS: write http:// in {URL}'
    if 'ALERT' in reason:
        return f'TLS: {error}; it may want a client certificate: set cert_file and key_file'
    return f'TLS: {error}; check ca_file, cert_file and the host name in url'


def of_connection(error: Exception, endpoint: Endpoint, proxy: str | None
                  ) -> _Found:
    """Return (class of the error, text about the cause) for a connection that could not be made or
    was interrupted."""
    is_plain = endpoint.url.lower().startswith('http://')
    if is_plain and isinstance(error, http.client.BadStatusLine) and _is_tls(
            error.line):  # type: ignore[attr-defined]
        return exception.MetricsUntrusted, f'it answers in TLS; {_WRITE_HTTPS}'
    hint = ''
    if is_plain and isinstance(error, ConnectionResetError | http.client.BadStatusLine):
        hint = f'; if the port speaks TLS, write https:// in {URL}'
    by = f' by the proxy {_address(proxy)} of the environment' if proxy else ''
    if isinstance(error, ConnectionRefusedError | socket.gaierror) and not by:
        hint = f'; check host and port in {URL}, and that Prometheus listens there'
    return exception.MetricsUnreachable, f'no connection{by}: {error}{hint}'


def _is_tls(line: str) -> bool:
    """Return true if a status line is in fact the beginning of a TLS alert or handshake; false if
    it is not."""
    return line.lstrip('\'"').startswith(('\x15\x03', '\x16\x03', '\\x15\\x03', '\\x16\\x03'))


def _api_error(body: bytes) -> tuple[str | None, str]:
    """Return (type, text) of the error that the API itself reports in a body; (None, '') if the
    body has no such error."""
    try:
        answer.read_answer(body, '')
    except exception.MetricsQueryRefused as error:
        return error.kwargs['kind'], error.kwargs['problem']
    except exception.MetricsNotUnderstood:
        pass
    return None, ''


def _tls_port(reply: Reply, endpoint: Endpoint, _kind: str | None,
              said: str) -> _Found | None:
    is_plain = endpoint.url.lower().startswith('http://')
    text = reply.body[:answer.HEAD].decode(errors='replace')
    if is_plain and reply.status < 500 and _TLS_PORT.search(f'{said} {text}'):
        return exception.MetricsUntrusted, _WRITE_HTTPS
    return None


def _grafana(reply: Reply, _endpoint: Endpoint, _kind: str | None,
             _said: str) -> _Found | None:
    head = reply.body[:answer.HEAD]
    is_grafana = b'<title>Grafana</title>' in head or (
        head.lstrip().startswith(b'{') and b'"message"' in head
        and any(word in head for word in (b'"traceID"', b'"messageId"', b'"accessErrorId"')))
    return (exception.MetricsNotFound, _GRAFANA) if is_grafana and reply.status < 500 else None


def _victoria(_reply: Reply, _endpoint: Endpoint, _kind: str | None,
              said: str) -> _Found | None:
    if 'missing route for' in said:
        return exception.MetricsNotFound, (
            'vmauth has no route for this path and user: add /api/v1/query, /api/v1/query_range to '
            f'its url_map, or the path prefix of its route to {URL}')
    if 'unsupported path requested' in said:
        return exception.MetricsNotFound, (
            f'a VictoriaMetrics cluster: {URL} must end with /select/ACCOUNT/prometheus')
    return None


def _tenant(reply: Reply, endpoint: Endpoint, _kind: str | None,
            said: str) -> _Found | None:
    is_tenant = (_NO_ORG_ID.search(said) if reply.status == 500 else
                 reply.status in (400, 401, 403, 404, 422) and _TENANT.search(said))
    if not is_tenant:
        return None
    if not endpoint.tenant:
        return exception.MetricsTenantMissing, (
            'it serves several tenants: set tenant, and tenant_header if it is not '
            f'{endpoint.tenant_header}')
    return exception.MetricsTenantMissing, (
        f'it does not find the tenant in the header {endpoint.tenant_header}: correct '
        'tenant_header (X-Scope-OrgID for Mimir and Cortex, THANOS-TENANT for Thanos)')


def _unauthorized(reply: Reply, endpoint: Endpoint, _kind: str | None,
                  _said: str) -> _Found | None:
    if reply.status != 401:
        return None
    asked = reply.headers.get('WWW-Authenticate', '').partition(' ')[0].lower()
    return exception.MetricsDenied, _credentials(asked, endpoint)


def _credentials(asked: str, endpoint: Endpoint) -> str:
    if endpoint.keystone is not None:
        return (f'a new token by [{endpoint.keystone.section}], which auth_section names, is '
                'refused: compare its auth_url with the keystone of this Prometheus')
    if asked == 'keystone':
        return 'it is behind keystone: set auth_section'
    if endpoint.username is not None:
        return ('it asks for a token, not for username and password: set bearer_token_file'
                if asked == 'bearer' else 'username or password is wrong')
    option = ('bearer_token_file' if endpoint.bearer_token_file else
              'bearer_token' if endpoint.bearer_token else None)
    if asked == 'basic':
        return ('it asks for username and password, not for a token' if option else
                'it asks for a user: username and password are not set')
    if option:
        return f'{option} is refused: it is wrong or expired'
    if asked == 'bearer':
        return 'it asks for a token: bearer_token_file is not set'
    return ('it asks for credentials and none are set: set username and password, or '
            'bearer_token_file')


def _by_proxy(reply: Reply, endpoint: Endpoint, _kind: str | None,
              _said: str) -> _Found | None:
    """Return (class of the error, text) if the request was refused by a proxy that environment
    variables set; None for any other reply."""
    is_refusal = reply.status in (403, 407) or reply.status >= 500
    if not is_refusal or (reply.proxy is None and reply.status != 407):
        return None
    host = urllib.parse.urlsplit(endpoint.url).hostname
    where = f' {_address(reply.proxy)}' if reply.proxy else ''
    error_class = (exception.MetricsDenied if reply.status < 500
                   else exception.MetricsUnavailable)
    return error_class, (
        f'the proxy{where} of the environment does not let it pass: add {host} to no_proxy of '
        'this service, or permit it there')


def _address(proxy: str) -> str:
    """Return the host and port of a proxy's URL, without the credentials."""
    return boundary.shown(proxy.partition('//')[2].rpartition('@')[2] or proxy, 80)


def _forbidden(reply: Reply, endpoint: Endpoint, kind: str | None,
               _said: str) -> _Found | None:
    if reply.status != 403:
        return None
    if endpoint.keystone is not None:
        return exception.MetricsDenied, (
            f'the user of [{endpoint.keystone.section}] lacks a role: give it the admin or the '
            'service role in its project')
    if kind:
        return exception.MetricsDenied, ('the user or tenant may not read this: permit it there, '
                                         'or set tenant')
    return exception.MetricsDenied, (
        f'a proxy or an access list in front of Prometheus forbids it: permit {_PATHS} for this '
        'host and user')


def _method(reply: Reply, _endpoint: Endpoint, _kind: str | None,
            _said: str) -> _Found | None:
    if reply.status != 405:
        return None
    return exception.MetricsRequestRefused, (
        f'a proxy does not permit {reply.method}: permit {_PATHS}; long queries are sent by POST')


def _length(reply: Reply, _endpoint: Endpoint, _kind: str | None,
            _said: str) -> _Found | None:
    if reply.status not in _LENGTHS:
        return None
    return exception.MetricsRequestRefused, (
        'the query is too long for a proxy: raise its limit (nginx: '
        f'{_LENGTHS[reply.status]}), or record the query by a rule')


def _no_answer(reply: Reply, _endpoint: Endpoint, _kind: str | None,
               _said: str) -> _Found | None:
    if not 200 <= reply.status < 300:
        return None
    return exception.MetricsNotFound, (
        f'it answers with nothing where Prometheus answers 200: check the path in {URL}, and any '
        'proxy in front')


def _unavailable(reply: Reply, _endpoint: Endpoint, kind: str | None,
                 _said: str) -> _Found | None:
    if reply.status == 429:
        return exception.MetricsUnavailable, (
            'its limit of requests is reached: raise the limit for this user or tenant, or '
            'evaluation_interval')
    if reply.status < 500:
        return None
    if kind == 'timeout':
        return exception.MetricsUnavailable, (
            'the query takes longer than it may: record it by a rule, or raise --query.timeout of '
            'Prometheus')
    if not kind and reply.status in (502, 504):
        return exception.MetricsUnavailable, 'the proxy in front does not reach Prometheus'
    return exception.MetricsUnavailable, 'it cannot answer now'


def _query(reply: Reply, _endpoint: Endpoint, kind: str | None,
           said: str) -> _Found | None:
    """Return (class of the error, text) if the API rejects the query itself; None for any other
    reply."""
    if not kind or reply.status not in (400, 422):
        return None
    if _DUPLICATES.search(said):
        return exception.MetricsQueryRefused, (
            'a join finds several series for one target, as where targets are scraped by two jobs '
            'or by a pair: select one job, or aggregate with "max by (instance)"')
    if kind != 'bad_data' and _LIMIT.search(said):
        return exception.MetricsLimitExceeded, (
            'the query needs more than a limit of the source: shorten its window, use a recording '
            'rule, or raise the limit')
    return exception.MetricsQueryRefused, 'the query is wrong or cannot be computed'


def _no_api(reply: Reply) -> _Found:
    if reply.status == 404:
        return exception.MetricsNotFound, (
            f'no Prometheus API under {URL}: add its path prefix (--web.external-url; '
            '/prometheus for Mimir, /select/ACCOUNT/prometheus for VictoriaMetrics clusters)')
    return exception.MetricsNotFound, (
        f'no Prometheus API answers so: check {URL} and any proxy in front')


_CAUSES = (
    _tls_port,      # 400 of Go, nginx and Apache
    _grafana,       # 401, 404 with Grafana's JSON or page
    _victoria,      # 400 of vmauth and vmselect
    _tenant,        # 401 of Mimir, 400 of Thanos
    _unauthorized,  # 401
    _by_proxy,      # 403, 407 and 5xx where the environment names a proxy
    _forbidden,     # 403
    _method,        # 405
    _length,        # 413, 414, 431
    _no_answer,       # 2xx but 200
    _unavailable,   # 429, 5xx
    _query,         # 400, 422 with the API's own error
)
"""Functions that recognise the cause of a reply. Each function returns the error, or None if the
reply has another cause. The functions are tried in this order: first those that recognise
particular servers, then those that recognise statuses."""


def _without_secrets(text: str, endpoint: Endpoint) -> str:
    """Return ``text`` with asterisks in place of the password and the token, because a server may
    repeat both in its reply."""
    for secret in (endpoint.password, endpoint.bearer_token):
        if secret:
            text = text.replace(secret, '***')
    return text
