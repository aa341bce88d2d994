"""Facts about instances that decide how and where Nova can move them. The facts concern devices,
ports, shares, the model of the processors and the zone to which an instance is pinned.

Only some columns of Nova's tables are read. The facts of an instance are read when the instance is
new or has changed, and again after every :data:`READ_ALL_EVERY` readings.
"""

import datetime
import json
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models
from nova.network import model as network_model
from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova.inventory import devices
from kronos_nova.inventory import numa
from kronos_nova.inventory.kinds import NO_FACTS
from kronos_nova.inventory.kinds import Facts
from kronos_nova.objects.movability import ACCELERATOR_PORTS
from kronos_nova.objects.movability import VDPA_PORT
from kronos_nova.objects.movability import Devices
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import Row
from kronos_nova.plugin.nova_types import Session

LOG = logging.getLogger(__name__)

MEMBERS = 200
"""Maximum number of instances whose devices and ports are read from Nova's database by one query.
Raised, a query takes the database longer; lowered, there are more queries. Chosen because a query
for a few hundred instances takes a hundredth of a second."""

READ_ALL_EVERY = 20
"""Number of evaluations after which the devices, ports, shares and zone of an unchanged instance
are read again. The record of the instance in Nova does not always change when the instance gets a
port or share. Raised, Kronos notices a new port or share later; lowered, evaluations take longer.
Not measured."""

PORT_TYPES = frozenset((*ACCELERATOR_PORTS, VDPA_PORT))


class FactReader:
    """A reader of the Facts of instances that are new or have changed."""

    def __init__(self) -> None:
        # uuid: (time of the last change, number of the reading, Facts)
        self._known: dict[str, tuple[datetime.datetime | None, int, Facts]] = {}
        self._alike: dict[Facts, Facts] = {}
        self._reading = 0

    def begin(self) -> None:
        """Count a new reading. Called before the instances of a cell are read."""
        self._reading += 1

    def read(self, session: Session, rows: Iterable[Row]) -> None:
        """Read the facts of the instances that are new or have changed, or whose facts were last
        read :data:`READ_ALL_EVERY` readings ago.

        :param session: session of the cell's database
        :param rows: rows of instances with ``uuid`` and ``updated_at``
        """
        since = self._reading - READ_ALL_EVERY
        new = {row.uuid: row.updated_at for row in rows
               if (known := self._known.get(row.uuid)) is None
               or known[0] != row.updated_at or known[1] <= since}
        uuids = list(new)
        for start in range(0, len(uuids), MEMBERS):
            for uuid, facts in _facts(session, uuids[start:start + MEMBERS]):
                # Thousands of instances have equal facts, which are stored once.
                self._known[uuid] = (new[uuid], self._reading,
                                     self._alike.setdefault(facts, facts))

    def facts_of(self, uuid: str) -> Facts:
        """Return the Facts of an instance; NO_FACTS if they were not read."""
        known = self._known.get(uuid)
        return NO_FACTS if known is None else known[2]


def _facts(session: Session, uuids: Sequence[str]) -> Iterator[tuple[str, Facts]]:
    """Yield (uuid, Facts) for each instance."""
    instance, extra = models.Instance, models.InstanceExtra
    vnics, shares = _port_types(session, uuids), _shares(session, uuids)
    for row in session.query(
            instance.uuid, instance.power_state, extra.pci_requests, extra.vcpu_model,
            extra.numa_topology,
    ).outerjoin(extra, extra.instance_uuid == instance.uuid).filter(instance.uuid.in_(uuids)):
        requests = _parsed(row.uuid, row.pci_requests, 'PCI requests')
        yield row.uuid, Facts(
            power_state=row.power_state, cpu_model=_cpu_model(row.uuid, row.vcpu_model),
            devices=Devices(has_fixed_device=_has_fixed_device(requests),
                            port_types=vnics.get(row.uuid, frozenset()),
                            has_share=row.uuid in shares,
                            has_numa=row.numa_topology is not None),
            topology=_topology(row.uuid, row.numa_topology),
            requested=_requested(row.uuid, requests))


def _port_types(session: Session, uuids: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return {instance uuid: the PORT_TYPES that its ports have}. The database selects the
    instances whose network information contains one of the types. So the network information of
    only a few instances is read."""
    cache, found = models.InstanceInfoCache, {}
    text = cache.network_info
    has_any = text.contains(f'"{VDPA_PORT}"')
    for word in sorted(ACCELERATOR_PORTS):
        has_any |= text.contains(f'"{word}"')
    for uuid, network_info in session.query(cache.instance_uuid, text).filter(
            cache.instance_uuid.in_(uuids), cache.deleted == 0, has_any):
        vifs = network_model.NetworkInfo.hydrate(network_info)
        found[uuid] = PORT_TYPES.intersection(vif['vnic_type'] for vif in vifs)
    return found


def _shares(session: Session, uuids: Sequence[str]) -> set[str]:
    share = models.ShareMapping
    return {uuid for uuid, in session.query(share.instance_uuid).filter(
        share.instance_uuid.in_(uuids))}


def _has_fixed_device(requests: Any) -> bool:
    """Return True if the flavor requests a PCI device with which Nova does not migrate an instance
    live. The rule is that of ``nova.objects.InstancePCIRequest``. Requests of ports, which have no
    alias, do not count."""
    return any(request.get('alias_name') is not None and not _is_live_migratable(request)
               for request in requests or ())


def _requested(uuid: str, requests: Any) -> devices.Requested:
    """Return the PCI devices that an instance needs. If Nova's record cannot be read, return no
    devices."""
    try:
        return devices.requested(requests)
    except (TypeError, boundary.OutOfBounds) as error:
        LOG.warning('Instance %s: Nova\'s record of its PCI requests cannot be read; Kronos treats '
                    'the instance as one without PCI devices: %r', uuid, error)
        return devices.NOTHING


def _is_live_migratable(request: Mapping[str, Any]) -> bool:
    spec = request.get('spec')
    return spec is not None and all(each.get('live_migratable') == 'true' for each in spec)


def _cpu_model(uuid: str, text: str | None) -> str:
    """Return the named model of a guest's processors; '' if there is none."""
    model = _parsed(uuid, text, 'CPU model') or {}
    return (model.get('nova_object.data') or {}).get('model') or ''


def _topology(uuid: str, text: str | None) -> numa.Topology:
    """Return the Topology of an instance: the NUMA cells that it needs and has. Return an empty
    Topology if Nova's record cannot be read."""
    try:
        return numa.topology(_parsed(uuid, text, 'NUMA topology'))
    except (TypeError, ValueError, boundary.OutOfBounds) as error:
        LOG.warning('Instance %s: Nova\'s record of its NUMA topology cannot be read; Kronos '
                    'treats the instance as one without a NUMA topology: %r', uuid, error)
        return numa.NO_TOPOLOGY


def _parsed(uuid: str, text: str | None, what: str) -> Any:
    try:
        return json.loads(text or 'null')
    except ValueError as error:
        LOG.warning('Instance %s: Nova\'s record of its %s cannot be read; Kronos treats the '
                    'instance as if it had none: %r', uuid, what, error)
        return None


class ZoneReader:
    """A reader of the availability zones to which instances are pinned."""

    def __init__(self) -> None:
        # uuid: (number of the reading, zone or None)
        self._known: dict[str, tuple[int, str | None]] = {}
        self._reading = 0

    def read(self, context: RequestContext, uuids: Collection[str],
             zones: Collection[str]) -> dict[str, str]:
        """Return {instance uuid: its zone}. Instances that are pinned to no zone are left out. If
        there are fewer than two zones, the result is empty.

        The database searches the text of each RequestSpec for the zone, because parsing tens of
        thousands of RequestSpecs takes minutes.

        :param zones: names of all zones
        """
        self._reading += 1
        if len(zones) < 2:
            return {}
        since = self._reading - READ_ALL_EVERY
        new = [uuid for uuid in uuids
               if (known := self._known.get(uuid)) is None or known[0] <= since]
        spec = api_models.RequestSpec
        with api_db.context_manager.reader.using(context) as session:
            for start in range(0, len(new), MEMBERS):
                few = new[start:start + MEMBERS]
                self._known.update(dict.fromkeys(few, (self._reading, None)))
                for zone in sorted(zones):
                    for uuid, in session.query(spec.instance_uuid).filter(
                            spec.instance_uuid.in_(few), spec.spec.contains(
                                f'"availability_zone": {json.dumps(zone)}', autoescape=True)):
                        self._known[uuid] = self._reading, zone
        pinned = ((uuid, self._known[uuid][1]) for uuid in uuids)
        return {uuid: zone for uuid, zone in pinned if zone is not None and zone in zones}
