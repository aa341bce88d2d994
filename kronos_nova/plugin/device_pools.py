"""Pools of PCI devices on hosts, by PCI alias. Flavors of servers request devices by alias."""

import collections
import json
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova import exception as nova_exception
from nova import objects
from nova.objects import fields
from nova.objects import pci_device_pool
from nova.pci import request as pci_request
from nova.pci import stats as pci_stats
from nova.pci import whitelist
from oslo_log import log as logging

from kronos_nova.inventory import devices
from kronos_nova.objects.numa import Pool
from kronos_nova.plugin.nova_tables import HeldDevice
from kronos_nova.plugin.nova_tables import Server

LOG = logging.getLogger(__name__)


def configured() -> dict[str, str]:
    """Return {PCI alias: its specifications as JSON} from the option ``[pci] alias`` of this
    process. Aliases whose devices Kronos does not count are left out."""
    try:
        found = pci_request.get_alias_from_config()
    except nova_exception.PciInvalidAlias as error:
        LOG.warning('[pci] alias of this nova.conf is invalid. PCI devices are counted only for '
                    'aliases that existing servers use. Correct the option: %s', error)
        return {}
    return {name: json.dumps(spec, sort_keys=True) for name, (_policy, spec) in found.items()
            if devices.is_counted(spec)}


class Aliases:
    """The PCI aliases of ``[pci] alias`` and of the servers' requests.

    :param configured: the result of :func:`configured`

    specs : {alias: set of its specifications as JSON}. The set has several items if the alias was
        redefined after servers had requested it: the requests of these servers have the old
        specification
    """

    def __init__(self, configured: Mapping[str, str], servers: Iterable[Server] = ()):
        self.specs: dict[str, set[str]] = collections.defaultdict(set)
        for name, spec in configured.items():
            self.specs[name].add(spec)
        for requested in {server.facts.requested for server in servers}:
            for name, spec in requested.specs:
                self.specs[name].add(spec)

    def matching(self, name: str, pools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return those of Nova's ``pools`` from which the alias ``name`` may get devices."""
        found: list[dict[str, Any]] = []
        for spec in sorted(self.specs[name]):
            request = objects.InstancePCIRequest(
                count=0, spec=json.loads(spec), alias_name=name, request_id=None,
                numa_policy=fields.PCINUMAAffinityPolicy.LEGACY)
            stats = pci_stats.PciDeviceStats(
                objects.NUMATopology(), stats=None, dev_filter=whitelist.Whitelist([]))
            found += [pool for pool in stats._filter_pools(pools, request, None, [])
                      if pool not in found]
        return found


def pools_of(host: str, text: str | None, held: Iterable[HeldDevice], servers: Mapping[str, Server],
             aliases: Aliases) -> tuple[Pool, ...] | None:
    """Return the Pools of a host: the PCI devices of each alias in each NUMA cell. An alias of
    which the host has no devices has one empty Pool. Return None, and log a warning, if Nova's
    record cannot be read.

    :param text: ``compute_nodes.pci_stats``, which has the free devices
    :param held: devices that instances on the host have, as in the result of
        :func:`~kronos_nova.plugin.nova_tables.raw_devices`
    :param servers: {uuid: Server} of the instances on the host
    """
    try:
        free = [pool.to_dict() for pool in pci_device_pool.from_pci_stats(text)]
    except Exception as error:  # Nova's objects raise whatever a faulty record leads to
        LOG.warning('Host %s: Nova\'s record of its PCI devices cannot be read. Whether the host '
                    'has the devices that a server needs is checked by Nova, but not by Kronos: %r',
                    host, error)
        return None
    used = _used(held, servers, aliases)
    found = []
    for name in sorted(aliases.specs):
        total = collections.Counter(used[name])
        for pool in aliases.matching(name, free):
            total[pool.get('numa_node')] += pool['count']
        found += [Pool(alias=name, total=count, used=used[name][cell], cell=cell)
                  for cell, count in sorted(total.items(), key=lambda each: (
                      each[0] is None, each[0]))] or [Pool(alias=name, total=0)]
    return tuple(found)


def _used(held: Iterable[HeldDevice], servers: Mapping[str, Server],
          aliases: Aliases) -> Mapping[str, collections.Counter[int | None]]:
    """Count the devices that servers have, by PCI alias and NUMA cell.

    :returns: {alias: Counter of NUMA cells}
    """
    found: dict[str, collections.Counter[int | None]] = collections.defaultdict(
        collections.Counter)
    by_server: dict[str, list[list[Any]]] = collections.defaultdict(list)
    for uuid, *device in held:
        by_server[uuid].append(device)
    for uuid, rows in by_server.items():
        wanted = servers[uuid].facts.requested.devices if uuid in servers else ()
        for each in wanted:
            types = {(one['vendor_id'], one['product_id']) for spec in aliases.specs[each.alias]
                     for one in json.loads(spec)}
            ours = [row for row in rows if (row[0], row[1]) in types][:each.count]
            for row in ours:
                rows.remove(row)
                found[each.alias][row[2]] += 1
    return found
