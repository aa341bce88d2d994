"""Instances and compute nodes for an audit, read as columns of Nova's tables.

In a large cell, reading columns costs a tenth of reading Nova's own objects; see
:mod:`kronos_nova.plugin.nova_tables`.
"""

import collections
import dataclasses
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping

from nova.db.main import api as main_db
from nova.db.main import models

from kronos_nova.plugin import nova_tables
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import Row
from kronos_nova.plugin.nova_types import Session

PAGE = 1000
"""Maximum number of instances that one query of an audit reads. Raised, the audit takes more
memory; lowered, the audit makes more queries. Not measured."""

IMAGE = 'image_'
"""Prefix (no unit) of the system metadata keys that describe the image of an instance. Fixed by
Nova."""

PLAIN_IMAGE = ('image_base_image_ref', 'image_container_format', 'image_disk_format',
               'image_min_disk', 'image_min_ram')
"""System metadata keys of an image that are not read. Every image has these keys, and they do not
affect the requested resources."""


@dataclasses.dataclass(frozen=True, slots=True)
class Asking:
    """Columns of Nova's records of one instance. From these columns, the resources that the
    instance requests are computed.

    row : uuid, host, node, project_id, user_id, vm_state, task_state, created_at, updated_at,
        image_ref; flavor and pci_requests as JSON text
    image : sorted (key, value) pairs of the instance's system metadata that describe the image
    network_info : JSON text of the instance's ports if one of them may have an allocation,
        otherwise ''
    """

    row: Row
    image: tuple[tuple[str, str], ...]
    network_info: str


def nodes(context: RequestContext,
          hosts: Collection[str] | None = None) -> dict[tuple[str, str], str]:
    """Return {(host, hypervisor hostname): uuid} of a cell's compute nodes.

    :param hosts: names of the hosts whose nodes are wanted, or None for all hosts
    """
    node = models.ComputeNode
    with main_db.get_context_manager(context).reader.using(context) as session:
        query = session.query(node.host, node.hypervisor_hostname, node.uuid).filter(
            node.deleted == 0)
        if hosts is not None:
            query = query.filter(node.host.in_(hosts))
        return {(row.host, row.hypervisor_hostname): row.uuid for row in query}


def instances(context: RequestContext, uuids: Collection[str] | None = None) -> Iterator[Asking]:
    """Yield an Asking for each instance of a cell that is not deleted. Soft-deleted instances are
    included. The instances are read page by page.

    :param uuids: uuids of the instances that are wanted, or None for all instances
    """
    after = ''
    while True:
        with main_db.get_context_manager(context).reader.using(context) as session:
            rows = _rows(session, after, uuids)
            found = [row.uuid for row in rows]
            images, networks = _images(session, found), _networks(session, found)
        for row in rows:
            yield Asking(row, tuple(sorted(images.get(row.uuid, ()))), networks.get(row.uuid, ''))
        if len(rows) < PAGE:
            return
        after = found[-1]


def _rows(session: Session, after: str, uuids: Collection[str] | None) -> list[Row]:
    instance, extra = models.Instance, models.InstanceExtra
    query = session.query(
        instance.uuid, instance.host, instance.node, instance.project_id, instance.user_id,
        instance.vm_state, instance.task_state, instance.created_at, instance.updated_at,
        instance.image_ref, extra.flavor, extra.pci_requests,
    ).outerjoin(extra, extra.instance_uuid == instance.uuid).filter(
        instance.deleted == 0, instance.uuid > after, nova_tables.not_hidden())
    if uuids is not None:
        query = query.filter(instance.uuid.in_(uuids))
    return query.order_by(instance.uuid).limit(PAGE).all()


def _images(session: Session, uuids: list[str]) -> Mapping[str, list[tuple[str, str]]]:
    item = models.InstanceSystemMetadata
    found: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    for uuid, key, value in session.query(item.instance_uuid, item.key, item.value).filter(
            item.deleted == 0, item.instance_uuid.in_(uuids), item.key.not_in(PLAIN_IMAGE),
            item.key.startswith(IMAGE, autoescape=True)):
        found[uuid].append((key, value))
    return found


def _networks(session: Session, uuids: list[str]) -> dict[str, str]:
    cache = models.InstanceInfoCache
    return dict(session.query(cache.instance_uuid, cache.network_info).filter(
        cache.deleted == 0, cache.instance_uuid.in_(uuids),
        cache.network_info.contains('"allocation"')).all())
