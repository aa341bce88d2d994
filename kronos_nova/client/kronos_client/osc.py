"""The plugin that adds the commands ``openstack kronos ...`` to python-openstackclient."""

import argparse
from typing import TYPE_CHECKING
from typing import Any

from osc_lib import utils

from kronos_client.contract import versions

if TYPE_CHECKING:
    from kronos_client.http import HttpClient

API_NAME = 'rebalancing'
API_VERSION_OPTION = 'os_rebalancing_api_version'
API_VERSIONS = {'1': 'kronos_client.http.HttpClient'}
DEFAULT_API_VERSION = '1'


def make_client(instance: Any) -> 'HttpClient':
    """Return an HttpClient that authenticates with the user's credentials.

    :param instance: client manager of python-openstackclient
    """
    # Imported late: every openstack command imports this module.
    from keystoneauth1 import adapter

    from kronos_client.http import HttpClient
    config = instance.sdk_connection.config
    return HttpClient(adapter.Adapter(
        instance.session, service_type=versions.SERVICE,
        interface=config.get_interface(versions.SERVICE),
        region_name=config.get_region_name(versions.SERVICE),
        endpoint_override=config.get_endpoint(versions.SERVICE),
        default_microversion=versions.VERSIONS[-1]))


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        '--os-kronos-endpoint', metavar='<url>', dest='kronos_endpoint_override',
        default=utils.env('OS_KRONOS_ENDPOINT') or None,
        help='URL of kronos-api (Env: OS_KRONOS_ENDPOINT); default: the endpoint of the service '
             f'type "{versions.SERVICE}" in the catalogue of keystone.')
    return parser
