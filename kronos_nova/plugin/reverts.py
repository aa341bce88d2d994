"""Restoration of the source's allocation by nova-compute after a failed move."""

from collections.abc import MutableMapping
from typing import Any

import nova.conf
from nova import exception as nova_exception
from nova import objects
from nova.objects import fields
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.objects import migration_status
from kronos_nova.placement import moves
from kronos_nova.placement.allocations import Allocations
from kronos_nova.plugin import outages
from kronos_nova.plugin import placement
from kronos_nova.plugin.nova_types import ComputeNode
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import Mixin
from kronos_nova.plugin.nova_types import RequestContext

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

EXPECTED = {
    'nova.compute.manager:ComputeManager._revert_allocation': (
        'self', 'context', 'instance', 'migration'),
}


EVACUATION = fields.MigrationType.EVACUATION

# Key in the ``stats`` of a ComputeNode, which nova-compute saves and a conductor reads.
MARK = 'kronos_reverts'


def mark(stats: MutableMapping[str, object]) -> None:
    """Record in the stats of a node that its nova-compute restores allocations by
    :class:`RevertsAtomically` after a failed move. Conductors read this record. Nothing is recorded
    if ``atomic_moves`` is off."""
    if CONF.kronos.atomic_moves != 'off':
        stats[MARK] = '1'


def are_atomic_on(node: ComputeNode) -> bool:
    """Return whether the nova-compute of a ComputeNode restores allocations by
    :class:`RevertsAtomically` after a failed move; False if it restores them as Nova does."""
    return MARK in (node.stats or {})


class RevertsAtomically(Mixin):
    """A mixin for the compute manager that restores the source's allocation after a failed move.

    Nova's method is changed in four ways. The instance keeps its allocations on sharing providers.
    An instance that was evacuated in the meantime keeps its allocations on its new host. After a
    conflict in placement, the request is repeated. An instance that was deleted in the meantime
    gets no allocation.
    """

    def _revert_allocation(self, context: RequestContext, instance: Instance,
                           migration: Migration) -> dict[str, Any] | bool:
        """Give the allocation of the migration back to the instance on its source, as Nova's method
        does.

        An error of placement is only logged, because the callers still have to clean up guests and
        networks. The reconciler in nova-conductor corrects the allocations later.

        :returns: the former allocations of the migration, or False if it had none
        """
        if CONF.kronos.atomic_moves == 'off':
            return super()._revert_allocation(context, instance, migration)
        try:
            parties = _parties(context, instance, migration)
        except nova_exception.ComputeHostNotFound:
            # Without the source's node it is not known which providers belong to it.
            return super()._revert_allocation(context, instance, migration)
        held: Allocations = {}
        try:
            held = placement.client().consumer(migration.uuid).allocations
            moves.revert(placement.client(), parties, lambda: is_gone(context, instance),
                         evacuated_to=evacuated_to(context, migration))
        except exception.PlacementError as error:
            log_unreturned(migration, instance, error)
        return {uuid: {'resources': dict(amounts)} for uuid, amounts in held.items()} or False


def is_gone(context: RequestContext, instance: Instance) -> bool:
    """Return whether an instance was deleted."""
    try:
        objects.Instance.get_by_uuid(context, instance.uuid, expected_attrs=[])
    except nova_exception.InstanceNotFound:
        return True
    return False


def root_of(context: RequestContext, instance: Instance) -> str | None:
    """Return the uuid of the ComputeNode where an instance is now; None if it is on no host."""
    try:
        now = objects.Instance.get_by_uuid(context, instance.uuid, expected_attrs=[])
        return objects.ComputeNode.get_by_host_and_nodename(context, now.host, now.node).uuid
    except (nova_exception.InstanceNotFound, nova_exception.ComputeHostNotFound):
        return None


def evacuations_since(context: RequestContext, migration: Migration) -> list[Migration]:
    """Return the evacuations of an instance from the source of a migration that began after the
    migration, the newest first. Failed evacuations are left out."""
    found = objects.MigrationList.get_by_filters(context, {
        'instance_uuid': migration.instance_uuid, 'migration_type': EVACUATION,
        'source_compute': migration.source_compute})
    return sorted((each for each in found if each.id > migration.id
                   and each.status not in migration_status.FAILED),
                  key=lambda each: each.id, reverse=True)


def evacuated_to(context: RequestContext, migration: Migration) -> frozenset[str]:
    """Return the providers of the host to which an instance was evacuated from the source of a
    migration since the migration began; an empty set if the instance was not evacuated.

    :raises PlacementError: placement does not answer
    """
    for each in evacuations_since(context, migration):
        if not each.dest_node:
            continue
        try:
            node = objects.ComputeNode.get_by_host_and_nodename(
                context, each.dest_compute, each.dest_node)
        except nova_exception.ComputeHostNotFound:
            continue
        return placement.client().tree(node.uuid)
    return frozenset()


def _parties(context: RequestContext, instance: Instance, migration: Migration) -> moves.Parties:
    source = objects.ComputeNode.get_by_host_and_nodename(
        context, migration.source_compute, migration.source_node or instance.node)
    return moves.Parties(instance=instance.uuid, migration=migration.uuid, source=source.uuid,
                         project_id=instance.project_id, user_id=instance.user_id,
                         is_live=migration.is_live_migration)


def forget_destination(instance: Instance) -> None:
    """Delete the migration context of an instance after a failed cold migration or resize. The
    context records the resources that the instance was to have on the destination. If the context
    stayed, Nova's resource tracker on the source host could set the status of the instance's next
    migration to ``error`` while that migration is being prepared.

    See ``ResourceTracker._update_usage_from_migrations`` in ``nova.compute.resource_tracker``.
    """
    instance.drop_migration_context()


def may_be_left(error: Exception) -> bool:
    """Return whether nova-compute may go on after an error of a request to delete the allocations
    of a migration. The reconciler in nova-conductor then deletes the allocations later."""
    return isinstance(error, nova_exception.AllocationDeleteFailed) or outages.is_outage(error)


def log_undeleted(outcome: str, instance: Instance, error: Exception) -> None:
    """Log that the allocation of a migration could not be deleted.

    :param outcome: a clause that says how the migration ended
    """
    LOG.warning('%s, but the allocation of the migration could not be deleted: %s. nova-conductor '
                'deletes it later; "kronos-manage allocations heal" deletes it at once.', outcome,
                first_line(error), instance=instance)


def log_unreturned(migration: Migration, instance: Instance, error: Exception) -> None:
    """Log that the allocations of a failed migration could not be returned to its instance."""
    LOG.warning('The allocations of migration %s could not be returned to its instance; '
                'nova-conductor returns them later: %s', migration.uuid, first_line(error),
                instance=instance)
