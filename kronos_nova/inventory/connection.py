"""The connection to OpenStack's public APIs that the options of ``[kronos_nova]`` describe."""

import openstack
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from openstack.config import cloud_region
from oslo_config import cfg

from kronos_nova import exception
from kronos_nova.conf import nova as conf_nova
from kronos_nova.inventory import request_clock

GROUP = 'kronos_nova'


def connect(conf: cfg.ConfigOpts) -> openstack.connection.Connection:
    """Return a connection to OpenStack. No request is sent before its first use.

    :param conf: ``oslo.config`` object on which Kronos' options are registered
    :raises ConfigurationError: options that are needed for authentication are missing or invalid
    """
    conf_nova.register_login_opts(conf)
    try:
        auth = loading.load_auth_from_conf_options(conf, GROUP)
        session = loading.load_session_from_conf_options(conf, GROUP, auth=auth)
    except exceptions.ClientException as error:
        raise _incomplete(error) from error
    if auth is None:
        raise _incomplete('auth_type is not set')
    request_clock.install()
    group = conf[GROUP]
    region = cloud_region.from_session(
        session, region_name=group.region_name, interface=group.valid_interfaces,
        compute_endpoint_override=group.endpoint_override,
        placement_endpoint_override=group.placement_endpoint_override,
        # A load balancer may refuse connections while the API service behind it restarts.
        connect_retries=3, status_code_retries=3, app_name='kronos-nova')
    return openstack.connection.Connection(config=region)


def _incomplete(problem: object) -> exception.ConfigurationError:
    return exception.ConfigurationError(
        what=f'[{GROUP}]', problem=problem,
        remedy='Give auth_type, auth_url, username, password, project_name and the domains of a '
               'user with the admin role, as in nova.conf\'s [placement].')
