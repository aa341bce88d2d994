"""Makes ``openstack allocation ...`` known to python-openstackclient."""

from kronos_nova.placement.client import PlacementClient

API_NAME = 'kronos'
API_VERSION_OPTION = 'os_kronos_api_version'
API_VERSIONS = {'1': 'kronos_nova.placement.client.PlacementClient'}
DEFAULT_API_VERSION = '1'


def make_client(instance):
    """A client of placement by the user's own credentials."""
    return PlacementClient(instance.sdk_connection.placement)


def build_option_parser(parser):
    return parser
