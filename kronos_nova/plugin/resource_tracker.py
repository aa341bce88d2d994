"""Nova's resource tracker, extended to store the counted usage as claims.

Nova changes the usage of a node in three methods: for an instance, for a migration, and when the
claim of a move is dropped. The overrides here call Nova's methods and store the usage that Nova
counted. All code here that uses the claims runs under Nova's own lock.
"""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import nova.conf
from nova import exception as nova_exc
from nova import objects
from nova import utils
from nova.compute import resource_tracker
from nova.compute import vm_states
from nova.objects import fields
from oslo_config import cfg
from oslo_log import log as logging
from oslo_serialization import jsonutils
from oslo_utils import excutils

from kronos_nova import boundary
from kronos_nova.claims import ledger as ledgers
from kronos_nova.claims import node_claims
from kronos_nova.claims.base import ClaimStore
from kronos_nova.claims.ledger import Ledger
from kronos_nova.claims.node_claims import Key
from kronos_nova.claims.node_claims import NodeClaims
from kronos_nova.objects import migration_status
from kronos_nova.objects.claim import CLAIMED
from kronos_nova.objects.claim import PREPARED
from kronos_nova.objects.claim import Amount
from kronos_nova.objects.claim import Claim
from kronos_nova.plugin import claim_usage
from kronos_nova.plugin import reserved_resources
from kronos_nova.plugin import reverts
from kronos_nova.plugin.fixes import confirmation_retry
from kronos_nova.plugin.nova_types import ComputeDriver
from kronos_nova.plugin.nova_types import ComputeNode
from kronos_nova.plugin.nova_types import Flavor
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import SchedulerReportClient

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# Key in the ``stats`` of a ComputeNode: the nova-compute that saved them kept claims. A
# nova-compute without Kronos makes the stats again without this key.
MARK = 'kronos_claims'

MOST_MOVES = 10
"""Maximum number of moving instances whose reserved resources nova-compute checks one by one when
it starts. If there are more moving instances, nova-compute leaves these checks out and counts the
resources of all instances, as Nova does. Raised, a start may make more calls to nova-conductor;
lowered, the count of all instances, which takes a handful of calls, is made more often. Chosen so
that the checks cost about as much as the count."""

synchronized = utils.synchronized(resource_tracker.COMPUTE_RESOURCE_SEMAPHORE, fair=True)


class KronosResourceTracker(resource_tracker.ResourceTracker):
    """Nova's resource tracker, with claims that survive a restart.

    :param ledger: kronos_nova.claims.ledger.Ledger of this host
    :param expiry: timedelta after which a claim without an instance or a migration is released
    """

    def __init__(self, host: str, driver: ComputeDriver, reportclient: SchedulerReportClient,
                 ledger: Ledger, expiry: datetime.timedelta):
        super().__init__(host, driver, reportclient=reportclient)
        self.ledger = ledger
        self.expiry = expiry
        self.gone_before_start: set[str] = set()
        self._is_trusted: bool | None = None
        self._counted: Mapping[str, Any] | None = None
        self._recorded: dict[str, tuple[int | None, ...]] = {}
        # keys of claims of the last process that no audit has checked
        self._unaudited: set[Key] = set()

    # The usage that Nova's tracker counts

    def _update_usage(self, usage: Mapping[str, Any], nodename: str, sign: int = 1) -> None:
        super()._update_usage(usage, nodename, sign=sign)
        self._counted = usage

    def _watched(self, call: Callable[..., object], *args: Any,
                 **kwargs: Any) -> Mapping[str, Any] | None:
        """Call a method of Nova, and return the usage that Nova added or removed during the call.
        Return None if Nova changed no usage."""
        self._counted = None
        call(*args, **kwargs)
        return self._counted

    def _update_usage_from_instance(self, context: RequestContext, instance: Instance,
                                    nodename: str, is_removed: bool = False) -> None:
        claims, uuid = self.ledger.node_claims(nodename), instance['uuid']
        self._hand_over(claims, uuid, leaves=is_removed or vm_states.allow_resource_removal(
            vm_state=instance['vm_state'], task_state=instance.task_state))
        usage = self._watched(super()._update_usage_from_instance, context, instance, nodename,
                              is_removed=is_removed)
        if uuid not in self.tracked_instances:
            claims.forget_instance(uuid)
        elif usage is not None:
            claims.track_instance(uuid, claim_usage.to_amount(
                usage, claim_usage.devices_of(self.pci_tracker, uuid)))
        else:
            return
        self._save(claims, uuid)

    def _update_usage_from_migration(self, context: RequestContext, instance: Instance,
                                     migration: Migration, nodename: str) -> None:
        claims, uuid = self.ledger.node_claims(nodename), migration.instance_uuid
        self._hand_over(claims, uuid)
        usage = self._watched(super()._update_usage_from_migration, context, instance, migration,
                              nodename)
        if usage is not None:
            is_old = claim_usage.is_way_back(migration, instance, self.host, nodename)
            devices = self._get_migration_context_resource(
                'pci_devices', instance, prefix='old_' if is_old else 'new_')
            claims.track_move(uuid, node_claims.MoveClaim(
                claim_usage.to_amount(usage, devices or ()), is_old, migration.uuid))
        self._save(claims, uuid)

    def _drop_move_claim(self, context: RequestContext, instance: Instance, nodename: str,
                         flavor: Flavor | None = None, prefix: str = 'new_') -> None:
        claims, uuid = self.ledger.node_claims(nodename), instance['uuid']
        usage = self._watched(super()._drop_move_claim, context, instance, nodename, flavor=flavor,
                              prefix=prefix)
        dropped = claims.drop_move(uuid, is_old=prefix == 'old_')
        if usage is None and dropped is not None:
            # Nova does not release the usage of a migration that it no longer tracks.
            self._count(dropped, nodename, sign=-1)
            self._update(context.elevated(), self.compute_nodes[nodename])
        self._save(claims, uuid)

    def _hand_over(self, claims: NodeClaims, uuid: str, leaves: bool = False) -> None:
        """Remove the untracked claims of an instance, just before Nova adds or subtracts the usage
        of the instance. Untracked claims are those that Nova's tracker does not know.

        The usage of these claims is subtracted first. Otherwise, the usage that Nova adds for the
        instance would be counted twice. If Nova is about to subtract the usage of the instance, one
        of the claims becomes a tracked claim. The usage of this claim is not subtracted here,
        because Nova subtracts it.

        :param leaves: whether the instance leaves this host, so that Nova is about to subtract its
            usage
        """
        untracked = claims.untracked_for(uuid)
        for claim in untracked:
            del claims.untracked[claim.key]
        is_tracked = uuid in self.tracked_instances
        if untracked and (not claims.knows(uuid) if is_tracked else leaves):
            # Nova releases this usage itself.
            self.tracked_instances.add(uuid)
            claims.track_instance(uuid, untracked.pop().amount)
        for claim in untracked:
            self._count(claim.amount, claims.node, sign=-1)

    def _count(self, amount: Amount, nodename: str, sign: int = 1) -> None:
        self._update_usage(claim_usage.to_usage(amount), nodename, sign=sign)

    def _save(self, claims: NodeClaims, uuid: str) -> dict[Key, Claim] | None:
        return None if claims.is_audited else self.ledger.save(claims.node, uuid)

    def update_usage(self, context: RequestContext, instance: Instance, nodename: str) -> None:
        super().update_usage(context, instance, nodename)
        if self._is_trusted is None and vm_states.allow_resource_removal(
                vm_state=instance['vm_state'], task_state=instance.task_state):
            # Remembered, because Nova ends interrupted deletions before it knows its nodes.
            self.gone_before_start.add(instance['uuid'])

    def remove_node(self, nodename: str) -> None:
        super().remove_node(nodename)
        self.ledger.forget_node(nodename)

    # Nova's periodic audit

    def _update_available_resource(self, context: RequestContext, resources: dict[str, Any],
                                   startup: bool = False) -> None:
        if startup and self._start_from_claims(context, resources):
            return
        try:
            super()._update_available_resource(context, resources, startup=startup)
        except Exception:
            with excutils.save_and_reraise_exception():
                self._resume(resources['hypervisor_hostname'])

    @synchronized
    def _resume(self, nodename: str) -> None:
        """Keep the untracked claims that were known before an audit, after this audit has failed.
        Untracked claims are those that Nova's tracker does not know."""
        claims = self.ledger.node_claims(nodename)
        if claims.is_audited:
            self._settle(claims, list(claims.waiting.values()))

    def _update_usage_from_instances(self, context: RequestContext, instances: Iterable[Instance],
                                     nodename: str) -> Any:
        self.ledger.node_claims(nodename).begin_audit()
        return super()._update_usage_from_instances(context, instances, nodename)

    def _update_usage_from_migrations(self, context: RequestContext,
                                      migrations: Iterable[Migration], nodename: str) -> None:
        super()._update_usage_from_migrations(context, migrations, nodename)
        self.ledger.refresh()
        claims = self.ledger.node_claims(nodename)
        self._unaudited -= {key for key in self._unaudited if key[0] == nodename}
        self._settle(claims, [claim for claim in self._forgotten(claims)
                            if self._stays(context, claim, migrations)])
        self.ledger.save(nodename)

    def _settle(self, claims: NodeClaims, untracked: Iterable[Claim]) -> None:
        untracked = [self._countable(claim) for claim in untracked]
        for claim in untracked:
            self._count(claim.amount, claims.node)
        claims.end_audit(untracked)

    def _countable(self, claim: Claim) -> Claim:
        """Return the claim; without its NUMA topology if the topology does not fit this node. The
        topology may be from another version of Nova, or the NUMA cells of the host may have changed
        since the claim was made."""
        try:
            claim_usage.check_cells(self.compute_nodes[claim.node], claim.amount)
        except Exception as error:  # Nova's objects have no error of their own for a wrong content
            LOG.warning('Instance %s: the NUMA topology of its claim on node %s does not fit the '
                        'node (%s). The claim counts for vCPUs, memory and disk, but not for NUMA '
                        'cells.',
                        claim.instance_uuid, claim.node, boundary.shown(error))
            return dataclasses.replace(
                claim, amount=dataclasses.replace(claim.amount, numa_topology=None))
        return claim

    def _forgotten(self, claims: NodeClaims) -> list[Claim]:
        """Return the claims for which Nova's audit of this host found neither an instance nor a
        migration.

        A claim that was stored and is no longer in the store is left out, because an operator has
        removed it. A claim with a negative id was never in the store, so it is returned.
        """
        rows = {claim.key: claim for claim in self.ledger.rows(claims.node)}
        unsaved = {key: claim for key, claim in claims.waiting.items()
                   if claim.id is None or claim.id < 0 or not self.ledger.is_saved}
        return [claim for claim in {**unsaved, **rows}.values()
                if not claims.knows(claim.instance_uuid)]

    def _stays(self, context: RequestContext, claim: Claim,
               migrations: Iterable[Migration]) -> bool:
        if any(_is_on_its_way(migration) for migration in migrations
               if migration.instance_uuid == claim.instance_uuid):
            return True
        if self._is_expired(claim):
            LOG.warning('Released the claim of instance %s on node %s, which was made at %s (there '
                        'is neither an instance nor a migration for it).', claim.instance_uuid,
                        claim.node, claim.created_at.isoformat(timespec='seconds'))
            ledgers.ORPHANS.inc()
            return False
        return self._is_awaited(context, claim)

    def _is_expired(self, claim: Claim) -> bool:
        return self.ledger.is_expired(claim, self.expiry)

    def _is_awaited(self, context: RequestContext, claim: Claim) -> bool:
        """Return whether the instance of a claim may still need the claim. It needs no claim if it
        is deleted, or if it is on another host and no move to this host is prepared. If Nova does
        not know the instance, the result is True."""
        try:
            instance = objects.Instance.get_by_uuid(
                context.elevated(read_deleted='yes'), claim.instance_uuid, expected_attrs=[])
        except nova_exc.InstanceNotFound:
            return True
        is_here = (instance.host, instance.node) == (claim.host, claim.node)
        return not instance.deleted and (
            claim.state == PREPARED or instance.host is None or is_here)

    @synchronized
    def release_orphans(self, context: RequestContext) -> None:
        """Release expired claims that belong to no instance and no migration, without waiting for
        Nova's next audit."""
        for nodename in list(self.compute_nodes):
            claims = self.ledger.node_claims(nodename)
            expired = [claim for claim in claims.untracked.values()
                       if claim.key not in self._unaudited and self._is_expired(claim)]
            if not expired:
                continue
            migrations = objects.MigrationList.get_in_progress_and_error(
                context, self.host, nodename)
            for claim in expired:
                if not self._stays(context, claim, migrations):
                    self.release(context, claim)

    def hold(self, context: RequestContext, claim: Claim) -> None:
        """Add a claim that Nova does not know, and count its usage. The caller holds Nova's
        lock."""
        self.ledger.node_claims(claim.node).add_untracked(claim)
        self._count(claim.amount, claim.node)
        self.ledger.save(claim.node, claim.instance_uuid)
        self._update(context.elevated(), self.compute_nodes[claim.node])

    def release(self, context: RequestContext, claim: Claim) -> None:
        del self.ledger.node_claims(claim.node).untracked[claim.key]
        self._count(claim.amount, claim.node, sign=-1)
        self.ledger.save(claim.node, claim.instance_uuid)
        self._update(context.elevated(), self.compute_nodes[claim.node])

    def amount_for(self, instance: Instance) -> Amount:
        """Return the Amount that Nova will count for an instance, without NUMA cells and
        devices."""
        usage = self._get_usage_dict(instance.flavor, instance, numa_topology=None)
        return claim_usage.to_amount(usage, ())

    # The saved ComputeNode

    def _copy_resources(self, compute_node: ComputeNode, resources: Mapping[str, Any],
                        initial: bool = False) -> None:
        super()._copy_resources(compute_node, resources, initial=initial)
        stats = self.stats[resources['hypervisor_hostname']]
        reverts.mark(stats)
        confirmation_retry.mark(stats)
        reserved_resources.mark(stats)
        stats[MARK] = '1'
        compute_node.stats = stats

    # The start of nova-compute

    def _get_compute_node(self, context: RequestContext, node_uuid: str) -> ComputeNode | None:
        node = super()._get_compute_node(context, node_uuid)
        if node is not None and MARK in (node.stats or {}):
            self._recorded[node.hypervisor_hostname] = claim_usage.used(node)
        return node

    def _start_from_claims(self, context: RequestContext, resources: dict[str, Any]) -> bool:
        """Compute the usage of a node from its claims, if that is possible.

        After any error, Nova's own audit of the node runs instead, as it does without Kronos. If
        the error has nothing to do with the claims, the audit will raise it again.

        :returns: True if the node is ready; False if Nova's own audit has to run
        """
        try:
            return self._restore_node(context, resources)
        except Exception as error:
            LOG.exception('Node %s: the usage could not be computed from the claims (%s). Nova\'s '
                          'own audit computes it from instances and migrations instead.',
                          resources['hypervisor_hostname'], boundary.shown(error))
            return False

    @synchronized
    def _restore_node(self, context: RequestContext, resources: dict[str, Any]) -> bool:
        """Compute the usage of a node from its claims. Migrations and details of instances are not
        read.

        Three conditions have to be met: the stored claims are complete; the claims are those of the
        instances that are on the node now; and the claims add up to the usage that the node last
        reported. Should the usage have changed since this report, Nova's first periodic audit
        corrects it.

        :returns: True if the claims were used; False if Nova's own audit has to run
        """
        if self._is_trusted is None:
            self._is_trusted = self.ledger.open()
        nodename = resources['hypervisor_hostname']
        rows = self.ledger.rows(nodename)
        if (not self._is_trusted or self._needs_migrations(rows) or
                self._init_compute_node(context, resources) or
                any(claim.instance_uuid in self.gone_before_start for claim in rows)):
            return False
        if self.disabled(nodename):
            return True
        here = self._instances_of(context, nodename)
        if not self._are_current(context, rows, here):
            LOG.info('Node %s: the claims do not match its instances. Nova\'s own audit computes '
                     'the usage from instances and migrations instead.', nodename)
            return False
        self._restore(context, nodename, rows, here)
        node = self.compute_nodes[nodename]
        if claim_usage.used(node) != self._recorded.get(nodename):
            LOG.info('Node %s: the claims do not add up to the usage that the node last reported. '
                     'Nova\'s own audit computes the usage from instances and migrations instead.',
                     nodename)
            return False
        node.metrics = jsonutils.dumps(self._get_host_metrics(context, nodename))
        self._update(context, node, startup=True)
        return not claim_usage.has_assigned_resources(self.provider_tree)

    @staticmethod
    def _needs_migrations(rows: Iterable[Claim]) -> bool:
        """Return True if Nova needs the migrations of the node for its report to placement. Nova
        needs them if PCI devices are in placement and the node has a claim for a move.

        The report corrects the allocations of PCI devices in placement. If a resize waits to be
        confirmed, some devices belong to the instance and some to the migration. Only the record of
        the migration tells them apart.
        """
        return CONF.pci.report_in_placement and not all(_is_home(claim) for claim in rows)

    def _instances_of(self, context: RequestContext, nodename: str) -> dict[str, Instance]:
        """Return ``{uuid: Instance}`` of the instances that Nova counts on a node, read without
        joined tables."""
        instances = objects.InstanceList.get_by_host(context, self.host, expected_attrs=[])
        return {instance.uuid: instance for instance in instances
                if instance.node == nodename and not vm_states.allow_resource_removal(
                    vm_state=instance.vm_state, task_state=instance.task_state)}

    def _are_current(self, context: RequestContext, rows: Collection[Claim],
                     here: Mapping[str, Instance]) -> bool:
        """Return True if the claims are those that Nova would count. Four conditions have to be
        met:

        * Each instance on the node has a claim.
        * Each claim in the state CLAIMED whose instance is on another node belongs to an instance
          that may be in a move (:meth:`_is_moving`). There are at most :data:`MOST_MOVES` of these
          claims.
        * Each PCI device in use belongs to an instance with a claim.
        * No PCI device has the status CLAIMED, because only Nova's audit allocates such devices.
        """
        uuids = {claim.instance_uuid for claim in rows}
        elsewhere = [claim for claim in rows
                     if claim.instance_uuid not in here and claim.state == CLAIMED]
        devices = self.pci_tracker.pci_devs if self.pci_tracker else ()
        return ({claim.instance_uuid for claim in rows if claim.state == CLAIMED} >= set(here) and
                {device.instance_uuid for device in devices} <= uuids | {None} and
                # Only Nova's audit allocates these devices.
                not any(device.status == fields.PciDeviceStatus.CLAIMED for device in devices) and
                len(elsewhere) <= MOST_MOVES and
                all(self._is_moving(context, claim) for claim in elsewhere))

    def _is_moving(self, context: RequestContext, claim: Claim) -> bool:
        """Return True if the instance of a claim may be in a move: it has a task_state, or a resize
        that waits to be confirmed. Called for instances on other nodes. Nova counts the resources
        of such an instance on this node only during a move."""
        try:
            instance = objects.Instance.get_by_uuid(context, claim.instance_uuid, expected_attrs=[])
        except nova_exc.InstanceNotFound:
            return False
        return instance.task_state is not None or instance.vm_state == vm_states.RESIZED

    def _restore(self, context: RequestContext, nodename: str, rows: Collection[Claim],
                 here: Mapping[str, Instance]) -> None:
        self._update_usage_from_instances(context, [], nodename)
        claims, stats = self.ledger.node_claims(nodename), self.stats[nodename]
        homes = [claim for claim in rows if _is_home(claim) and claim.instance_uuid in here]
        for claim in homes:
            self._count(claim.amount, nodename)
            claims.track_instance(claim.instance_uuid, claim.amount)
        keys = {claim.key for claim in homes}
        self._settle(claims, [claim for claim in rows if claim.key not in keys])
        self._unaudited.update(key for key, claim in claims.untracked.items()
                               if claim.state == CLAIMED)
        self.tracked_instances.update(here)
        for instance in here.values():
            stats.update_stats_for_instance(instance)
        node = self.compute_nodes[nodename]
        node.running_vms = stats.num_instances
        node.current_workload = stats.calculate_workload()
        # The ComputeNode has a copy of the stats.
        node.stats = stats


def _is_home(claim: Claim) -> bool:
    return not claim.resize_target and claim.state == CLAIMED


def _is_on_its_way(migration: Migration) -> bool:
    try:
        # Nova's list of migrations in progress includes some that have ended.
        has_ended = migration.status in migration_status.ENDED
        return not has_ended and migration.instance.task_state is not None
    except nova_exc.InstanceNotFound:
        return False


def build(conf: cfg.ConfigOpts, host: str, driver: ComputeDriver,
          reportclient: SchedulerReportClient, store: ClaimStore) -> KronosResourceTracker:
    """Create the KronosResourceTracker of a compute host from the configuration.

    :raises KronosException: the store cannot be used at all
    """
    expiry = datetime.timedelta(seconds=conf.kronos_claims.claim_expiry_time)
    return KronosResourceTracker(host, driver, reportclient, ledgers.Ledger(store, host), expiry)

