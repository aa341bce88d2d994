"""Choice of the aggregates that are due for an evaluation, and start of the cycle that evaluates
them in a child process.

A cycle reads the cloud and plans, which takes seconds of pure Python in a large cloud. In the
conductor's own process, this work would delay every RPC, in any concurrency mode. A child process
has its own interpreter, and returns its memory when it ends. If the child process dies, the
conductor is not affected. After a cycle, the child stays idle for a while, so that it can also plan
the next cycle.
"""

import dataclasses
import datetime
import functools
import math
import subprocess
import time
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log as logging

from kronos_nova.cycle import levels
from kronos_nova.cycle.aggregates import aggregates_in_scope
from kronos_nova.cycle.aggregates import planning_units
from kronos_nova.db.cycles import Cycles
from kronos_nova.db.drains import Drains
from kronos_nova.db.journal import Journal
from kronos_nova.db.switches import SwitchBoard
from kronos_nova.drain.states import ACTIVE
from kronos_nova.engine import planning_client
from kronos_nova.engine.locks import TAKING
from kronos_nova.engine.locks import AggregateLocks
from kronos_nova.objects import automation

LOG = logging.getLogger(__name__)

OUT_OF_SCOPE = 'is not in scope any more ([kronos] aggregates, include_unassigned_hosts)'

SOON = 10
"""Seconds between two evaluations of an aggregate with an approved plan or a drain. Such an
aggregate does not wait for the usual interval. Raised, an approved plan that could not begin in one
evaluation is tried again later; lowered, a plan that cannot begin uses more processor time. Not
measured."""

UNEVALUATED_SECONDS = 300
"""Seconds without an evaluation after which a drain is reported as one that waits in vain, if its
aggregate is not in the scope of this process. Other processes may have another scope, and evaluate
the aggregate. If their evaluations fail, the pause between two of them grows to :data:`SOON` * 16
seconds. Raised, an operator learns later that the drain waits; lowered, a drain that another
process evaluates slowly is reported wrongly. Chosen as about twice the longest of these pauses."""

HEAD_START = 10
"""Seconds for which a due aggregate is reserved for the process that last evaluated the aggregate.
This process still has the data of the aggregate in memory. Raised, the aggregate is evaluated later
if this process has died; lowered, another process evaluates the aggregate more often, and has to
read all data again. Not measured."""

TAKING_PATIENCE = 60
"""Seconds to wait while another process chooses and locks the aggregates that are due. After this
time, this process chooses aggregates nevertheless. The choice usually takes one or two seconds.
Raised, a process that hangs delays all evaluations for longer; lowered, a slow process counts as
one that hangs, and several processes read the cloud at the same time. Not measured."""

LEAVE_SECONDS = 5
"""Maximum seconds to wait for the end of a planning process, after the process was asked to end. A
process that has not ended by then is killed. The wait for the end of the killed process has the
same maximum. A killed process ends late only if it waits for a disk or a network file system.
Raised, nova-conductor may take longer to stop; lowered, a process that is about to end is killed.
Not measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerPorts:
    """The dependencies of a CycleScheduler.

    aggregate_hosts : function that returns {name of an aggregate: names of its present hosts}
    utcnow : function that returns the time of the control database
    monotonic : function that returns the seconds of a monotonic clock
    """

    locks: AggregateLocks
    switches: SwitchBoard
    cycles: Cycles
    journal: Journal
    aggregate_hosts: Callable[[], Mapping[str, Collection[str]]]
    utcnow: Callable[[], datetime.datetime]
    monotonic: Callable[[], float] = time.monotonic


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    """Names of aggregates, from which the aggregates of the next cycle are chosen.

    wanted : all aggregates for which Kronos plans
    healthy_first : aggregates that may be evaluated now. Aggregates whose last evaluation failed
        are at the end
    failed : aggregates whose last evaluation failed
    urgent : aggregates with an approved plan or a drain, which do not wait for the interval between
        evaluations
    ordered : aggregates with a drain
    """

    wanted: Sequence[str]
    healthy_first: Sequence[str]
    failed: Collection[str]
    urgent: Collection[str]
    ordered: Collection[str]


class CycleScheduler:
    """The part of a worker that starts cycles in a child process. At most one child plans at a
    time. The worker holds the locks on the aggregates for which the child plans.

    ``child`` is the Popen of the child while the child plans; otherwise None.

    :param command: command of the child
    """

    def __init__(self, conf: cfg.ConfigOpts, scheduler_ports: SchedulerPorts,
                 command: planning_client.Command):
        self.conf = conf
        self.scheduler_ports = scheduler_ports
        self.command = command
        self.child: subprocess.Popen[bytes] | None = None
        self._process: planning_client.PlanningClient | None = None
        self._scopes: tuple[str, ...] = ()
        self._started = self._ended = 0.0
        self._refused_since: float | None = None

    def tick(self) -> None:
        """Check whether the child has finished its cycle. If no child plans, start a cycle for the
        aggregates that are due. If none is due, end a child that has been idle for too long."""
        if self.child is not None and self._process is not None:
            self._check_child(self._process)
        if self.child is None:
            ours = self._lock_due()
            if ours:
                self._begin(ours)
        if self.child is None and self._process is not None:
            self._mind_the_spare(self._process)

    def stop(self) -> None:
        """End the child within a bounded time, and release the locks on its aggregates."""
        child = self.child
        if child is None:
            self._dismiss()
            return
        child.terminate()
        try:
            child.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill(child)
        self._end()

    def _lock_due(self) -> list[str]:
        """Lock the aggregates that are due and that no other worker has locked.

        Aggregates that share hosts are locked together. An aggregate with an approved plan or a
        drain does not wait for the interval. An aggregate whose last evaluation failed is evaluated
        alone, or only with aggregates that share hosts with it, so that a further failure does not
        affect other aggregates.

        :returns: names of the locked aggregates
        """
        due = self._due()
        if not due.healthy_first:
            self._refused_since = None
            return []
        # One worker at a time looks for due aggregates. Several would divide them, and the planning
        # process of each would read the whole cloud.
        is_alone = self.scheduler_ports.locks.acquire(TAKING)
        if not is_alone and not self._has_waited_enough():
            return []
        self._refused_since = None
        ours: list[str] = []
        try:
            ours = self._lock_in_order(due)
        finally:
            if not ours:  # a database may have failed after some aggregates were locked
                self.scheduler_ports.locks.release_all()
            elif is_alone:
                self.scheduler_ports.locks.release(TAKING)
        return ours

    def _has_waited_enough(self) -> bool:
        """Return whether this worker has waited :data:`TAKING_PATIENCE` seconds for the lock
        :data:`TAKING`, which another worker holds. This worker may then continue without the lock.

        A worker holds this lock only while it chooses aggregates. So a worker that holds the lock
        for this time is stopped or hangs.
        """
        now = self.scheduler_ports.monotonic()
        if self._refused_since is None:
            self._refused_since = now
        if now - self._refused_since < TAKING_PATIENCE:
            return False
        LOG.warning('Another worker has held the lock on the list of due aggregates for %d s, so '
                    'it is probably stopped or hangs. This worker plans without that lock; '
                    'aggregates that the other worker has locked are not planned until it '
                    'continues or ends.', TAKING_PATIENCE)
        return True

    def _due(self) -> _Due:
        group, now = self.conf.kronos, self.scheduler_ports.utcnow()
        switches, defaults = self.scheduler_ports.switches.read(), levels.defaults(self.conf)
        approved = {plan.aggregate for plan in self.scheduler_ports.journal.approved_plans()
                    if not switches.hold(plan.aggregate)}
        # Drains of operators wait neither for the interval nor for a level.
        draining = self._draining()
        wanted = [scope for scope in aggregates_in_scope(self.conf)
                  if switches.planning_level(scope, defaults) != automation.OFF
                  or scope in draining]
        due = self.scheduler_ports.cycles.due(
            wanted, now, group.evaluation_interval,
            (self.scheduler_ports.journal.worker, self._head_start))
        if due and not group.aggregates_per_cycle:
            # One planning process plans all aggregates that are due, because it reads the whole
            # cloud once for all of them.
            due = self.scheduler_ports.cycles.due(wanted, now, group.evaluation_interval)
        urgent, failed = approved | draining, self.scheduler_ports.cycles.failed()
        return _Due(healthy_first=sorted((scope for scope in wanted
                                          if scope in urgent or scope in due),
                                         key=lambda scope: scope in failed),
                    failed=failed, urgent=urgent, ordered=draining, wanted=wanted)

    def _draining(self) -> set[str]:
        """Return the aggregates with drains that have not ended. If an aggregate has left the scope
        of Kronos, this is recorded in its drains.

        An aggregate that is not in the scope of this process may be in the scope of another one,
        which then evaluates the aggregate. Nothing is recorded until the drain has waited
        :data:`UNEVALUATED_SECONDS` for an evaluation.
        """
        known = Drains(self.scheduler_ports.journal.database)
        found, scopes = known.in_states(ACTIVE), aggregates_in_scope(self.conf)
        now = self.scheduler_ports.utcnow()
        since = now - datetime.timedelta(seconds=UNEVALUATED_SECONDS)
        left = [drain for drain in found
                if drain.aggregate not in scopes and drain.requested_at <= since]
        evaluated = self.scheduler_ports.cycles.evaluated(since, now) if left else ()
        for drain in left:
            if drain.aggregate not in evaluated:
                known.note_unevaluated(drain, OUT_OF_SCOPE)
        return {drain.aggregate for drain in found}

    def _lock_in_order(self, due: _Due) -> list[str]:
        group = self.conf.kronos
        units = _Units(due.wanted, self.scheduler_ports.aggregate_hosts)
        ours: list[str] = []
        for scope in due.healthy_first:
            if scope in ours or (ours and scope in due.failed):
                continue
            interval = SOON if scope in due.urgent else group.evaluation_interval
            ours += self._lock_unit(scope, units, interval, scope in due.ordered)
            if ours and (scope in due.failed
                         or len(ours) >= (group.aggregates_per_cycle or math.inf)):
                break
        return ours

    def _lock_unit(self, scope: str, units: '_Units', interval: float,
                   is_ordered: bool) -> list[str]:
        """Lock an aggregate and all aggregates that share hosts with it, and record the start of
        their evaluations. Either all of these aggregates are locked, or none of them.

        :returns: names of the locked aggregates; empty if none is locked
        """
        locks = self.scheduler_ports.locks
        if not locks.acquire(scope):
            return []
        taken, is_begun = [scope], False
        try:
            others = sorted(units.unit_of(scope) - {scope})
            if locks.acquire(*others):
                taken += others
                is_begun = self._begin_evaluation(scope, others, interval, is_ordered)
        finally:  # release the locks also after an error of the database
            if not is_begun:
                locks.release(*taken)
        return taken if is_begun else []

    def _begin_evaluation(self, scope: str, others: list[str], interval: float,
                          is_ordered: bool) -> bool:
        cycles, worker = self.scheduler_ports.cycles, self.scheduler_ports.journal.worker
        now = self.scheduler_ports.utcnow()
        is_begun = cycles.begin(scope, worker, now, interval, is_ordered)
        for other in others if is_begun else ():
            cycles.begin(other, worker, now, 0)
        return is_begun

    def _begin(self, ours: list[str]) -> None:
        self._scopes = tuple(ours)
        try:
            LOG.debug('Planning aggregates %s', ', '.join(ours))
            self.child = self._started_child(ours)
        except OSError as error:
            LOG.error('No process can be started that plans aggregates %s: %s. These aggregates '
                      'are tried again when they are next due.', ', '.join(ours), error)
            self._dismiss()
        finally:
            if self.child is None:
                self.scheduler_ports.locks.release_all()
        self._started = self.scheduler_ports.monotonic()

    def _started_child(self, ours: list[str]) -> subprocess.Popen[bytes]:
        """Send a child the order to plan for the aggregates ``ours``, and return the Popen of the
        child. The child of the last cycle is used if it has the present configuration and accepts
        the order. Otherwise a new child is started."""
        said = planning_client.configuration(self.conf)
        if self._process is not None and self._process.configuration != said:
            self._dismiss()
        if self._process is None or not self._process.order(ours):
            self._dismiss()
            self._process = planning_client.PlanningClient(
                self.command, said, self.conf.kronos.planner_niceness)
            self._process.order(ours)
        return self._process.popen

    def _mind_the_spare(self, process: planning_client.PlanningClient) -> None:
        """End the idle child if it has been idle for ``planner_idle_time``. Close the connection to
        the child if it has already ended."""
        idle = self.scheduler_ports.monotonic() - self._ended
        if process.popen.poll() is not None or idle >= self.conf.kronos.planner_idle_time:
            self._dismiss()

    def _dismiss(self) -> None:
        if self._process is not None:
            self._process.dismiss()
            self._process = None

    @property
    def _head_start(self) -> int:
        """Return the seconds for which a due aggregate is reserved for the worker that last
        evaluated the aggregate. A child process of this worker may still have the data of the
        aggregate in memory. Return 0 if child processes always end before the next cycle."""
        group = self.conf.kronos
        return HEAD_START if group.planner_idle_time > group.evaluation_interval else 0

    def _check_child(self, process: planning_client.PlanningClient) -> None:
        status = process.answer()
        if status is not None:
            if status:
                LOG.error('A planning process could not plan aggregates %s; the log lines of that '
                          'process have the cause. These aggregates are tried again when they are '
                          'next due.', ', '.join(self._scopes))
            if process.is_leaving:
                self._dismiss()
            self._leave()
            return
        status = process.popen.poll()
        if status is None:
            self._mind_the_time(process)
            return
        LOG.error('The planning process for aggregates %s ended unexpectedly, with status %d. '
                  'Each of these aggregates is planned again later, in a cycle of its own.',
                  ', '.join(self._scopes), status)
        self._fail()

    def _mind_the_time(self, process: planning_client.PlanningClient) -> None:
        taken = self.scheduler_ports.monotonic() - self._started
        limit = self.conf.kronos.cycle_timeout
        if taken <= limit:
            self.scheduler_ports.locks.heartbeat()
            return
        LOG.error('The planning process for aggregates %s is killed: after %d s it has not '
                  'finished, and [kronos] cycle_timeout allows %d s. For %d s the process waited '
                  'for a processor; if that is most of the time, lower planner_niceness. Each of '
                  'these aggregates is planned again later, in a cycle of its own.',
                  ', '.join(self._scopes), taken, limit, process.waited())
        self._kill(process.popen)
        self._fail()

    def _kill(self, child: subprocess.Popen[bytes]) -> None:
        child.kill()  # SIGKILL, because a stopped process ignores every other signal
        try:
            child.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            LOG.error('The planning process %d was killed but has not ended, probably because it '
                      'waits for a disk or a file system. A new process plans instead; the old '
                      'process can no longer change anything.', child.pid)

    def _fail(self) -> None:
        """Postpone the next evaluation of the aggregates that the child did not finish, and release
        the locks on these aggregates. The time until the next evaluation grows with the number of
        failed evaluations in a row."""
        try:
            self.scheduler_ports.cycles.fail(self._scopes, self.scheduler_ports.utcnow(),
                                             self.conf.kronos.evaluation_interval)
        finally:
            self._end()

    def _end(self) -> None:
        """Close the connection to a child that has ended, and release the locks on its
        aggregates."""
        self._dismiss()
        self._leave()

    def _leave(self) -> None:
        self.child, self._scopes, self._ended = None, (), self.scheduler_ports.monotonic()
        self.scheduler_ports.locks.release_all()


class _Units:
    """The groups of aggregates that share hosts. The first call of :meth:`unit_of` reads the hosts
    of all aggregates."""

    def __init__(self, names: Sequence[str],
                 aggregate_hosts: Callable[[], Mapping[str, Collection[str]]]):
        self._names, self._aggregate_hosts = names, aggregate_hosts

    @functools.cached_property
    def _units(self) -> Mapping[str, frozenset[str]]:
        return planning_units(self._names, self._aggregate_hosts())

    def unit_of(self, name: str) -> frozenset[str]:
        return self._units[name] if len(self._names) > 1 else frozenset((name,))
