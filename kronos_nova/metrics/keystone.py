"""Keystone tokens for a Prometheus that requires them, such as Aetos."""

from typing import Protocol

from keystoneauth1 import exceptions
from keystoneauth1 import loading
from keystoneauth1 import plugin as auth_plugin
from keystoneauth1 import session as auth_session
from oslo_config import cfg

from kronos_nova import boundary
from kronos_nova import exception

OPTION = '[kronos_prometheus] auth_section'
REMEDY = ('Give auth_type, auth_url, username, password, project_name and the domains of a user '
          'with the admin or the service role there.')


class TokenSource(Protocol):
    """The protocol of a source that provides the token for a request.

    section : group of nova.conf with the credentials, for messages
    """

    section: str

    def token(self) -> str:
        """Return a token that is still valid for several minutes.

        :raises MetricsError: keystone refuses the credentials, or does not answer
        """

    def renew(self) -> None:
        """Drop a refused token, so that :meth:`token` requests a new one."""


class KeystoneTokens:
    """A source of tokens that uses an auth plugin of keystoneauth. The plugin requests a new token
    before the present token expires."""

    def __init__(self, section: str, plugin: auth_plugin.BaseAuthPlugin,
                 session: auth_session.Session):
        self.section = section
        self._plugin = plugin
        self._session = session

    def token(self) -> str:
        try:
            token = self._plugin.get_token(self._session)
        except exceptions.Unauthorized as error:
            raise self._error(exception.MetricsDenied, 'refuses the user of', error) from error
        except exceptions.SSLError as error:
            raise self._error(exception.MetricsUntrusted, 'has a certificate that is not signed '
                              'by the cafile of', error) from error
        except exceptions.MissingAuthPlugin as error:
            raise self._error(exception.MetricsDenied, 'gives no token for', error) from error
        except exceptions.ClientException as error:
            raise self._error(exception.MetricsUnreachable, 'gives no token for', error) from error
        if not token:
            raise self._error(exception.MetricsDenied, 'gives no token for', 'the auth_type '
                              'of the group uses no tokens; set another, such as password')
        return token

    def renew(self) -> None:
        self._plugin.invalidate()

    def _error(self, error_class: type[exception.MetricsError], what: str,
               error: object) -> exception.MetricsError:
        return error_class(source='keystone', problem=f'{what} [{self.section}], which {OPTION} '
                                                      f'names: {boundary.shown(error)}')


def from_conf(conf: cfg.ConfigOpts, section: str, timeout: float) -> KeystoneTokens:
    """Make the token source from the options in a group of nova.conf. No request is sent to
    keystone.

    :param timeout: seconds for an answer of keystone, if the group does not set a timeout
    :raises ConfigurationError: options that are needed for authentication are missing
    """
    _register(conf, section)
    try:
        plugin = loading.load_auth_from_conf_options(conf, section)
        session = loading.load_session_from_conf_options(conf, section, auth=plugin)
    except (exceptions.ClientException, cfg.Error, ValueError, TypeError) as error:
        raise _incomplete(section, error) from error
    if plugin is None:
        raise _incomplete(section, 'auth_type is not set')
    session.timeout = session.timeout or timeout
    return KeystoneTokens(section, plugin, session)


def _register(conf: cfg.ConfigOpts, section: str) -> None:
    """Register the options of keystoneauth in the group ``section``. An option that is already
    registered with another help text, as in keystone_authtoken, is not changed."""
    for option in (*loading.get_auth_common_conf_options(), *loading.get_session_conf_options()):
        try:
            conf.register_opt(option, group=section)
        except cfg.DuplicateOptError:
            continue


def _incomplete(section: str, problem: object) -> exception.ConfigurationError:
    return exception.ConfigurationError(
        what=f'[{section}], which {OPTION} names', problem=boundary.shown(problem), remedy=REMEDY)
