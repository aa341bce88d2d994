"""The managers of nova-conductor with Kronos. They plan moves, carry out moves, and change the
allocations of a live migration in one transaction."""

import contextlib
import contextvars
import functools
import sys
import threading
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import nova.conf
from nova import exception as nova_exception
from nova import objects
from nova import profiler
from nova.compute import task_states
from nova.conductor import manager
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_service import periodic_task
from oslo_utils import timeutils

from kronos_nova import exception
from kronos_nova.claims import central
from kronos_nova.conf import unknown_options
from kronos_nova.cycle import aggregates
from kronos_nova.cycle import levels
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import leases
from kronos_nova.db import migrate
from kronos_nova.db import repairs
from kronos_nova.db import retention
from kronos_nova.db import switches
from kronos_nova.db import tasks
from kronos_nova.db import worker
from kronos_nova.drain import disabling
from kronos_nova.engine import cycle_scheduler
from kronos_nova.engine import guard
from kronos_nova.engine import locks
from kronos_nova.engine import planning_client
from kronos_nova.executor import broker
from kronos_nova.executor import high_availability
from kronos_nova.executor import pending_stops
from kronos_nova.executor import permits
from kronos_nova.executor import service
from kronos_nova.executor.ports import ExecutorPorts
from kronos_nova.placement.room_allocations import RoomAllocations
from kronos_nova.plugin import claim_rpc
from kronos_nova.plugin import cold_migration
from kronos_nova.plugin import compute_api
from kronos_nova.plugin import host_api
from kronos_nova.plugin import inventory
from kronos_nova.plugin import live_migration
from kronos_nova.plugin import placement
from kronos_nova.plugin import reconciling
from kronos_nova.plugin import refused_boots
from kronos_nova.plugin import registration
from kronos_nova.plugin import room_for_boots
from kronos_nova.plugin.fixes import cold_migration_rollback
from kronos_nova.plugin.fixes import fork_safety
from kronos_nova.plugin.fixes import log_filters
from kronos_nova.plugin.fixes import request_clock
from kronos_nova.plugin.nova_types import Flavor
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import LiveMigrationTask
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import MigrationTask
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import RequestSpec
from kronos_nova.plugin.nova_types import Selection
from kronos_nova.policies import loader
from kronos_nova.policies import windows

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

TASK_ARGUMENTS = ('self', 'context', 'instance', 'destination', 'block_migration',
                  'disk_over_commit', 'migration')

EXPECTED = {
    **cold_migration_rollback.EXPECTED,
    **live_migration.EXPECTED,
    **fork_safety.EXPECTED,
    'nova.conductor.manager:ConductorManager.__init__': ('self', 'args', 'kwargs'),
    'nova.conductor.manager:ComputeTaskManager.__init__': ('self',),
    'nova.conductor.manager:ComputeTaskManager._build_cold_migrate_task': (
        'self', 'context', 'instance', 'flavor', 'request_spec', 'clean_shutdown', 'host_list'),
    'nova.conductor.manager:ComputeTaskManager._build_live_migrate_task': (
        *TASK_ARGUMENTS, 'request_spec'),
    'nova.conductor.manager:ComputeTaskManager._cold_migrate': (
        'self', 'context', 'instance', 'flavor', 'filter_properties', 'clean_shutdown',
        'request_spec', 'host_list'),
    'nova.conductor.manager:ComputeTaskManager._live_migrate': (
        'self', 'context', 'instance', 'scheduler_hint', 'block_migration', 'disk_over_commit',
        'request_spec'),
    'nova.conductor.manager:ComputeTaskManager._schedule_instances': (
        'self', 'context', 'request_spec', 'instance_uuids', 'return_alternates'),
    'nova.conductor.manager:ComputeTaskManager.live_migrate_instance': (
        'self', 'context', 'instance', 'scheduler_hint', 'block_migration', 'disk_over_commit',
        'request_spec'),
    'nova.conductor.manager:ComputeTaskManager.migrate_server': None,
    'nova.compute.api:API.live_migrate': None,
    'nova.compute.api:API.live_migrate_abort': None,
}


CHILD = 'kronos_nova.plugin.cycle'

STOP_SECONDS = 10
"""Maximum seconds for which the shutdown of a conductor worker waits for the end of Kronos before
Nova shuts down its own parts. Kronos then continues to end while Nova does the same. Raised, an
outage of the control database delays the shutdown of Nova for longer; lowered, Nova may end the
process before Kronos has left its moves to other workers. Chosen above the two seconds after which
Kronos leaves its moves while the database answers."""

# The registration of the live migration that this thread prepares, if Kronos has one.
_registered: contextvars.ContextVar[registration.Registration | None] = contextvars.ContextVar(
    'registered', default=None)


class KronosConductorManager(manager.ConductorManager):
    """Nova's conductor with the periodic tasks of Kronos. The requests for migrations are handled
    by :class:`KronosComputeTaskManager`."""

    compute_task_mgr: manager.ComputeTaskManager

    def __init__(self, *args: Any, **kwargs: Any):
        request_clock.install()
        super().__init__(*args, **kwargs)
        log_filters.install()
        fork_safety.install()
        self.additional_endpoints.remove(self.compute_task_mgr)
        self.compute_task_mgr = KronosComputeTaskManager()
        self.additional_endpoints.append(self.compute_task_mgr)
        if CONF.kronos_claims.store == 'central':  # else it would be an endpoint without a client
            self.additional_endpoints.append(claim_rpc.ClaimStoreEndpoint(_central_claims))
        self.kronos = Kronos(CONF)

    @periodic_task.periodic_task(spacing=1, run_immediately=True)
    def kronos_execute(self, context: RequestContext) -> None:
        """Carry out moves, as a periodic task of the conductor."""
        self.kronos.execute()

    @periodic_task.periodic_task(spacing=2, run_immediately=True)
    def kronos_plan(self, context: RequestContext) -> None:
        """Start a cycle if one is due, as a periodic task of the conductor."""
        self.kronos.plan()

    def set_shutdown_in_progress(self) -> None:
        """Stop Kronos before the service stops. Since release 34, Nova calls this method first, and
        waits for it. Nova waits for :meth:`graceful_shutdown` only as long as its options allow.
        That may be 0 seconds."""
        super().set_shutdown_in_progress()
        self.kronos.stop(STOP_SECONDS)

    def graceful_shutdown(self, *args: Any, **kwargs: Any) -> None:
        """Wait until Kronos has stopped, before the service stops. Nova 33 calls only this
        method."""
        self.kronos.stop()
        super().graceful_shutdown(*args, **kwargs)

    @periodic_task.periodic_task(spacing=reconciling.BEAT_SECONDS, run_immediately=True)
    def kronos_reconcile(self, context: RequestContext) -> None:
        """Repair allocations and task states that interrupted migrations left behind."""
        self.kronos.reconcile()

    @periodic_task.periodic_task(spacing=5, run_immediately=True)
    def kronos_prune(self, context: RequestContext) -> None:
        """Delete rows of the control database that are past their retention time."""
        self.kronos.prune()


@profiler.trace_cls('rpc')
class KronosComputeTaskManager(manager.ComputeTaskManager):
    """Nova's compute tasks with changed live and cold migrations. The option ``atomic_moves``
    selects the migrations that are changed. A changed live migration moves its allocations in one
    transaction. The rollback of a changed cold migration leaves no allocations behind. Outdated
    requests for changed migrations are dropped."""

    def live_migrate_instance(self, context: RequestContext, instance: Instance, *args: Any,
                              **kwargs: Any) -> None:
        with _receipt(instance):
            super().live_migrate_instance(context, instance, *args, **kwargs)

    def migrate_server(self, context: RequestContext, instance: Instance, *args: Any,
                       **kwargs: Any) -> None:
        with _receipt(instance):
            super().migrate_server(context, instance, *args, **kwargs)

    def _live_migrate(self, context: RequestContext, instance: Instance, *args: Any,
                      **kwargs: Any) -> None:
        if not self._is_atomic(context):
            registration.close_receipt()
            super()._live_migrate(context, instance, *args, **kwargs)
            return
        with registration.Registration(
                _tasks, lambda: _note_outage(context), instance.uuid) as registered:
            if _is_outdated(context, instance, task_states.MIGRATING):
                return
            token = _registered.set(registered)
            try:
                super()._live_migrate(context, instance, *args, **kwargs)
            finally:
                _registered.reset(token)

    def _cold_migrate(self, context: RequestContext, instance: Instance, *args: Any,
                      **kwargs: Any) -> None:
        if not self._is_atomic(context):
            registration.close_receipt()
            super()._cold_migrate(context, instance, *args, **kwargs)
            return
        with registration.Announcement(_tasks, 'cold migration', instance.uuid):
            if not _is_outdated(context, instance, task_states.RESIZE_PREP):
                super()._cold_migrate(context, instance, *args, **kwargs)

    def _build_live_migrate_task(self, context: RequestContext, instance: Instance,
                                 destination: str | None, block_migration: bool | None,
                                 disk_over_commit: bool | None, migration: Migration,
                                 request_spec: RequestSpec | None = None) -> LiveMigrationTask:
        registered = _registered.get()
        if registered is None:
            return super()._build_live_migrate_task(
                context, instance, destination, block_migration, disk_over_commit, migration,
                request_spec)
        return live_migration.AtomicLiveMigrationTask(
            context, instance, destination, block_migration, disk_over_commit, migration,
            self.compute_rpcapi, self.servicegroup_api, self.query_client, self.report_client,
            request_spec, placement=placement.client(), registration=registered)

    def _build_cold_migrate_task(self, context: RequestContext, instance: Instance, flavor: Flavor,
                                 request_spec: RequestSpec, clean_shutdown: bool,
                                 host_list: list[Selection] | None) -> MigrationTask:
        if CONF.kronos.atomic_moves == 'off':
            return super()._build_cold_migrate_task(
                context, instance, flavor, request_spec, clean_shutdown, host_list)
        task = (cold_migration.RevertingColdMigrationTask
                if CONF.kronos_fixes.cold_migration_rollback else cold_migration.ColdMigrationTask)
        return task(
            context, instance, flavor, request_spec, clean_shutdown, self.compute_rpcapi,
            self.query_client, self.report_client, host_list, self.network_api,
            note_outage=lambda: _note_outage(context))

    def _schedule_instances(self, context: RequestContext, request_spec: RequestSpec,
                            instance_uuids: Sequence[str] | None = None,
                            return_alternates: bool = False) -> list[list[Selection]]:
        def schedule() -> list[list[Selection]]:
            return super(KronosComputeTaskManager, self)._schedule_instances(
                context, request_spec, instance_uuids, return_alternates)

        try:
            return schedule()
        except nova_exception.NoValidHost:
            given = CONF.api_database.connection and room_for_boots.give_way(
                _impatient_database(), _room_allocations, request_spec,
                len(instance_uuids or (None,)))
            if not given:
                raise
        try:
            return schedule()
        except nova_exception.NoValidHost:
            room_for_boots.restore(_room_allocations, given)
            raise

    def _bury_in_cell0(self, context: RequestContext, request_spec: RequestSpec, exc: Exception,
                       *args: Any, **kwargs: Any) -> None:
        seconds = CONF.kronos.refused_room_hold
        if seconds and isinstance(exc, nova_exception.NoValidHost):
            refused_boots.note(_impatient_database(), request_spec, seconds)
        super()._bury_in_cell0(context, request_spec, exc, *args, **kwargs)

    def _is_atomic(self, context: RequestContext) -> bool:
        wanted = CONF.kronos.atomic_moves
        return wanted == 'all' or (wanted == 'kronos' and _is_of_a_plan(context))


def _receipt(instance: Instance) -> contextlib.AbstractContextManager[object]:
    """Return the context manager in which a request for a migration is handled."""
    if CONF.kronos.atomic_moves == 'off':
        return contextlib.nullcontext()
    return registration.Receipt(_tasks, instance.uuid)


def _is_outdated(context: RequestContext, instance: Instance, mark: str) -> bool:
    """Return whether a request for a migration is outdated, and log this. A request may wait in a
    queue for a long time, and the task_state of the instance may be cleared in the meantime.

    :param mark: the task_state with which Nova's API marked the instance for the request
    """
    try:
        found = objects.Instance.get_by_uuid(context, instance.uuid, expected_attrs=[])
    except nova_exception.InstanceNotFound:
        found = None
    if found is not None and found.task_state == mark:
        return False
    LOG.warning('Instance %s: dropped an outdated request for a migration (its task_state is not '
                '"%s" any more).', instance.uuid, mark)
    return True


def _move_of(context: RequestContext) -> str:
    """Return the uuid of the move to which the request of ``context`` belongs. The executor puts
    this uuid into the id of each request that it makes for a move. For a request of another client,
    return a text that is not the uuid of any move."""
    return (context.global_request_id or '').removeprefix('req-')


def _note_outage(context: RequestContext) -> None:
    _journal().note_outage(_move_of(context))


def _is_of_a_plan(context: RequestContext) -> bool:
    """Return True if the executor made the request of ``context`` for a move of a plan. Return
    False if another client made the request, or if the control database cannot be read."""
    move_uuid = _move_of(context)
    if not move_uuid:
        return False
    try:
        return journal.Journal(_impatient_database(), worker.name(CONF.host)).knows(move_uuid)
    except (db_exc.DBError, exception.KronosException) as e:
        LOG.warning('Request %s for a live migration is treated as a request of a user. Whether '
                    'Kronos made the request is not known, because the control database cannot be '
                    'read: %s', context.global_request_id, db_engine.first_line(e))
        return False


@functools.cache
def _database() -> db_engine.Database:
    """Return the control database of this process. The Database object is created at the first
    call, after workers have forked. A failed connection is not retried here, because the caller
    tries again."""
    return db_engine.control_database(CONF)


@functools.cache
def _impatient_database() -> db_engine.ImpatientDatabase:
    """Return the control database with short time limits, for queries during which a request of
    Nova waits."""
    return db_engine.ImpatientDatabase(db_engine.impatient_control_engine(CONF))


@functools.cache
def _central_claims() -> central.CentralTable:
    return central.CentralTable(_database())


def _room_allocations() -> RoomAllocations:
    return RoomAllocations(placement.client())


def _journal() -> journal.Journal:
    return journal.Journal(_database(), worker.name(CONF.host))


@functools.cache
def _tasks() -> tasks.Tasks:
    """Return the Tasks of this process, which record the live and cold migrations that the process
    prepares."""
    return tasks.Tasks(_database(), worker.name(CONF.host), _database().utcnow,
                       announcements=_impatient_database())


def _prepared_instances() -> frozenset[str]:
    """Return the uuids of the instances whose migrations a conductor worker prepares.

    A worker records a task while it prepares a migration. If ``[kronos_allocations]
    reconcile_interval`` is 0, the tasks of dead workers are never removed. A task is then no proof
    that the migration is still being prepared, and the result is empty.
    """
    if not CONF.kronos_allocations.reconcile_interval:
        return frozenset()
    return _tasks().instances()


class _MoveServices(NamedTuple):
    """The services that carry out moves and drains."""

    execution: service.ExecutionService
    dispatch: service.DispatchService
    drains: disabling.DrainService


class Kronos:
    """The services of Kronos in one conductor worker. Each service is created at its first tick,
    after the worker has forked. If a service raises an error, the error is logged once and the
    service tries again. The conductor itself is not affected."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.conf = conf
        self._services: _MoveServices | None = None
        self._planning: cycle_scheduler.CycleScheduler | None = None
        self._reconciling: reconciling.Reconciling | None = None
        self._pruner: retention.Pruner | None = None
        self._is_stopping = False
        self._stop_lock = threading.Lock()
        self._stopping: threading.Thread | None = None
        # Each is held while its parts work, so that a stop can wait for the end of their turn: the
        # executor, and the parts that are stopped after it.
        self._turn, self._other_turn = threading.Lock(), threading.Lock()
        self._guard = guard.Guard()
        self._next_execution = 0.0

    def execute(self) -> None:
        """Run the executor, the dispatcher and the drains, at most once per ``poll_interval``."""
        if timeutils.now() >= self._next_execution and self._may_run():
            self._guard.run('executor', self._execute)
            with self._other_turn:
                if self._services is not None and not self._is_stopping:
                    self._guard.run('dispatcher', self._services.dispatch.tick)
                    self._guard.run('drain service', self._services.drains.tick)

    def plan(self) -> None:
        if self._may_run():
            self._guard.run('planner', self._plan)

    def reconcile(self) -> None:
        self._guard.run('reconciler', self._reconcile)

    def prune(self) -> None:
        if self._may_run():
            self._guard.run('retention', self._prune)

    def _may_run(self) -> bool | None:
        """Return the result of :meth:`_is_wanted`; None if an option that it reads is invalid. Nova
        reads its configuration again on SIGHUP, and does not check the values."""
        return self._guard.run('conductor', self._is_wanted)

    def _is_wanted(self) -> bool:
        """Return whether this conductor runs Kronos. Three conditions have to be met:

        * The option ``run_in`` is ``conductor``.
        * The conductor has the API database. The conductor of a single cell does not have it, and
          cannot see the whole cloud.
        * nova.conf names an aggregate, includes the pool of unassigned hosts, or sets a level other
          than ``off``. With an aggregate, Kronos runs even while the level is ``off``, to complete
          moves in progress, and because a command may set another level.
        """
        group = self.conf.kronos
        has_work = group.automation != 'off' or aggregates.aggregates_in_scope(self.conf)
        return bool(has_work and self.conf.api_database.connection
                    and group.run_in == 'conductor' and not self._is_stopping)

    def _execute(self) -> None:
        self._next_execution = timeutils.now() + self.conf.kronos_executor.poll_interval
        with self._turn:
            if self._is_stopping:
                return
            if self._services is None:
                self._services = self._make_services()
            self._services.execution.tick()

    def _make_services(self) -> _MoveServices:
        database = _database()
        migrate.check(database.engine, migrate.CONTROL)
        stops = pending_stops.for_conf(self.conf)
        context = service.ServiceContext(
            conf=self.conf, host=self.conf.host, transports=broker.Transports(self.conf),
            executor_ports=ExecutorPorts(
                journal=_journal(), cooldowns=cooldowns.Cooldowns(database),
                utcnow=database.utcnow, monotonic=time.monotonic,
                is_clock_right=database.utcnow.is_right,
                permits=permits.Permits(
                    database, functools.partial(levels.defaults, self.conf),
                    functools.partial(windows.may_start, self.conf), stops.hold),
                stops=stops, aggregates=tuple(aggregates.aggregates_in_scope(self.conf))))
        return _MoveServices(
            drains=disabling.DrainService(
                context.executor_ports, host_api.InProcessHostApi(),
                lambda: self.conf.kronos_executor.ha_disabled_reasons,
                high_availability.for_conf(self.conf)),
            dispatch=service.DispatchService(context),
            execution=service.ExecutionService(
                context, compute_api.InProcessComputeApi(_prepared_instances)))

    def stop(self, seconds: float | None = None) -> None:
        """Stop Kronos in this worker, and leave its moves to other workers. A further call waits
        for the end of the same stop.

        :param seconds: maximum seconds to wait for the end of the stop; None for no limit
        """
        self._is_stopping = True
        with self._stop_lock:
            if self._stopping is None:
                self._stopping = threading.Thread(target=self._stop, name='kronos-stop',
                                                  daemon=True)
                self._stopping.start()
        self._stopping.join(seconds)
        if self._stopping.is_alive():
            LOG.warning('Kronos has not stopped within %.0f s, and continues to stop while Nova '
                        'stops. If this process ends before, other workers continue its moves '
                        'after [kronos_executor] worker_timeout.', seconds)

    def _stop(self) -> None:
        """Stop the executor first, because the process may be killed before the other parts have
        stopped."""
        with self._turn:  # a turn in progress would record this worker as alive again
            services = self._services
        if services is not None:
            self._end('executor', services.execution.stop_taking)
            self._end('executor', services.execution.retire)
        with self._other_turn:  # a turn in progress may start a cycle
            planning = self._planning
        if planning is not None:
            self._end('planner', planning.stop)
        if services is not None:
            self._end('dispatcher', services.dispatch.stop)

    def _end(self, part: str, end: Callable[[], None]) -> None:
        try:
            self._guard.run(part, end)
        except Exception:
            LOG.exception('The %s of Kronos failed to stop; the other parts are stopped', part)

    def _reconcile(self) -> None:
        if self.conf.kronos.atomic_moves == 'off' or not self.conf.api_database.connection:
            return
        if self._reconciling is None:
            migrate.check(_database().engine, migrate.CONTROL)
            self._reconciling = reconciling.Reconciling(
                self.conf, placement.client(), repairs.Repairs(_database(), _database().utcnow),
                _tasks(), leases.Leases(_database(), worker.name(self.conf.host),
                                        _database().utcnow))
        self._reconciling.tick()

    def _prune(self) -> None:
        if self._pruner is None:
            migrate.check(_database().engine, migrate.CONTROL)
            self._pruner = retention.Pruner(self.conf, _database(), worker.name(self.conf.host),
                                            _database().utcnow)
        self._pruner.tick()

    def _plan(self) -> None:
        _database().utcnow.check()
        with self._other_turn:
            if self._is_stopping:
                return
            if self._planning is None:
                self._planning = self._make_planning()
            self._planning.tick()

    def _make_planning(self) -> cycle_scheduler.CycleScheduler:
        """Check the configuration, and create the CycleScheduler that plans in this conductor.

        :raises ConfigurationError: the configuration has an error that an operator has to correct
        """
        conf = self.conf
        aggregates.refuse_empty_scope(conf)
        problems = unknown_options.unknown_keys(conf)
        if problems:
            LOG.error('Unknown options of Kronos in nova.conf are ignored. Correct their names: %s',
                      '; '.join(problems))
        loader.load(conf.kronos.policies_file)
        migrate.check(_database().engine, migrate.CONTROL)
        return cycle_scheduler.CycleScheduler(
            conf, cycle_scheduler.SchedulerPorts(
                locks=locks.AggregateLocks(conf.kronos.coordination_url, conf.state_path,
                                           worker.name(conf.host)),
                switches=switches.SwitchBoard(_database()), cycles=cycles.Cycles(_database()),
                journal=_journal(), utcnow=_database().utcnow,
                aggregate_hosts=inventory.aggregate_hosts),
            planning_client.Command(CHILD, sys.argv[1:]))
