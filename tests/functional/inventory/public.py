"""Reading the cloud of a Nova functional test through its API."""

import openstack
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from openstack.config import cloud_region

from kronos_nova.inventory.openstack import OpenStackInventory

ADMIN = {'X-Auth-User': 'admin', 'X-Auth-Project-Id': 'admin', 'X-Roles': 'reader,member,admin'}


def public_inventory(test, **rest) -> OpenStackInventory:
    """
    :param test: a tests.functional.base.NovaTestCase
    """
    return OpenStackInventory(public_connection(test), **rest)


def public_connection(test) -> openstack.connection.Connection:
    """The connection of an administrator."""
    nova = test.api.base_url
    plain = session.Session(token_endpoint.Token(nova, 'admin'), additional_headers=ADMIN)
    region = cloud_region.from_session(
        plain, compute_endpoint_override=nova,
        placement_endpoint_override=test.placement_fixture.endpoint)
    return openstack.connection.Connection(config=region)
