"""The interface to a service that evacuates failed hosts, such as masakari. Kronos informs the
service when a host is drained, so that the service does not evacuate the host."""

import contextlib
from collections.abc import Iterator
from typing import Any
from typing import Protocol

import openstack
from keystoneauth1 import exceptions as ks_exc
from oslo_config import cfg
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.inventory import connection

LOG = logging.getLogger(__name__)


class HighAvailability(Protocol):
    """The protocol of a service that evacuates failed hosts. Every method raises NovaClientError if
    the service does not answer or refuses."""

    def is_watched(self, host: str) -> bool:
        """Return whether the service would evacuate a host if the host failed now."""

    def watch(self, host: str, is_watched: bool) -> None:
        """Set whether the service evacuates a host if the host fails. A repeated call changes
        nothing."""


class NoHighAvailability:
    """The HighAvailability of a cloud in which no service evacuates failed hosts."""

    def is_watched(self, host: str) -> bool:
        return False

    def watch(self, host: str, is_watched: bool) -> None:
        """Do nothing."""


class Masakari:
    """The HighAvailability of a cloud with masakari. Masakari evacuates a failed host if the host
    is in a segment and its ``on_maintenance`` is false.

    :param cloud: openstack.connection.Connection of an administrator
    """

    def __init__(self, cloud: openstack.connection.Connection):
        self._cloud = cloud

    def is_watched(self, host: str) -> bool:
        return any(not each.on_maintenance for _segment, each in self._hosts(host))

    def watch(self, host: str, is_watched: bool) -> None:
        for segment, each in self._hosts(host):
            if bool(each.on_maintenance) is is_watched:
                with _answered(host):
                    self._cloud.instance_ha.update_host(each.uuid, segment,
                                                        on_maintenance=not is_watched)
                LOG.info('Host %s: set on_maintenance to %s in masakari', host, not is_watched)

    def _hosts(self, name: str) -> list[tuple[str, Any]]:
        """Return [(uuid of a segment, host in the segment)] for all hosts with the name
        ``name``."""
        with _answered(name):
            return [(segment.uuid, each) for segment in self._cloud.instance_ha.segments()
                    for each in self._cloud.instance_ha.hosts(segment.uuid) if each.name == name]


def for_conf(conf: cfg.ConfigOpts) -> HighAvailability:
    """Return a Masakari if ``[kronos_executor] masakari`` is set, otherwise a NoHighAvailability.

    :raises ConfigurationError: the options of ``[kronos_nova]`` do not suffice to authenticate
    """
    if not conf.kronos_executor.masakari:
        return NoHighAvailability()
    return Masakari(connection.connect(conf))


@contextlib.contextmanager
def _answered(host: str) -> Iterator[None]:
    try:
        yield
    except (openstack.exceptions.SDKException, ks_exc.ClientException) as error:
        raise exception.NovaClientError(
            instance=host, reason=f'masakari does not answer, or refuses a request: '
                                  f'{" ".join(str(error).split())}') from error
