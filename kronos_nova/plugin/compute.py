"""The manager of nova-compute with Kronos. The claims of its host survive a restart."""

import functools
from collections.abc import Mapping
from typing import Any

import nova.conf
import prometheus_client
from nova import exception as nova_exception
from nova.compute import manager
from oslo_log import log as logging
from oslo_service import periodic_task

from kronos_nova.claims import base as stores
from kronos_nova.db.engine import first_line
from kronos_nova.plugin import claim_rpc
from kronos_nova.plugin import marks
from kronos_nova.plugin import outages
from kronos_nova.plugin import resource_tracker
from kronos_nova.plugin import reverts
from kronos_nova.plugin import two_phase
from kronos_nova.plugin.fixes import cold_migration_retry
from kronos_nova.plugin.fixes import confirmation_retry
from kronos_nova.plugin.fixes import image_credentials
from kronos_nova.plugin.fixes import interrupted_cold_migrations
from kronos_nova.plugin.fixes import interrupted_migrations
from kronos_nova.plugin.fixes import libvirt_connection
from kronos_nova.plugin.fixes import request_clock
from kronos_nova.plugin.fixes import status_retry
from kronos_nova.plugin.nova_types import ComputeNode
from kronos_nova.plugin.nova_types import Flavor
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import LiveMigrateData
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import RequestSpec
from kronos_nova.plugin.nova_types import Selection

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

ORPHANS_SPACING_SECONDS = 60
"""Seconds between two searches of a nova-compute for claims whose instances no longer exist. A
claim is the set of resources that a host reserves for an instance. Raised, the resources of a
deleted instance stay reserved for longer; lowered, nova-compute uses more processor time. Chosen as
the default spacing of Nova's periodic tasks."""

_TRACKER = 'nova.compute.resource_tracker:ResourceTracker'
_MANAGER = 'nova.compute.manager:ComputeManager'

# Methods of Nova that this part overrides or calls.
EXPECTED = {
    **cold_migration_retry.EXPECTED,
    **interrupted_cold_migrations.EXPECTED,
    **confirmation_retry.EXPECTED,
    **interrupted_migrations.EXPECTED,
    **image_credentials.EXPECTED,
    **libvirt_connection.EXPECTED,
    **reverts.EXPECTED,
    **status_retry.EXPECTED,
    f'{_MANAGER}.__init__': ('self', 'compute_driver', 'args', 'kwargs'),
    f'{_MANAGER}._destroy_evacuated_instances': ('self', 'context', 'node_cache'),
    f'{_MANAGER}.check_can_live_migrate_destination':
        ('self', 'ctxt', 'instance', 'block_migration', 'disk_over_commit', 'migration', 'limits'),
    f'{_MANAGER}.prep_resize':
        ('self', 'context', 'image', 'instance', 'flavor', 'request_spec', 'filter_properties',
         'node', 'clean_shutdown', 'migration', 'host_list'),
    f'{_TRACKER}.__init__': ('self', 'host', 'driver', 'reportclient'),
    f'{_TRACKER}._copy_resources': ('self', 'compute_node', 'resources', 'initial'),
    f'{_TRACKER}._drop_move_claim':
        ('self', 'context', 'instance', 'nodename', 'flavor', 'prefix'),
    f'{_TRACKER}._get_compute_node': ('self', 'context', 'node_uuid'),
    f'{_TRACKER}._get_host_metrics': ('self', 'context', 'nodename'),
    f'{_TRACKER}._get_migration_context_resource': ('self', 'resource', 'instance', 'prefix'),
    f'{_TRACKER}._get_usage_dict': ('self', 'object_or_dict', 'instance', 'updates'),
    f'{_TRACKER}._init_compute_node': ('self', 'context', 'resources'),
    f'{_TRACKER}._update': ('self', 'context', 'compute_node', 'startup'),
    f'{_TRACKER}._update_available_resource': ('self', 'context', 'resources', 'startup'),
    f'{_TRACKER}._update_usage': ('self', 'usage', 'nodename', 'sign'),
    f'{_TRACKER}._update_usage_from_instance':
        ('self', 'context', 'instance', 'nodename', 'is_removed'),
    f'{_TRACKER}._update_usage_from_instances': ('self', 'context', 'instances', 'nodename'),
    f'{_TRACKER}._update_usage_from_migration':
        ('self', 'context', 'instance', 'migration', 'nodename'),
    f'{_TRACKER}._update_usage_from_migrations': ('self', 'context', 'migrations', 'nodename'),
    f'{_TRACKER}.disabled': ('self', 'nodename'),
    f'{_TRACKER}.remove_node': ('self', 'nodename'),
    f'{_TRACKER}.update_usage': ('self', 'context', 'instance', 'nodename'),
    'nova.compute.claims:MoveClaim.__init__':
        ('self', 'context', 'instance', 'nodename', 'flavor', 'image_meta', 'tracker',
         'compute_node', 'pci_requests', 'migration', 'limits'),
    'nova.compute.stats:Stats.calculate_workload': ('self',),
    'nova.compute.stats:Stats.update_stats_for_instance': ('self', 'instance', 'is_removed'),
    'nova.compute.resource_tracker:COMPUTE_RESOURCE_SEMAPHORE': None,
    'nova.compute.vm_states:allow_resource_removal': ('vm_state', 'task_state'),
    'nova.virt.hardware:numa_usage_from_instance_numa':
        ('host_topology', 'instance_topology', 'free'),
}


class KronosComputeManager(interrupted_cold_migrations.EndsInterruptedColdMigrations,
                           cold_migration_retry.MovesPatiently,
                           interrupted_migrations.EndsInterruptedMigrations,
                           confirmation_retry.ConfirmsPatiently,
                           image_credentials.FetchesImages, reverts.RevertsAtomically,
                           status_retry.RetriesStatus, libvirt_connection.SurvivesLibvirt,
                           manager.ComputeManager):
    def __init__(self, compute_driver: str | None = None, *args: Any, **kwargs: Any):
        request_clock.install()
        super().__init__(compute_driver, *args, **kwargs)
        try:
            tracker = self._build_tracker()
        except Exception as error:  # nova-compute has to start after any error
            LOG.error('The claims of this host cannot be stored: %s. This nova-compute keeps its '
                      'claims in memory only, as without Kronos, until nova-compute is restarted.',
                      error)
            return
        self.rt = tracker
        self.additional_endpoints.append(claim_rpc.ClaimsEndpoint(two_phase.TwoPhaseClaims(tracker)))
        if CONF.kronos_claims.metrics_port:
            _serve_metrics(CONF.kronos_claims.metrics_address, CONF.kronos_claims.metrics_port)

    def _build_tracker(self) -> resource_tracker.KronosResourceTracker:
        store = stores.load_store(CONF.kronos_claims.store, CONF, self.host, claim_rpc.call_store)
        return resource_tracker.build(CONF, self.host, self.driver, self.reportclient, store)

    def check_can_live_migrate_destination(self, ctxt: RequestContext, instance: Instance,
                                           *args: Any, **kwargs: Any) -> LiveMigrateData:
        """Check whether this host can receive a live migration, by Nova's method.

        :raises ComputeServiceUnavailable: a service, such as the nova-compute of the source, did
            not answer. Nova raises MigrationPreCheckError, as after a refusal, and conductors do
            not receive the cause of an error
        """
        try:
            return super().check_can_live_migrate_destination(ctxt, instance, *args, **kwargs)
        except nova_exception.MigrationPreCheckError as error:
            if outages.is_outage(error):
                raise nova_exception.ComputeServiceUnavailable(first_line(error)) from error
            raise

    def prep_resize(self, context: RequestContext, image: Mapping[str, Any], instance: Instance,
                    flavor: Flavor, request_spec: RequestSpec, filter_properties: dict[str, Any],
                    node: str, clean_shutdown: bool, migration: Migration | None,
                    host_list: list[Selection] | None) -> None:
        """Prepare this host for a cold migration or resize. Drop the request if it is outdated: the
        request has waited in a queue for so long that nova-conductor has ended the migration."""
        if migration is not None and marks.has_ended(context, migration):
            marks.log_dropped(instance, migration)
            self._set_free(context, instance, migration)
            return
        super().prep_resize(context, image, instance, flavor, request_spec, filter_properties, node,
                            clean_shutdown, migration, host_list)

    def _set_free(self, context: RequestContext, instance: Instance, migration: Migration) -> None:
        """Release an instance after the request for its migration was dropped: clear its
        task_state, and give the allocations of the migration back to the instance. Nothing is
        changed if another cold migration or resize of the instance is in progress."""
        instance.refresh()
        mark = marks.mark_of(migration)
        if instance.task_state == mark and not marks.is_being_migrated(context, instance):
            self._revert_allocation(context, instance, migration)
            marks.clear(instance, mark)

    @property
    def _keeps_claims(self) -> bool:
        return isinstance(self.rt, resource_tracker.KronosResourceTracker)

    def _destroy_evacuated_instances(self, context: RequestContext,
                                     node_cache: Mapping[str, ComputeNode]) -> dict[str, Migration]:
        evacuated = super()._destroy_evacuated_instances(context, node_cache)
        if self._keeps_claims:
            self.rt.gone_before_start.update(evacuated)
        return evacuated

    @periodic_task.periodic_task(spacing=ORPHANS_SPACING_SECONDS)
    def _release_orphan_claims(self, context: RequestContext) -> None:
        if self._keeps_claims:
            self.rt.release_orphans(context)


@functools.cache
def _serve_metrics(address: str, port: int) -> None:
    try:
        prometheus_client.start_http_server(port, addr=address)
    except OSError as error:
        LOG.error('The metrics of the claims cannot be served at %s port %d ([kronos_claims] '
                  'metrics_address and metrics_port): %s', address, port, error)
