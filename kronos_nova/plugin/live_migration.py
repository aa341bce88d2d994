"""Live migration whose allocations change in one transaction.

Nova's own task moves the allocations on the source to the migration in one request. In a second
request, the scheduler claims the destination for the instance. After a failure, Nova's task undoes
both changes one after the other. Between the requests the allocations are wrong, and they stay
wrong if the process dies. With the task of this module, the scheduler only chooses a host, and one
``POST /allocations`` changes the allocations of migration and instance.
"""

from collections.abc import Mapping
from typing import Any

from nova import availability_zones
from nova import exception as nova_exception
from nova import objects
from nova.conductor.tasks import live_migrate
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.placement import errors
from kronos_nova.placement.client import PlacementClient
from kronos_nova.plugin import candidate_filters
from kronos_nova.plugin import candidates
from kronos_nova.plugin import outages
from kronos_nova.plugin import reverts
from kronos_nova.plugin.allocation_claim import AllocationClaim
from kronos_nova.plugin.allocation_claim import ClaimingScheduler
from kronos_nova.plugin.nova_types import RequestSpec
from kronos_nova.plugin.nova_types import SchedulerQueryClient
from kronos_nova.plugin.registration import Registration

LOG = logging.getLogger(__name__)

# Errors that ComputeTaskManager treats as refusals, after which the instance is unchanged.
REFUSALS = (
    nova_exception.NoValidHost, nova_exception.ComputeHostNotFound,
    nova_exception.ComputeServiceUnavailable, nova_exception.InvalidHypervisorType,
    nova_exception.InvalidCPUInfo, nova_exception.UnableToMigrateToSelf,
    nova_exception.DestinationHypervisorTooOld, nova_exception.InvalidLocalStorage,
    nova_exception.InvalidSharedStorage, nova_exception.HypervisorUnavailable,
    nova_exception.InstanceInvalidState, nova_exception.MigrationPreCheckError,
    nova_exception.MigrationSchedulerRPCError,
)

_TASK = 'nova.conductor.tasks.live_migrate:LiveMigrationTask'

# Methods of Nova that the task calls or overrides.
EXPECTED = {
    **candidate_filters.EXPECTED,
    f'{_TASK}.__init__': (
        'self', 'context', 'instance', 'destination', 'block_migration', 'disk_over_commit',
        'migration', 'compute_rpcapi', 'servicegroup_api', 'query_client', 'report_client',
        'request_spec'),
    f'{_TASK}._call_livem_checks_on_host': ('self', 'destination', 'provider_mapping'),
    f'{_TASK}._check_compatible_with_source_hypervisor': ('self', 'destination'),
    f'{_TASK}._check_destination_has_enough_memory': ('self',),
    f'{_TASK}._check_destination_is_not_source': ('self',),
    f'{_TASK}._check_host_is_up': ('self', 'host'),
    f'{_TASK}._check_instance_has_no_numa': ('self',),
    f'{_TASK}._check_instance_is_active': ('self',),
    f'{_TASK}._check_not_over_max_retries': ('self', 'attempted_hosts'),
    f'{_TASK}._check_requested_destination': ('self',),
    f'{_TASK}._find_destination': ('self',),
    f'{_TASK}._remove_host_allocations': ('self', 'compute_node_uuid'),
    f'{_TASK}.rollback': ('self', 'ex'),
}


class AtomicLiveMigrationTask(live_migrate.LiveMigrationTask):
    """Nova's live migration task with other requests to placement: one request claims the
    allocations, and one request restores the former allocations. The class takes the arguments of
    Nova's task, and two more.

    :param placement: the client of placement
    :param registration: the record of the task in the control database while the task runs
    """

    destination: str
    query_client: SchedulerQueryClient

    def __init__(self, *args: Any, placement: PlacementClient, registration: Registration,
                 **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._placement = placement
        self._registration = registration
        self._claim: AllocationClaim | None = None
        self._refusals: list[str] = []
        self._outage: Exception | None = None

    def execute(self) -> Any:
        """Execute Nova's task, and record when the migration begins and why it fails.

        :raises MigrationPreCheckError: the task failed before the request was sent to the source.
            After an outage, ``code`` is :data:`outages.CODE`. After an error for which Nova would
            set the instance to ERROR, ``code`` is 500
        """
        try:
            self._registration.begin(self.migration.uuid)
            return super().execute()
        except Exception as error:
            known = self._as_nova_knows(error)
            self._registration.fail(known)
            if known is error:
                raise
            raise known from error

    def _as_nova_knows(self, error: Exception) -> Exception:
        # Once the source may have the request, the ERROR state keeps others from moving the
        # instance.
        if self._registration.is_handed_over:
            return error
        is_outage = outages.is_outage(error)
        if is_outage:
            self._registration.note_outage()
        elif isinstance(error, REFUSALS):
            return error
        else:
            LOG.warning('Live migration %s failed before the request reached the source host: %s: '
                        '%s', self.migration.uuid, error.__class__.__name__, error,
                        instance=self.instance)
        return nova_exception.MigrationPreCheckError(
            reason=first_line(error), code=outages.CODE if is_outage else 500)

    def _execute(self) -> Any:
        self._check_instance_is_active()
        self._check_instance_has_no_numa()
        self._check_host_is_up(self.source)
        self._source_cn = objects.ComputeNode.get_by_host_and_nodename(
            self.context, self.source, self.instance.node)
        self._claim = AllocationClaim(self._placement, self.instance, self.migration,
                                      self._source_cn)
        if self.destination:
            dest_node = self._claim_forced_destination(self._claim)
        else:
            self.query_client = ClaimingScheduler(self.query_client, self._claim, self)
            self.destination, dest_node, self.limits = self._find_destination()
        self._record_destination(dest_node)
        self._registration.hand_over()
        return self.compute_rpcapi.live_migration(
            self.context, host=self.source, instance=self.instance, dest=self.destination,
            block_migration=self.block_migration, migration=self.migration,
            migrate_data=self.migrate_data)

    def rollback(self, ex: Exception) -> None:
        """Restore the allocations on the source. An error of placement is only logged, because Nova
        has to report the error that caused the rollback. The reconciler, a periodic task of
        nova-conductor, then restores the allocations later.

        The allocations are not changed if the request to the source may have arrived: the guest may
        then be moving, and needs its allocations at the destination.
        """
        if self._registration.is_handed_over:
            LOG.warning('Host %s did not confirm the request for live migration %s, and may have '
                        'begun the migration. The allocations of the migration are kept until the '
                        'outcome is known.', self.source, self.migration.uuid)
            return
        try:
            if self._claim is not None:
                self._claim.release(lambda: reverts.is_gone(self.context, self.instance),
                                    reverts.root_of(self.context, self.instance))
        except exception.PlacementError as error:
            reverts.log_unreturned(self.migration, self.instance, error)

    def _call_livem_checks_on_host(self, destination: str,
                                   provider_mapping: Mapping[str, list[str]]) -> None:
        """Check a destination by Nova's method. If the check fails, note the reason, and whether it
        was an outage. :meth:`_find_destination` reports both if no host is valid.

        :raises MigrationPreCheckError: raised in place of an error that Nova does not expect, and
            that would end Nova's search for a destination. After MigrationPreCheckError, Nova tries
            the next host
        """
        try:
            super()._call_livem_checks_on_host(destination, provider_mapping)
        except nova_exception.NovaException as error:
            self._refusals.append(f'{destination}: {first_line(error)}')
            if outages.is_outage(error):
                self._outage = error
                raise
            if isinstance(error, (nova_exception.Invalid, *REFUSALS)):
                raise
            raise nova_exception.MigrationPreCheckError(reason=first_line(error)) from error

    def _get_request_spec_for_select_destinations(self,
                                                  attempted_hosts: list[str] | None = None
                                                  ) -> RequestSpec:
        """Return Nova's request, with the present flavor of the instance."""
        candidates.with_flavor_of(self.instance, self.request_spec)
        return super()._get_request_spec_for_select_destinations(attempted_hosts)

    def _find_destination(self) -> tuple[str, str, Any]:
        """Call Nova's search for a destination. If no host is valid, raise an error with the
        reasons.

        :raises NoValidHost: no host accepts the instance. The message says why each host that the
            scheduler chose refused the instance. Nova itself logs these reasons only at the debug
            level. If a host was left out because of an outage, such as a destination that did not
            answer, the outage is the cause of the error
        """
        try:
            return super()._find_destination()
        except nova_exception.NoValidHost as error:
            if not self._refusals:
                raise
            raise nova_exception.NoValidHost(
                reason='; '.join(self._refusals)) from (self._outage or error)

    def _claim_forced_destination(self, claim: AllocationClaim) -> str:
        self._check_destination_is_not_source()
        self._check_host_is_up(self.destination)
        self._check_destination_has_enough_memory()
        _source, node = self._check_compatible_with_source_hypervisor(self.destination)
        try:
            claim.copy_to(node)
        except errors.InsufficientInventory as error:
            # The text is Nova's own, because operators search for it.
            raise nova_exception.NoValidHost(
                reason=f'Unable to move instance {self.instance.uuid} to host {self.destination}. '
                       f'There is not enough capacity on the host for the instance. {error}'
            ) from error
        self._check_requested_destination()
        return node.hypervisor_hostname

    def _remove_host_allocations(self, compute_node_uuid: str) -> None:
        """Do nothing. The claim of the next host replaces the claim of this host. If there is no
        next host, :meth:`rollback` releases the claim."""

    def _record_destination(self, dest_node: str) -> None:
        self.instance.availability_zone = availability_zones.get_host_availability_zone(
            self.context, self.destination)
        self.migration.source_node = self.instance.node
        self.migration.dest_node = dest_node
        self.migration.dest_compute = self.destination
        self.migration.save()
