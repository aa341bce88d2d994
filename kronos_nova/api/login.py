"""Password for token, for the page: kronos-api asks keystone, so that a browser need not reach it.

It is no way around anything: what is sent on is made here, to the one address that nova.conf names,
and keystone decides as for anybody else.
"""

import threading

import falcon
import msgspec
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from keystoneauth1 import session as ks_session
from keystoneauth1.identity import v3
from oslo_log import log as logging

from kronos_client.contract.base import Name
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_nova import boundary

LOG = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10
"""For keystone to answer; people wait in front of it."""

AT_ONCE = 2
"""Logins under way: each holds one of the threads that answer everybody, and keystone's hashing of
passwords takes a good part of a second."""

KEYSTONE = 'keystone_authtoken'

Text = Name


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without a project the token is of the system."""

    user: Text
    password: Text
    user_domain: Text = 'Default'
    project: Text | None = None
    project_domain: Text = 'Default'


class Token(Response):
    token: str
    expires_at: Time


class Login:
    """What answers ``POST /ui/login``."""

    is_public = True

    def __init__(self, conf):
        self._conf = conf
        self._slots = threading.BoundedSemaphore(AT_ONCE)

    def on_post(self, request, response):
        if not self._conf.kronos_api.password_login:
            raise falcon.HTTPForbidden(description='nova.conf does not permit passwords here.')
        # No other site can have a browser send that without being asked about it first.
        if (request.content_type or '').partition(';')[0] != falcon.MEDIA_JSON:
            raise falcon.HTTPUnsupportedMediaType(description='application/json is needed.')
        given = msgspec.json.decode(request.bounded_stream.read(), type=Credentials)
        if not self._slots.acquire(blocking=False):
            raise falcon.HTTPServiceUnavailable(
                description='Others are logging in; try again.', retry_after=1)
        try:
            response.data = msgspec.json.encode(self._exchange(given))
        finally:
            self._slots.release()
        response.content_type = falcon.MEDIA_JSON

    def _exchange(self, given):
        scope = {'project_name': given.project, 'project_domain_name': given.project_domain
                 } if given.project else {'system_scope': 'all'}
        plugin = v3.Password(
            self._keystone(), username=given.user, password=given.password,
            user_domain_name=given.user_domain, include_catalog=False, **scope)
        try:
            access = plugin.get_access(self._session())
        except (exceptions.Unauthorized, exceptions.Forbidden, exceptions.NotFound,
                exceptions.BadRequest) as error:
            LOG.warning('keystone refused a login as %s', boundary.shown(given.user))
            raise falcon.HTTPUnauthorized(
                description='keystone did not accept that.') from error
        except exceptions.ClientException as error:
            LOG.error('keystone did not answer a login: %s', error)
            raise falcon.HTTPServiceUnavailable(
                description='keystone does not answer; the log of kronos-api says what.'
            ) from error
        return Token(token=access.auth_token, expires_at=access.expires)

    def _keystone(self):
        """The address at which this process asks keystone itself, or else the public one."""
        plugin = loading.load_auth_from_conf_options(self._conf, KEYSTONE)
        return getattr(plugin, 'auth_url', None) or self._conf[KEYSTONE].www_authenticate_uri

    def _session(self):
        group = self._conf[KEYSTONE]
        pair = (group.certfile, group.keyfile) if group.certfile and group.keyfile else None
        return ks_session.Session(verify=False if group.insecure else group.cafile or True,
                                  cert=pair, timeout=TIMEOUT_SECONDS, redirect=False)
