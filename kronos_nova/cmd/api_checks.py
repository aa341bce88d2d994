"""Checks of kronos-api. They check its policy file, its snapshots, and its access to keystone."""

import os
from typing import Any

from keystoneauth1 import exceptions
from keystoneauth1 import loading
from keystonemiddleware import auth_token
from oslo_config import cfg

from kronos_nova import exception
from kronos_nova.api import login
from kronos_nova.api import policies
from kronos_nova.conf import unknown_options

GROUPS = ('kronos_api', login.KEYSTONE)
"""Groups of options in nova.conf. A host that runs kronos-api sets options of at least one of these
groups."""

REMEDY = ('Set auth_type, auth_url, username, password, project_name and the domains in '
          '[keystone_authtoken], as for the API of Nova.')


def skips(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return {'api': reason for skipping the check of kronos-api}; {} if nova.conf has options for
    kronos-api."""
    if {*GROUPS} & unknown_options.sections(conf).keys():
        return {}
    return {'api': 'nova.conf has no [kronos_api] and no [keystone_authtoken]; where kronos-api is '
                   f'to run: {REMEDY}'}


def check(conf: cfg.ConfigOpts) -> tuple[str, None]:
    """Check the configuration of kronos-api.

    :returns: (text of the finding, None)
    :raises ConfigurationError: with this configuration kronos-api would not start, or would refuse
        every login
    """
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
    policies.enforcer(conf)
    _refuse_missing_snapshots(conf.kronos_api.snapshots_path)
    plugin = _plugin(conf)
    address = plugin.auth_url
    try:
        plugin.get_access(login.keystone_session(conf))
    except (exceptions.Unauthorized, exceptions.Forbidden, exceptions.BadRequest) as error:
        raise exception.ConfigurationError(
            what='[keystone_authtoken]',
            problem=f'keystone at {address} refuses the user that is set in this group of '
                    f'options: {error}',
            remedy=REMEDY) from error
    except exceptions.ClientException as error:
        raise exception.ConfigurationError(
            what='[keystone_authtoken] auth_url',
            problem=f'{address} does not answer as keystone: {error}',
            remedy='Correct the address, or start keystone.') from error
    return f'keystone at {address} validates tokens and logins', None


def _plugin(conf: cfg.ConfigOpts) -> Any:
    """Return the authentication plugin of ``[keystone_authtoken]``.

    :raises ConfigurationError: no plugin is configured, or it lacks an option
    """
    try:
        plugin = loading.load_auth_from_conf_options(conf, login.KEYSTONE)
    except exceptions.ClientException as error:
        raise exception.ConfigurationError(
            what='[keystone_authtoken]', problem=f'cannot be used: {error}',
            remedy=REMEDY) from error
    if getattr(plugin, 'auth_url', None) is None:
        raise exception.ConfigurationError(
            what='[keystone_authtoken]', problem='has no address of keystone or no user, so that '
            'kronos-api cannot validate tokens and refuses every login', remedy=REMEDY)
    return plugin


def _refuse_missing_snapshots(path: str | None) -> None:
    if path and not os.path.isdir(path):
        raise exception.ConfigurationError(
            what='[kronos_api] snapshots_path', problem=f'{path} is not a folder',
            remedy='Create the folder, or correct the path.')
