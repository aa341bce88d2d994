"""Two-phase claims: resources that nova-compute reserves for an instance before the instance moves
to its host."""

import dataclasses

from nova import exception as nova_exc
from nova import objects
from nova.compute import claims as nova_claims
from nova.objects import fields
from nova.pci import request as pci_request

from kronos_nova.objects.claim import CLAIMED
from kronos_nova.objects.claim import PREPARED
from kronos_nova.objects.claim import Claim
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import InstancePCIRequest
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.resource_tracker import KronosResourceTracker
from kronos_nova.plugin.resource_tracker import synchronized


class TwoPhaseClaims:
    """The two-phase claims of this host. A claim is first prepared, and then confirmed or aborted.
    A repeated call does no harm.

    :param tracker: KronosResourceTracker of this host
    """

    def __init__(self, tracker: KronosResourceTracker):
        self.tracker = tracker
        self.ledger = tracker.ledger

    @synchronized
    def prepare(self, context: RequestContext, instance: Instance,
                migration: Migration | None = None, nodename: str | None = None) -> int | None:
        """Reserve resources for an instance that is going to move to this host.

        CPU, memory and disk are reserved from now on. NUMA cells and PCI devices are tested but not
        reserved, because Nova's scheduler still has to find them free for this instance.

        :param migration: Migration, or None while there is no record of it
        :param nodename: name of the node of this host; needed if the host has several nodes and
            ``migration`` names no destination node
        :returns: the id of the claim on this host
        :raises ComputeResourcesUnavailable: the instance does not fit, or there is no such node
        """
        nodename = self._destination(instance, migration, nodename)
        if not self.ledger.node_claims(nodename).amounts(instance.uuid):
            self._test_move(context, instance, migration, nodename)
            self.tracker.hold(context, Claim(
                host=self.tracker.host, node=nodename, instance_uuid=instance.uuid,
                amount=self.tracker.amount_for(instance), created_at=self.ledger.clock(),
                resize_target=True, state=PREPARED,
                migration_uuid=migration.uuid if migration else None))
        saved = self.ledger.save(nodename, instance.uuid)
        return max(saved.values(), key=lambda claim: claim.resize_target).id

    def _destination(self, instance: Instance, migration: Migration | None,
                     nodename: str | None) -> str:
        nodes = self.tracker.compute_nodes
        if nodename is None and migration is not None and migration.dest_node:
            nodename = migration.dest_node
        if nodename is None and len(nodes) == 1:
            nodename = next(iter(nodes))
        if nodename is None or self.tracker.disabled(nodename):
            raise nova_exc.ComputeResourcesUnavailable(
                reason=f'no usable node {nodename} on host {self.tracker.host} for instance '
                       f'{instance.uuid}')
        return nodename

    def _test_move(self, context: RequestContext, instance: Instance, migration: Migration | None,
                   nodename: str) -> None:
        """Test whether the NUMA cells and the PCI devices that the instance needs are free. The
        tests are those that Nova runs when it makes a claim."""
        migration = migration or objects.Migration(
            migration_type=fields.MigrationType.LIVE_MIGRATION)
        requests = pci_request.get_pci_requests_from_flavor(instance.flavor)
        requests.instance_uuid = instance.uuid
        for request in instance.pci_requests.requests if instance.pci_requests else ():
            if request.source == objects.InstancePCIRequest.NEUTRON_PORT:
                requests.requests.append(_without_source(request))
        nova_claims.MoveClaim(
            context, instance, nodename, instance.flavor, instance.image_meta, self.tracker,
            self.tracker.compute_nodes[nodename], requests, migration)

    @synchronized
    def confirm(self, context: RequestContext, claim_id: int) -> bool:
        """Confirm the claim of a move that was made. From now on the claim is treated like a claim
        that Nova made.

        :returns: True if this call confirmed the claim; False if no prepared claim has this id
        """
        claim = self._prepared(claim_id)
        if claim is not None:
            self.ledger.node_claims(claim.node).add_untracked(
                dataclasses.replace(claim, state=CLAIMED))
            self.ledger.save(claim.node, claim.instance_uuid)
        return claim is not None

    @synchronized
    def abort(self, context: RequestContext, claim_id: int) -> bool:
        """Release the resources of a claim whose move will not be made. Nothing is released if Nova
        itself already counts the resources.

        :returns: True if this call released resources; False if no prepared claim has this id
        """
        claim = self._prepared(claim_id)
        if claim is not None:
            self.tracker.release(context, claim)
        return claim is not None

    def _prepared(self, claim_id: int) -> Claim | None:
        for nodename in self.tracker.compute_nodes:
            for claim in self.ledger.node_claims(nodename).untracked.values():
                if claim.state == PREPARED and claim.id == claim_id:
                    return claim
        return None


OF_SOURCE = frozenset(('parent_ifname', 'rp_uuids'))
"""Keys of a PCI request's specification that name a device of the source. ``parent_ifname`` is the
network device on the source, and ``rp_uuids`` are the resource providers of the port's allocation.
Nova sets the values of the destination once the port has an allocation on the destination."""


def _without_source(request: InstancePCIRequest) -> InstancePCIRequest:
    """Return a copy of a port's InstancePCIRequest without the keys :data:`OF_SOURCE`. These keys
    describe the device on the source, and no device of another host would match them.
    """
    copy = request.obj_clone()
    copy.spec = [{key: value for key, value in spec.items() if key not in OF_SOURCE}
                 for spec in request.spec]
    return copy
