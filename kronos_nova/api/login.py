"""Login of the page: kronos-api gets a token from keystone for a password, so that browsers do not
need access to keystone.

The login gives no additional access. kronos-api sends the password only to the keystone in
nova.conf, and keystone treats the request like the request of any client.
"""

import math
import re
import threading
import time
import unicodedata
from collections.abc import Callable
from typing import Any

import falcon
import msgspec
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from keystoneauth1 import session as ks_session
from keystoneauth1.identity import v3
from oslo_config import cfg
from oslo_log import log as logging

from kronos_client.contract.base import Name
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_nova import boundary
from kronos_nova.api import client_address

LOG = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10
"""Maximum seconds to wait for keystone's answer to a login on the web page. Raised, a user waits
longer for the error if keystone is down; lowered, logins fail while keystone is slow. Not
measured."""

AT_ONCE = 2
"""Maximum number of logins in progress in one process of kronos-api. Further logins are refused
with 503. Raised, logins can hold more of the threads that answer requests; lowered, more logins are
refused. Chosen small, because each login holds a thread for most of a second while keystone hashes
the password."""

KEYSTONE = 'keystone_authtoken'

MOST_KEPT = 10_000
"""Maximum number of counters of wrong passwords in memory. There is one counter for each user, each
address, and each pair of a user and an address. A further counter replaces the oldest. Raised, an
attack from many addresses takes more memory, about 200 bytes for each counter; lowered, such an
attack removes other counters sooner. Not measured."""

AT_ADDRESS, OF_USER = 4, 10
"""Factors that give two further limits of wrong passwords. The option ``login_tries`` is the limit
for one user at one address. The option times ``AT_ADDRESS`` is the limit for all users together at
one address. The option times ``OF_USER`` is the limit for one user at all addresses together.
Raised, an attacker can try more passwords; lowered, users behind one proxy lock each other out, and
an attacker can lock out a user sooner. Not measured."""

BLANKS = re.compile(r'\s+(?=@|$)')
"""Pattern of the blanks at the end of the name of a user or a domain."""

Text = Name


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user, password and scope of a login. If there is no project, the scope is the system."""

    user: Text
    password: Text
    user_domain: Text = 'Default'
    project: Text | None = None
    project_domain: Text = 'Default'


class Token(Response):
    token: str
    expires_at: Time


class WrongPasswords:
    """Counters of wrong passwords by user and address. A counter is dropped some time after the
    last wrong password.

    :param clock: returns seconds of a monotonic clock
    """

    def __init__(self, tries: int, seconds: float, clock: Callable[[], float] = time.monotonic):
        self._tries = tries
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[tuple, tuple[int, float]] = {}

    def seconds_left(self, user: str, address: str) -> float:
        """Return the seconds for which logins of a user from an address are still refused; 0 if
        they are not refused."""
        with self._lock:
            return max((self._left(key) for key, most in self._limits(user, address)
                        if self._count(key) >= most), default=0.0)

    def add(self, user: str, address: str) -> None:
        with self._lock:
            for key, _most in self._limits(user, address):
                count = self._count(key) + 1
                self._found.pop(key, None)      # the newest count comes last
                self._found[key] = (count, self._clock())
            while len(self._found) > MOST_KEPT:
                del self._found[next(iter(self._found))]

    def forget(self, user: str, address: str) -> None:
        """Drop the counter of wrong passwords of a user at an address. The caller calls this method
        after a login with the right password."""
        with self._lock:
            self._found.pop((_plain(user), client_address.network_of(address)), None)

    def _limits(self, user: str, address: str) -> tuple[tuple[tuple, int], ...]:
        user, address = _plain(user), client_address.network_of(address)
        return (((user, address), self._tries), ((None, address), AT_ADDRESS * self._tries),
                ((user, None), OF_USER * self._tries)) if self._tries else ()

    def _count(self, key: tuple) -> int:
        return self._found[key][0] if self._left(key) > 0 else 0

    def _left(self, key: tuple) -> float:
        return self._found[key][1] + self._seconds - self._clock() if key in self._found else 0.0


def _plain(user: str) -> str:
    """Return the name of a user in lower case, without accents and without trailing blanks. If the
    database of keystone is MySQL, names that differ only in these points belong to the same
    user."""
    letters = (each for each in unicodedata.normalize('NFKD', user.casefold())
               if not unicodedata.combining(each))
    return BLANKS.sub('', ''.join(letters))


class Login:
    """The resource of ``POST /ui/login``, which exchanges a password for a token."""

    is_public = True

    def __init__(self, conf: cfg.ConfigOpts):
        self._conf = conf
        self._wrong = WrongPasswords(conf.kronos_api.login_tries, conf.kronos_api.login_lockout)
        self._slots = threading.BoundedSemaphore(AT_ONCE)

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        if not self._conf.kronos_api.password_login:
            raise falcon.HTTPForbidden(
                description='Logins with a password are turned off in nova.conf ([kronos_api] '
                            'password_login); log in with a token.')
        # A browser sends this header for another site only after a CORS preflight.
        if (request.content_type or '').partition(';')[0] != falcon.MEDIA_JSON:
            raise falcon.HTTPUnsupportedMediaType(
                description='The Content-Type of a login must be application/json.')
        given = msgspec.json.decode(request.bounded_stream.read(), type=Credentials)
        who = (f'{given.user}@{given.user_domain}', client_address.address_of(
            request.env, self._conf.oslo_middleware.enable_proxy_headers_parsing))
        left = self._wrong.seconds_left(*who)
        if left > 0:
            LOG.warning('A login as %s from %s is refused: too many wrong passwords were '
                        'tried. Logins are accepted again after [kronos_api] login_lockout '
                        'seconds.', boundary.shown(who[0]), who[1])
            raise falcon.HTTPTooManyRequests(
                description='Too many wrong passwords were tried; try again later.',
                retry_after=math.ceil(left))
        if not self._slots.acquire(blocking=False):
            raise falcon.HTTPServiceUnavailable(
                description='Too many logins are in progress; try again in a second.',
                retry_after=1)
        try:
            response.data = msgspec.json.encode(self._exchange(given, who))
        finally:
            self._slots.release()
        response.content_type = falcon.MEDIA_JSON

    def _exchange(self, given: Credentials, who: tuple[str, str]) -> Token:
        scope: dict[str, Any] = {'system_scope': 'all'}
        if given.project:
            scope = {'project_name': given.project, 'project_domain_name': given.project_domain}
        address = self._keystone()
        if address is None:
            LOG.error('A login is refused: nova.conf has no address of keystone. Set auth_url or '
                      'www_authenticate_uri in [keystone_authtoken].')
            raise falcon.HTTPServiceUnavailable(
                description='nova.conf of kronos-api has no address of keystone; the log of '
                'kronos-api has the remedy.')
        plugin = v3.Password(
            address, username=given.user, password=given.password,
            user_domain_name=given.user_domain, include_catalog=False, **scope)
        try:
            access = plugin.get_access(keystone_session(self._conf))
        except (exceptions.Unauthorized, exceptions.Forbidden, exceptions.BadRequest) as error:
            self._wrong.add(*who)
            LOG.warning('keystone refused a login as %s from %s', boundary.shown(who[0]), who[1])
            raise falcon.HTTPUnauthorized(
                description='keystone did not accept this user, password and project.') from error
        except exceptions.ClientException as error:
            # A wrong user or project is a 401. A 404 means that the address is wrong.
            LOG.error('keystone at %s did not answer a login: %s. Check that keystone runs, and '
                      'the address (auth_url or www_authenticate_uri in [keystone_authtoken]).',
                      address, error)
            raise falcon.HTTPServiceUnavailable(
                description='keystone does not answer; the log of kronos-api has its error.'
            ) from error
        self._wrong.forget(*who)
        assert access.auth_token is not None and access.expires is not None
        return Token(token=access.auth_token, expires_at=access.expires)

    def _keystone(self) -> str | None:
        """Return the address of keystone in nova.conf: ``auth_url``, or ``www_authenticate_uri`` if
        ``auth_url`` is not set. Return None if neither is set."""
        plugin = loading.load_auth_from_conf_options(self._conf, KEYSTONE)
        return getattr(plugin, 'auth_url', None) or self._conf[KEYSTONE].www_authenticate_uri


def keystone_session(conf: cfg.ConfigOpts) -> ks_session.Session:
    """Return a keystoneauth session with the TLS options of ``[keystone_authtoken]``."""
    group = conf[KEYSTONE]
    pair = (group.certfile, group.keyfile) if group.certfile and group.keyfile else None
    return ks_session.Session(verify=False if group.insecure else group.cafile or True,
                              cert=pair, timeout=TIMEOUT_SECONDS, redirect=False)
