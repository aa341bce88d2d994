"""Claims of resources in placement for live migrations, and the choice of a destination."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from nova import exception as nova_exception
from nova import objects
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.placement import errors
from kronos_nova.placement import moves
from kronos_nova.placement import ownership
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import off
from kronos_nova.placement.allocations import on
from kronos_nova.placement.client import PlacementClient
from kronos_nova.plugin import candidate_filters
from kronos_nova.plugin import candidates
from kronos_nova.plugin import reverts
from kronos_nova.plugin.candidates import Candidate
from kronos_nova.plugin.nova_types import ComputeNode
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import LiveMigrationTask
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import RequestSpec
from kronos_nova.plugin.nova_types import SchedulerQueryClient
from kronos_nova.plugin.nova_types import Selection

LOG = logging.getLogger(__name__)

CANDIDATES_TO_TRY = 5
"""Maximum number of allocation candidates of one destination host that Kronos tries to claim in
placement. Kronos tries one candidate after the other until a claim succeeds. A claim fails if
another process has just used up a provider of the candidate. Raised, a live migration to a full
host is refused later; lowered, a host may count as full although another candidate has room. Chosen
because more than a few failures in a row mean that the host is full; not measured."""


class AllocationClaim:
    """A claim in placement of the resources that one live migration needs at its destination. The
    methods find allocation candidates, make the claim and release the claim.

    :param migration: the Migration; None if nothing will be claimed
    :param source: the ComputeNode of the source
    """

    def __init__(self, placement: PlacementClient, instance: Instance, migration: Migration | None,
                 source: ComputeNode):
        self._placement = placement
        self._instance = instance
        self._migration = migration
        self._source = source
        self._source_tree = placement.tree(source.uuid)
        self._before = placement.consumer(instance.uuid).allocations
        self._parties: moves.Parties | None = None
        self._claimed: Allocations = {}

    def shared_with(self, destination: str) -> Allocations:
        """Return the allocations of the instance that it keeps when it moves: they are on sharing
        providers that ``destination`` can use as well."""
        return ownership.parts(self._placement, self._before, self._source_tree,
                               destination).shared

    def candidates(self, spec: RequestSpec, destination: str) -> list[Candidate]:
        """Return the allocation candidates of an instance on ``destination``. The candidates do not
        contain the allocations that the instance keeps on sharing providers.

        :param spec: RequestSpec of the instance
        """
        return candidates.on_host(self._placement, spec, destination, self.shared_with(destination))

    def spec_for_host(self, spec: RequestSpec, destination: str,
                      found: list[Candidate]) -> RequestSpec:
        """Return ``spec`` without the resources that sharing providers supply for ``destination``.
        A request that names a host is answered from the host's own providers only, so the scheduler
        would refuse the host if these resources were requested.

        :param found: allocation candidates of the instance on ``destination``
        """
        names = ownership.classes(self.shared_with(destination))
        return candidates.without_classes(
            spec, names.union(*(each.shared_classes for each in found)))

    def probe(self) -> None:
        """Check that placement answers, by one request about the source's providers.

        :raises PlacementError: placement does not answer
        """
        self._placement.tree(self._source.uuid)

    def claim(self, destination: str, allocations: Allocations) -> None:
        """Claim the resources of the destination in placement for a live migration.

        :raises NoValidHost: placement no longer accepts the allocation that the instance has on its
            source
        :raises PlacementError: see :func:`kronos_nova.placement.moves.start`
        """
        assert self._migration is not None
        parties = moves.Parties(
            instance=self._instance.uuid, migration=self._migration.uuid, source=self._source.uuid,
            destination=destination, project_id=self._instance.project_id,
            user_id=self._instance.user_id,
            source_overwrites=not reverts.are_atomic_on(self._source),
            source_tree=self._source_tree)
        try:
            moves.start(self._placement, parties, allocations)
        except errors.InsufficientInventory:
            raise
        except errors.SourceRefused as error:
            raise nova_exception.NoValidHost(reason=first_line(error)) from error
        except exception.PlacementError:
            self._note(parties, allocations)
            raise
        self._note(parties, allocations)

    def _note(self, parties: moves.Parties, allocations: Allocations) -> None:
        """Record a claim that has been made, or may have been made."""
        self._parties = parties
        self._claimed = {**self._claimed, **allocations}

    def copy_to(self, node: ComputeNode) -> None:
        """Claim on the ComputeNode ``node`` the amounts that the instance has on its source. Nova
        does the same for a forced move.

        :raises NoValidHost: the amounts cannot be copied, because the instance has an allocation on
            a child provider of the source, or none on the source. Only the scheduler can choose
            providers in this case
        """
        destination = node.uuid
        local = off(self._before, self.shared_with(destination))
        nested = off(on(local, self._source_tree), {self._source.uuid})
        if nested or not local:
            raise nova_exception.NoValidHost(
                reason=f'Unable to move instance {self._instance.uuid} to host {node.host}. The '
                       'instance has complex allocations on the source host so move cannot be '
                       'forced.')
        self.claim(destination, {destination: ownership.totals(local)})

    def release(self, is_gone: Callable[[], bool], root: str | None) -> None:
        """Restore the allocations as they were before :meth:`claim`. Do nothing if no claim has
        changed them. Allocations of an evacuation that was begun after the claim are kept.

        :param is_gone: callable that returns True if the instance was deleted
        :param root: provider of the host where the instance is now; None if it is on no host. After
            an evacuation, this may be a host of which resources were claimed
        :raises PlacementError: see :func:`kronos_nova.placement.moves.revert`
        """
        if self._parties is None:
            return
        here = () if root in (None, self._source.uuid) else self._placement.tree(root)
        try:
            moves.revert(self._placement, self._parties, is_gone,
                         claimed=off(self._claimed, here))
        except errors.NothingToMove:
            moves.revert(self._placement, self._parties, is_gone, before=self._before)


class ClaimingScheduler:
    """A replacement for the scheduler client in Nova's live migration task. The scheduler only
    chooses a host. This class then claims the host's resources in placement.

    Nova's loop over destinations calls this class. If a host fails Nova's checks for a live
    migration, the loop calls this class again for another host.

    :param task: the live migration task, for its checks
    """

    def __init__(self, query_client: SchedulerQueryClient, claim: AllocationClaim,
                 task: LiveMigrationTask):
        self._query_client = query_client
        self._claim = claim
        self._task = task
        self._full: list[str] = []

    def select_destinations(self, context: RequestContext, spec: RequestSpec,
                            instance_uuids: Sequence[str], **_kwargs: Any) -> list[list[Selection]]:
        """Select a destination and claim its resources.

        :raises NoValidHost: the scheduler finds no host, or the requested host has no room
        :raises MaxRetriesExceeded: more hosts than ``migrate_max_retries`` permits refused the
            instance or were full
        :raises ComputeServiceUnavailable: the nova-compute of the requested host is down
        """
        [uuid] = instance_uuids
        spec = spec.obj_clone()
        # The request may still have the number of instances that were booted together.
        spec.num_instances = 1
        target = _target_of(spec)
        attempted = list(spec.ignore_hosts or ())
        while True:
            spec.ignore_hosts = [*attempted, *self._full]
            selection, candidate = (self._select(context, spec) if target is None else
                                    self._select_target(context, spec, target))
            if candidate is not None:
                selection.allocation_request = candidate.to_request()
                # Nova 33 sets the limits after the host was checked with them (bug 2153425).
                self._task.limits = selection.limits
                return [[selection]]
            reason = f'host {selection.service_host} has no room left for instance {uuid}'
            if target:
                raise nova_exception.NoValidHost(reason=reason)
            LOG.info('Live migration of instance %s: %s; the scheduler is asked for another host.',
                     uuid, reason)
            self._full.append(selection.service_host)
            self._task._check_not_over_max_retries([*attempted, *self._full])

    def _select(self, context: RequestContext,
                spec: RequestSpec) -> tuple[Selection, Candidate | None]:
        selection = self._ask(context, spec)
        found = self._claim.candidates(spec, selection.compute_node_uuid)
        return selection, self._claim_candidate(context, spec, selection, found)

    def _select_target(self, context: RequestContext, spec: RequestSpec,
                       target: str) -> tuple[Selection, Candidate | None]:
        root = objects.ComputeNodeList.get_all_by_host(context, target)[0].uuid
        found = self._claim.candidates(spec, root)
        try:
            selection = self._ask(context, self._claim.spec_for_host(spec, root, found))
        except nova_exception.NoValidHost:
            # The scheduler raises this also where the nova-compute of the host does not report.
            self._task._check_host_is_up(target)
            raise
        return selection, self._claim_candidate(context, spec, selection, found)

    def _ask(self, context: RequestContext, spec: RequestSpec) -> Selection:
        try:
            return self._query_client.select_destinations(
                context, spec, None, return_objects=True)[0][0]
        except nova_exception.NoValidHost:
            # The scheduler raises this also where placement does not answer.
            self._claim.probe()
            raise

    def _claim_candidate(self, context: RequestContext, spec: RequestSpec, selection: Selection,
                         found: list[Candidate]) -> Candidate | None:
        """Try to claim one candidate after the other until placement accepts one. Return this
        candidate; None if placement accepts none."""
        def node() -> ComputeNode:
            return objects.ComputeNode.get_by_host_and_nodename(
                context, selection.service_host, selection.nodename)

        for candidate in candidate_filters.left_over(found, spec, node)[:CANDIDATES_TO_TRY]:
            try:
                self._claim.claim(selection.compute_node_uuid, candidate.allocations)
            except errors.InsufficientInventory:
                continue
            return candidate
        return None


def _target_of(spec: RequestSpec) -> str | None:
    """Return the name of the requested host; None if the scheduler is to choose the host."""
    target = spec.requested_destination
    return target.host if target and 'host' in target and target.host else None
