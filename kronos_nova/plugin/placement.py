"""The client of placement, configured like that of the Nova service in which Kronos runs."""

import functools

import nova.utils
from keystoneauth1 import exceptions

from kronos_nova import exception
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.shortcut import Shortcut


@functools.cache
def client() -> PlacementClient:
    """Return the client that ``[placement]`` of nova.conf configures. It is created once in each
    process.

    :raises ConfigurationError: ``[placement]`` has no credentials
    """
    try:
        adapter = nova.utils.get_sdk_adapter('placement', admin=True)
    except exceptions.MissingAuthPlugin as error:
        raise exception.ConfigurationError(
            what='[placement]', problem='has no credentials: auth_type is not set',
            remedy='Set auth_type, auth_url, username, password, project_name and the domains as '
                   'for the services of Nova, or read the nova.conf of nova-conductor.') from error
    return PlacementClient(Shortcut(adapter))
