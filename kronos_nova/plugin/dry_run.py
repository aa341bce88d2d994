"""Asks Nova's scheduler whether it would let a planned move be made; nothing is claimed."""

import oslo_messaging as messaging
from nova import exception as nova_exception
from nova import objects
from nova.compute import rpcapi
from nova.conductor.tasks import live_migrate
from nova.scheduler.client import query
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.plugin import allocation_claim
from kronos_nova.plugin import candidates
from kronos_nova.plugin import cells
from kronos_nova.plugin import placement

LOG = logging.getLogger(__name__)


class SchedulerDryRun:
    """A :class:`~kronos_nova.objects.dry_run.DryRun` over the scheduler that live migrations go
    through: placement, and all enabled filters."""

    def __init__(self):
        self._query_client = query.SchedulerQueryClient()
        self._compute_rpcapi = rpcapi.ComputeAPI()

    def __call__(self, move, instance, destination):
        try:
            return self._ask(move)
        except (exception.PlacementError, messaging.MessagingException, db_exc.DBError) as e:
            LOG.warning('The scheduler could not be asked about moving instance %s: %s',
                        move.instance_uuid, e)
            return Verdict(unasked=f'the scheduler could not be asked: {e}')

    def _ask(self, move):
        context = cells.request_context(None, None)
        if not cells.target_instance(context, move.instance_uuid):
            return Verdict(refused='it does not exist any more')
        try:
            return self._select(context, move)
        except nova_exception.NovaException as e:
            return Verdict(refused=str(e))

    def _select(self, context, move):
        instance = objects.Instance.get_by_uuid(
            context, move.instance_uuid, expected_attrs=['flavor', 'pci_requests', 'numa_topology'])
        context.project_id = instance.project_id
        destination = objects.ComputeNodeList.get_all_by_host(context, move.destination)[0]
        spec = self._request_spec(context, instance, destination)
        source = objects.ComputeNode.get_by_host_and_nodename(context, instance.host, instance.node)
        claim = allocation_claim.AllocationClaim(placement.client(), instance, None, source)
        error = self._refusal(context, claim.spec_for_host(spec, destination.uuid, []))
        if error is None:
            return AGREED
        found = claim.candidates(spec, destination.uuid)
        if any(each.shared_classes for each in found):
            # What only a sharing provider of the destination has, the scheduler cannot see.
            error = self._refusal(context, claim.spec_for_host(spec, destination.uuid, found))
        return AGREED if error is None else Verdict(
            refused=self._why_no_host(found, destination, error))

    def _refusal(self, context, spec):
        try:
            self._query_client.select_destinations(context, spec, None, return_objects=True)
        except nova_exception.NoValidHost as e:
            return e
        return None

    @staticmethod
    def _why_no_host(found, destination, error):
        """The scheduler does not say which of the two it was."""
        if not found:
            return f'placement has no candidate on {destination.host} for what the instance needs'
        return (f'a filter of Nova\'s scheduler refuses {destination.host}, and its log says '
                f'which: {error}')

    def _request_spec(self, context, instance, destination):
        """The request that the live migration task would begin with."""
        spec = candidates.with_flavor_of(
            instance, objects.RequestSpec.get_by_instance_uuid(context, instance.uuid))
        spec.requested_destination = objects.Destination(
            host=destination.host, node=destination.hypervisor_hostname)
        # Nova's own task knows how such a request is made; nothing else of it is used.
        task = live_migrate.LiveMigrationTask(
            context, instance, None, None, None, None, self._compute_rpcapi, None,
            self._query_client, None, spec)
        spec = task._get_request_spec_for_select_destinations([instance.host])
        spec.num_instances, spec.ignore_hosts = 1, [instance.host]
        return spec
