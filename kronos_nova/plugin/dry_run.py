"""Dry runs of planned moves by Nova's scheduler. A dry run asks whether the scheduler would permit
the move. Nothing is claimed."""

import oslo_messaging as messaging
from nova import exception as nova_exception
from nova import objects
from nova.compute import rpcapi
from nova.conductor.tasks import live_migrate
from nova.scheduler.client import query
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.objects import snapshot
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.objects.dry_run import CHANGES_YET
from kronos_nova.objects.dry_run import NO_ROOM_YET
from kronos_nova.objects.dry_run import NOTHING_BEFORE
from kronos_nova.objects.dry_run import ROOM
from kronos_nova.objects.dry_run import Before
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.plugin import allocation_claim
from kronos_nova.plugin import candidates
from kronos_nova.plugin import cells
from kronos_nova.plugin import outages
from kronos_nova.plugin import placement
from kronos_nova.plugin.candidates import Candidate
from kronos_nova.plugin.nova_types import ComputeNode
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import RequestSpec

LOG = logging.getLogger(__name__)

UNASKED = (exception.PlacementError, messaging.MessagingException)
"""Errors after which it is not known whether the scheduler would permit the move, in addition to
outages."""


def _agreed(before: Before) -> Verdict:
    return Verdict(without=ROOM) if before.leaving else AGREED


def _is_of_today(context: RequestContext, instance: Instance, before: Before) -> bool:
    """Return True if the scheduler may accept a move that it refuses now, once the earlier moves of
    the plan are made. This is possible in two cases:

    * A server that will leave the destination has a PCI device or a NUMA topology.
    * The instance is in the same server group as a server that will arrive at the destination or
      leave the destination.
    """
    if not (before.arriving or before.leaving):
        return False
    try:
        members = objects.InstanceGroup.get_by_instance_uuid(context, instance.uuid).members
    except nova_exception.InstanceGroupNotFound:
        members = ()
    if any(each.uuid in members for each in (*before.arriving, *before.leaving)):
        return True
    found = (objects.Instance.get_by_uuid(
        context, each.uuid, expected_attrs=['pci_requests', 'numa_topology'])
        for each in before.leaving)
    return any(each.numa_topology or each.pci_requests.requests for each in found)


def _verdict_after(error: Exception, instance_uuid: str) -> Verdict:
    """Return the Verdict of a dry run that ended with an error. After an outage, the dry run has no
    result, because the instance is not the cause."""
    is_silent = outages.is_outage(error)
    if is_silent or isinstance(error, UNASKED):
        LOG.warning('The move of instance %s could not be checked with the scheduler before it was '
                    'planned: %s', instance_uuid, first_line(error))
        return Verdict(unasked=f'the scheduler could not be asked: {first_line(error)}',
                       is_silent=is_silent)
    if isinstance(error, nova_exception.NovaException):
        return Verdict(refused=first_line(error))
    LOG.error('Nova cannot prepare a live migration of instance %s. Its records in the database of '
              'Nova may contradict each other.', instance_uuid, exc_info=error)
    return Verdict(refused='Nova cannot prepare a live migration of it: '
                           f'{type(error).__name__}: {first_line(error)}')


class SchedulerDryRun:
    """A :class:`~kronos_nova.objects.dry_run.DryRun` by Nova's scheduler, which asks placement and
    all enabled filters as for a live migration.

    A move may wait for earlier moves of its plan. Then less is requested from the scheduler: the
    room that the earlier moves will free at the destination is subtracted. If even the reduced
    request finds no room, a single VCPU is requested, so that only the filters decide. If the
    scheduler refuses a move, and the reason may be that the earlier moves are not made yet, the dry
    run has no result.
    """

    def __init__(self) -> None:
        self._query_client = query.SchedulerQueryClient()
        self._compute_rpcapi = rpcapi.ComputeAPI()

    def __call__(self, move: PlannedMove, instance: snapshot.Instance, destination: snapshot.Host,
                 before: Before = NOTHING_BEFORE) -> Verdict:
        try:
            return self._ask(move, before)
        except Exception as error:  # Nova's objects raise whatever a faulty record leads to
            return _verdict_after(error, move.instance_uuid)

    def _ask(self, move: PlannedMove, before: Before) -> Verdict:
        context = cells.request_context()
        if not cells.target_instance(context, move.instance_uuid):
            return Verdict(refused='it does not exist any more')
        return self._select(context, move, before)

    def _select(self, context: RequestContext, move: PlannedMove, before: Before) -> Verdict:
        instance = objects.Instance.get_by_uuid(
            context, move.instance_uuid, expected_attrs=['flavor', 'pci_requests', 'numa_topology'])
        context.project_id = instance.project_id
        destination = objects.ComputeNodeList.get_all_by_host(context, move.destination)[0]
        whole = self._request_spec(context, instance, destination)
        # With a number of equal servers, the scheduler looks for devices and processors for each.
        whole.num_instances += before.alike
        spec = candidates.in_later_room(whole, before)
        source = objects.ComputeNode.get_by_host_and_nodename(context, instance.host, instance.node)
        claim = allocation_claim.AllocationClaim(placement.client(), instance, None, source)
        error = self._refusal(context, claim.spec_for_host(spec, destination.uuid, []))
        if error is None:
            return _agreed(before)
        found = claim.candidates(spec, destination.uuid)
        if any(each.shared_classes for each in found):
            # The scheduler cannot see resources that only a sharing provider of the destination
            # has.
            error = self._refusal(context, claim.spec_for_host(spec, destination.uuid, found))
        if error is None:
            return _agreed(before)
        if before.leaving and not found:
            # There is no room yet, but the filters can be asked.
            spec = candidates.without_room(whole)
            error = self._refusal(context, claim.spec_for_host(spec, destination.uuid, []))
            if error is None:
                return _agreed(before)
            found = claim.candidates(spec, destination.uuid)
            if not found:
                return Verdict(unasked=NO_ROOM_YET)
        if _is_of_today(context, instance, before):
            return Verdict(unasked=CHANGES_YET)
        return Verdict(refused=self._why_no_host(found, destination, error))

    def _refusal(self, context: RequestContext,
                 spec: RequestSpec) -> nova_exception.NoValidHost | None:
        try:
            self._query_client.select_destinations(context, spec, None, return_objects=True)
        except nova_exception.NoValidHost as e:
            return e
        return None

    @staticmethod
    def _why_no_host(found: list[Candidate], destination: ComputeNode, error: Exception) -> str:
        """Return a sentence that says whether placement or a filter refused the host. The
        scheduler's error does not say which of the two refused."""
        if not found:
            return f'placement has no candidate on {destination.host} for what the instance needs'
        return (f'a filter of Nova\'s scheduler refuses {destination.host}, and its log says '
                f'which: {first_line(error)}')

    def _request_spec(self, context: RequestContext, instance: Instance,
                      destination: ComputeNode) -> RequestSpec:
        """Return the RequestSpec that Nova's live migration task would send to the scheduler for
        ``destination``."""
        spec = candidates.with_flavor_of(
            instance, objects.RequestSpec.get_by_instance_uuid(context, instance.uuid))
        spec.requested_destination = objects.Destination(
            host=destination.host, node=destination.hypervisor_hostname)
        # Only the method of Nova's task that makes the request for the scheduler is used.
        task = live_migrate.LiveMigrationTask(
            context, instance, None, None, None, None, self._compute_rpcapi, None,
            self._query_client, None, spec)
        spec = task._get_request_spec_for_select_destinations([instance.host])
        spec.num_instances, spec.ignore_hosts = 1, [instance.host]
        return spec
