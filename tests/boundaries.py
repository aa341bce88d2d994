"""Steps of a live migration, as dotted paths: the fault tests break it there."""

CONDUCTOR = (
    'kronos_nova.db.tasks.Tasks.announce',
    'kronos_nova.db.tasks.Tasks.begin',
    'nova.conductor.tasks.live_migrate.LiveMigrationTask._check_host_is_up',
    'kronos_nova.plugin.allocation_claim.AllocationClaim.__init__',
    'kronos_nova.plugin.allocation_claim.AllocationClaim.candidates',
    'nova.scheduler.client.query.SchedulerQueryClient.select_destinations',
    'kronos_nova.plugin.allocation_claim.AllocationClaim.claim',
    'nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination',
    'kronos_nova.plugin.live_migration.AtomicLiveMigrationTask._record_destination',
    'kronos_nova.db.tasks.Tasks.hand_over',
    'nova.compute.rpcapi.ComputeAPI.live_migration',
    'kronos_nova.db.tasks.Tasks.end',
)
"""The conductor's task where a host was named, in order."""

ARRIVAL = (
    'nova.compute.manager.ComputeManager._do_live_migration',
    'nova.virt.fake.FakeDriver.live_migration',
    'nova.compute.manager.ComputeManager._post_live_migration',
    'nova.scheduler.client.report.SchedulerReportClient.delete_allocation_for_instance',
)
"""nova-compute on the source when the guest arrives, in order."""

RETURN = (
    'nova.compute.manager.ComputeManager._rollback_live_migration',
    'kronos_nova.plugin.compute.KronosComputeManager._revert_allocation',
)
"""nova-compute on the source when the guest does not arrive, in order."""

EXECUTOR = (
    'kronos_nova.db.journal.Journal.dispatch',
    'kronos_nova.executor.broker.TaskSender.cast',
    'kronos_nova.db.journal.Journal.claim',
    'kronos_nova.plugin.compute_api.InProcessComputeApi.hold_room',
    'kronos_nova.db.journal.Journal.begin',
    'kronos_nova.plugin.compute_api.InProcessComputeApi.live_migrate',
    'kronos_nova.executor.broker.ResultNotifier.announce',
)
"""The writes of the journal, the messages and the requests of a planned move, in order."""
