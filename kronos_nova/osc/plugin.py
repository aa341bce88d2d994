"""The plugin that adds the commands ``openstack allocation ...`` to python-openstackclient."""

import argparse
from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    from kronos_nova.placement.client import PlacementClient

API_NAME = 'kronos'
API_VERSION_OPTION = 'os_kronos_api_version'
API_VERSIONS = {'1': 'kronos_nova.placement.client.PlacementClient'}
DEFAULT_API_VERSION = '1'


def make_client(instance: Any) -> 'PlacementClient':
    """Return a PlacementClient that authenticates with the user's credentials.

    :param instance: client manager of python-openstackclient
    """
    # Imported late: every openstack command imports this module.
    from kronos_nova.placement.client import PlacementClient
    return PlacementClient(instance.sdk_connection.placement)


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    return parser
