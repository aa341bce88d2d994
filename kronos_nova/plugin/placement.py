"""The client of placement, configured like that of the Nova service in which Kronos runs."""

import functools

import nova.utils

from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.shortcut import Shortcut


@functools.cache
def client() -> PlacementClient:
    """Return the client that ``[placement]`` of nova.conf configures. It is created once in each
    process."""
    return PlacementClient(Shortcut(nova.utils.get_sdk_adapter('placement', admin=True)))
