"""Live migration whose allocations change hands in one transaction.

Nova's own task moves the source's allocations to the migration, has the scheduler claim the
destination for the instance, and undoes both one after the other when something fails. In between
placement promises what is not there, and a process that dies there leaves it so. Here the scheduler
only chooses, and one ``POST /allocations`` does the rest.
"""

from nova import availability_zones
from nova import exception as nova_exception
from nova import objects
from nova.conductor.tasks import live_migrate
from oslo_log import log as logging
from oslo_serialization import jsonutils

from kronos_nova import exception
from kronos_nova.placement import errors
from kronos_nova.placement import moves
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import off
from kronos_nova.placement.allocations import on
from kronos_nova.placement.client import PlacementClient
from kronos_nova.plugin import candidates
from kronos_nova.plugin import outages
from kronos_nova.plugin import reverts
from kronos_nova.plugin.registration import Registration

LOG = logging.getLogger(__name__)

# The more providers a host has, the more ways an instance fits on it. One that was free a moment
# ago and is taken now is rare; more than a few in a row means that the host is full.
CANDIDATES_TO_TRY = 5

_TASK = 'nova.conductor.tasks.live_migrate:LiveMigrationTask'

# What the task calls of Nova's, or overrides.
EXPECTED = {
    f'{_TASK}.__init__': (
        'self', 'context', 'instance', 'destination', 'block_migration', 'disk_over_commit',
        'migration', 'compute_rpcapi', 'servicegroup_api', 'query_client', 'report_client',
        'request_spec'),
    f'{_TASK}._check_compatible_with_source_hypervisor': ('self', 'destination'),
    f'{_TASK}._check_destination_has_enough_memory': ('self',),
    f'{_TASK}._check_destination_is_not_source': ('self',),
    f'{_TASK}._check_host_is_up': ('self', 'host'),
    f'{_TASK}._check_instance_has_no_numa': ('self',),
    f'{_TASK}._check_instance_is_active': ('self',),
    f'{_TASK}._check_requested_destination': ('self',),
    f'{_TASK}._find_destination': ('self',),
    f'{_TASK}._remove_host_allocations': ('self', 'compute_node_uuid'),
    f'{_TASK}.rollback': ('self', 'ex'),
}


class AtomicLiveMigrationTask(live_migrate.LiveMigrationTask):
    """Nova's task with the allocations split, redirected and restored by one request each.

    Takes the same arguments as Nova's, and ``placement`` and the ``registration`` in which it is
    written down while it is under way.
    """

    def __init__(self, *args, placement: PlacementClient, registration: Registration, **kwargs):
        super().__init__(*args, **kwargs)
        self._placement = placement
        self._registration = registration
        self._may_be_told = False
        self._claim = None

    def execute(self):
        """:raises MigrationPreCheckError: placement refused, or something that is needed did not
        answer (``code`` is then :data:`outages.CODE`). Nova leaves an instance as it was after this
        one; it would put it into ERROR for anything that it does not know.
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

    def _as_nova_knows(self, error):
        is_outage = outages.is_outage(error)
        # Once the source may have been told, ERROR keeps others from moving it meanwhile.
        if self._may_be_told or not (is_outage or isinstance(error, exception.PlacementError)):
            return error
        if is_outage:
            self._registration.note_outage()
        return nova_exception.MigrationPreCheckError(
            reason=str(error), code=outages.CODE if is_outage else 500)

    def _execute(self):
        self._check_instance_is_active()
        self._check_instance_has_no_numa()
        self._check_host_is_up(self.source)
        self._source_cn = objects.ComputeNode.get_by_host_and_nodename(
            self.context, self.source, self.instance.node)
        self._claim = AllocationClaim(self._placement, self.instance, self.migration,
                                      self._source_cn.uuid)
        if self.destination:
            dest_node = self._claim_forced_destination()
        else:
            self.query_client = ClaimingScheduler(self.query_client, self._claim,
                                                  self._check_host_is_up)
            self.destination, dest_node, self.limits = self._find_destination()
        self._record_destination(dest_node)
        self._registration.hand_over()
        self._may_be_told = True
        return self.compute_rpcapi.live_migration(
            self.context, host=self.source, instance=self.instance, dest=self.destination,
            block_migration=self.block_migration, migration=self.migration,
            migrate_data=self.migrate_data)

    def rollback(self, ex):
        """Give the source's allocations back. What fails here is left to the reconciler: the error
        that brought us here is the one to report.

        So is a request to the source that broke off: if it arrived the guest moves, and giving back
        what it needs at the destination would be wrong.
        """
        if self._may_be_told:
            LOG.warning('It is not known whether %s was told of live migration %s; its allocations '
                        'are left as they are until that shows.', self.source, self.migration.uuid)
            return
        try:
            if self._claim is not None:
                self._claim.release(lambda: reverts.is_gone(self.context, self.instance))
        except exception.PlacementError:
            LOG.exception('The allocations of migration %s could not be given back to its instance '
                          'yet.', self.migration.uuid, instance=self.instance)

    def _claim_forced_destination(self):
        self._check_destination_is_not_source()
        self._check_host_is_up(self.destination)
        self._check_destination_has_enough_memory()
        _source, node = self._check_compatible_with_source_hypervisor(self.destination)
        try:
            self._claim.copy_to(node.uuid)
        except errors.InsufficientInventory as error:
            raise nova_exception.NoValidHost(
                reason=f'{self.destination} has no room for instance {self.instance.uuid}: {error}'
            ) from error
        self._check_requested_destination()
        return node.hypervisor_hostname

    def _remove_host_allocations(self, compute_node_uuid):
        """Nothing: the claim of the next host replaces this one's, or :meth:`rollback` ends it."""

    def _record_destination(self, dest_node):
        self.instance.availability_zone = availability_zones.get_host_availability_zone(
            self.context, self.destination)
        self.migration.source_node = self.instance.node
        self.migration.dest_node = dest_node
        self.migration.dest_compute = self.destination
        self.migration.save()


class AllocationClaim:
    """What this migration has claimed so far, and how to claim more or to give it back."""

    def __init__(self, placement: PlacementClient, instance, migration, source: str):
        self._placement = placement
        self._instance = instance
        self._migration = migration
        self._source = source
        self._source_tree = placement.tree(source)
        self._before = placement.consumer(instance.uuid).allocations
        self._parties = None

    def shared_with(self, destination: str) -> Allocations:
        """What the instance holds on sharing providers that ``destination`` reaches too."""
        elsewhere = off(self._before, self._source_tree)
        return on(elsewhere, moves.shared(self._placement, elsewhere, destination))

    def candidates(self, spec, destination: str) -> list[dict]:
        """How the instance of ``spec`` may lie on ``destination``: allocation requests."""
        return candidates.on_host(self._placement, spec, destination, self.shared_with(destination))

    def probe(self) -> None:
        """:raises PlacementError: placement does not answer"""
        self._placement.tree(self._source)

    def take(self, destination: str, allocations: Allocations) -> None:
        """:raises PlacementError: see :func:`kronos_nova.placement.moves.start`"""
        parties = moves.Parties(
            instance=self._instance.uuid, migration=self._migration.uuid, source=self._source,
            destination=destination, project_id=self._instance.project_id,
            user_id=self._instance.user_id)
        try:
            moves.start(self._placement, parties, allocations)
        except errors.InsufficientInventory:
            raise
        except exception.PlacementError:
            self._parties = parties
            raise
        self._parties = parties

    def copy_to(self, destination: str) -> None:
        """Take on ``destination`` what the instance held on the source, as a forced move does.

        :raises NoValidHost: it lies on more than the root provider; the scheduler has to choose
        """
        local = off(self._before, self.shared_with(destination))
        nested = off(on(local, self._source_tree), {self._source})
        if nested or not local:
            raise nova_exception.NoValidHost(
                reason=f'instance {self._instance.uuid} holds allocations that cannot be copied to '
                       f'another host; ask again without force')
        amounts = {}
        for held in local.values():
            for name, amount in held.items():
                amounts[name] = amounts.get(name, 0) + amount
        self.take(destination, {destination: amounts})

    def release(self, is_gone) -> None:
        """Undo :meth:`take`; nothing if it never got as far as changing anything.

        :raises PlacementError: see :func:`kronos_nova.placement.moves.revert`
        """
        if self._parties is not None:
            held_source = bool(on(self._before, self._source_tree))
            moves.revert(self._placement, self._parties, is_gone,
                         before=None if held_source else self._before)


class ClaimingScheduler:
    """In the place of the scheduler's client: it chooses by a dry run, then we claim.

    Nova's loop over destinations (skip a host that fails the live checks, try the next) goes on
    unchanged above it.

    :param check_host_is_up: raises ComputeServiceUnavailable where the nova-compute of a host does
        not report
    """

    def __init__(self, query_client, claim: AllocationClaim, check_host_is_up):
        self._query_client = query_client
        self._claim = claim
        self._check_host_is_up = check_host_is_up

    def select_destinations(self, context, spec, instance_uuids, **_kwargs):
        """:raises NoValidHost: the scheduler refuses, or every host it names has no room left
        :raises ComputeServiceUnavailable: the host that was asked for does not report
        """
        [uuid] = instance_uuids
        spec = spec.obj_clone()
        # The number that was booted together, once.
        spec.num_instances = 1
        spec = self._without_shared(context, spec)
        while True:
            selection = self._select(context, spec)
            request = self._take(spec, selection.compute_node_uuid)
            if request is not None:
                selection.allocation_request = jsonutils.dumps(request)
                return [[selection]]
            reason = f'host {selection.service_host} has no room left for instance {uuid}'
            if _target_of(spec):
                raise nova_exception.NoValidHost(reason=reason)
            LOG.info('Live migration: %s; the next one is tried.', reason)
            spec.ignore_hosts = [*(spec.ignore_hosts or ()), selection.service_host]

    def _select(self, context, spec):
        self._check_target_is_up(spec)
        try:
            return self._query_client.select_destinations(
                context, spec, None, return_objects=True)[0][0]
        except nova_exception.NoValidHost:
            # Also what it says where placement or the nova-compute of the host is silent.
            self._claim.probe()
            self._check_target_is_up(spec)
            raise

    def _check_target_is_up(self, spec):
        target = _target_of(spec)
        if target:
            self._check_host_is_up(target)

    def _take(self, spec, destination: str):
        """The allocation request that was claimed, None if there is no room."""
        for request in self._claim.candidates(spec, destination)[:CANDIDATES_TO_TRY]:
            try:
                self._claim.take(destination, {
                    uuid: held['resources'] for uuid, held in request['allocations'].items()})
            except errors.InsufficientInventory:
                continue
            return request
        return None

    def _without_shared(self, context, spec):
        """A named destination is asked of placement by ``in_tree``, which leaves sharing providers
        out: what the instance keeps there must not be asked for."""
        target = _target_of(spec)
        if target is None:
            return spec
        nodes = objects.ComputeNodeList.get_all_by_host(context, target)
        return candidates.without_resources(spec, self._claim.shared_with(nodes[0].uuid))


def _target_of(spec):
    """The host that was asked for, None where the scheduler is to choose."""
    target = spec.requested_destination
    return target.host if target and 'host' in target and target.host else None
