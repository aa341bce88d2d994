"""Repair of allocations that moves left behind. The repair runs soon after the moves, without a
request by an operator.

The repair examines only instances with migrations that have not ended or have changed lately. An
instance without a problem is examined again only after a change of its migrations. All other
instances are left to an audit.

Only one process is meant to reconcile at a time. If two processes reconcile, no harm is done:
placement refuses a change if its consumers have changed in the meantime, and only one process can
take a task from its dead worker.
"""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
from typing import Protocol

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.objects import repair as repairs
from kronos_nova.objects.task import UNBEGUN
from kronos_nova.objects.task import Task
from kronos_nova.placement import audit
from kronos_nova.placement import errors
from kronos_nova.placement import heal
from kronos_nova.placement import holdings
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.records import InstanceHistory
from kronos_nova.placement.records import NovaRecords

LOG = logging.getLogger(__name__)

CHUNK = 50
"""Maximum number of instances that one query reads from Nova. The allocations of these instances in
placement are then compared with Nova's records, and repaired, one instance after the other. Raised,
Nova's records of the last instances are older when they are compared; lowered, there are more
queries. Chosen because the comparison of this many instances takes a second or two."""
HANDED_OVER_PATIENCE = 5
"""Factor by which ``task_timeout`` is multiplied for some live migrations. In these migrations, the
nova-conductor worker died while it sent the request to the source host. The source host may have
received the request, so Kronos waits this longer time before it treats the migration as lost.
Raised, a migration whose request was lost stays open for longer; lowered, a migration that is
running is treated as lost. Not measured."""
LAST_BREATH = datetime.timedelta(seconds=15)
"""Time (15 seconds) for which a dead worker may have worked after its last recorded sign of life.
Raised, a migration that another worker has just requested may be ended; lowered, a migration that
the dead worker created last may not be ended. Not measured."""


class TaskRegister(Protocol):
    """The protocol of a register of tasks. A task is a migration that a conductor worker
    prepares. The register has the time of the worker's last sign of life for each task."""

    def dead(self, begun_before: datetime.datetime,
             handed_over_before: datetime.datetime) -> list[Task]:
        """Return the tasks that are recorded as lost, and the tasks whose worker is dead. The
        worker of a task is dead if its last sign of life is before a time. This time depends on
        whether the task was handed over to the nova-compute of the source.

        :param begun_before: time for tasks that were not handed over
        :param handed_over_before: time for tasks that were handed over
        """

    def in_progress(self) -> frozenset[str]:
        """Return the uuids of the migrations whose task has begun and has not ended."""

    def instances(self) -> frozenset[str]:
        """Return the uuids of the instances with a task that has not ended."""

    def lose(self, task: Task) -> bool:
        """Take a task away from its worker. Return True if the task was taken away, and False if
        the worker has continued the task in the meantime."""

    def find_lost(self, migration_uuid: str, instance_uuid: str) -> None:
        """Record a lost task for a migration that has no task, so that the reconciler ends the
        migration."""

    def end(self, migration_uuid: str) -> None:
        """Delete the record of a migration's task."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """A component that repairs allocations after migrations, and ends tasks whose workers are dead.

    :param task_timeout: seconds without a sign of life after which a worker counts as dead
    :param clock: callable that returns the present time
    :param in_order: {uuid of an instance without a problem: state of its migrations}; the instance
        is examined again when this state changes
    :param unsettled: uuids of instances whose result is not final yet, and names of cells that did
        not respond
    """

    client: PlacementClient
    nova: NovaRecords
    journal: heal.RepairJournal
    tasks: TaskRegister
    limits: audit.AuditLimits
    task_timeout: float
    clock: Callable[[], datetime.datetime]
    in_order: dict[str, object] = dataclasses.field(default_factory=dict)
    unsettled: set[str] = dataclasses.field(default_factory=set)

    def run(self, window: float) -> Iterator[heal.Outcome | None]:
        """End stalled migrations, and the tasks of dead workers. Clear the task_state of instances
        whose request for a migration was lost. Then examine the instances with migrations that have
        not ended or have changed within ``window`` seconds, and repair the allocations of these
        instances. Each step of the iteration handles one instance.

        An instance that cannot be examined is logged and left to the next run; the other instances
        are examined.

        :returns: iterator with one item for each instance: the Outcome, or None if nothing had to
            be repaired
        :raises PlacementUnavailable, InventoryError: placement or Nova's records could not be read
            at all
        """
        self._end_dead_tasks()
        self._free_forgotten_instances()
        self.nova.end_stale(self.clock() - datetime.timedelta(seconds=self.limits.stalled))
        recent, unread = self.nova.recent(window)
        for uuid in self.in_order.keys() - recent.keys():
            del self.in_order[uuid]
        self.unsettled.clear()
        self.unsettled.update(unread)
        instances = [uuid for uuid, state in recent.items() if self.in_order.get(uuid) != state]
        if not instances:
            return
        providers = holdings.read_providers(self.client)
        healer = heal.Healer(self.client, self.nova, providers, self.limits, self.journal)
        instances.sort()
        for start in range(0, len(instances), CHUNK):
            chunk = instances[start:start + CHUNK]
            read = self._read({uuid: recent[uuid].keys() for uuid in chunk})
            for uuid in chunk:
                yield self._heal_if_due(healer, uuid, recent[uuid], read.get(uuid))

    def _read(self, wanted: Mapping[str, Set[str]]) -> Mapping[str, InstanceHistory]:
        """Return {uuid: history} of several instances, which are read together. Return {} if a
        history cannot be read. The caller then reads each instance separately, so that one
        unreadable instance does not block the others."""
        try:
            return self.nova.histories(wanted)
        except exception.InventoryError:
            return {}

    def _heal_if_due(self, healer: heal.Healer, uuid: str, migrations: Mapping[str, object],
                     read: InstanceHistory | None) -> heal.Outcome | None:
        self.unsettled.add(uuid)
        try:
            finding, is_settled = healer.examine(uuid, migrations.keys(), read)
            if is_settled:
                self.unsettled.discard(uuid)
            if is_settled and finding is None:
                self.in_order[uuid] = migrations
            if finding and finding.can_be_healed_unasked:
                return _logged(healer.heal(finding))
        except errors.PlacementUnavailable:
            raise  # after an outage, the service would not answer for the other instances either
        except exception.KronosException as error:
            LOG.warning('The allocations of instance %s could not be checked after its migration, '
                        'and are checked again later: %s', uuid, error)
        return None

    def _end_dead_tasks(self) -> None:
        self._find_forgotten_tasks()
        now = self.clock()
        patience = datetime.timedelta(seconds=self.task_timeout)
        for task in self.tasks.dead(now - patience, now - HANDED_OVER_PATIENCE * patience):
            try:
                self._end_dead_task(task)
            except exception.InventoryError as error:
                LOG.warning('The conductor worker of the live migration of instance %s died. '
                            'Kronos could not end this migration in Nova, and will try again '
                            'later to end it: %s', task.instance_uuid, error)

    def _find_forgotten_tasks(self) -> None:
        """Record a lost task for each migration whose worker died before the worker recorded a
        task. Such a migration is recognised by its age."""
        old = [each for each in self.nova.accepted() if each.settled_for > self.limits.stalled]
        if old:
            known = self.tasks.in_progress()
            for migration in old:
                if migration.uuid not in known:
                    self.tasks.find_lost(migration.uuid, migration.instance_uuid)

    def _free_forgotten_instances(self) -> None:
        """Clear the task_state of instances whose request for a migration was lost. A request is
        lost if a worker dies right after it has received the request. The task_state that Nova set
        for the request then remains.

        A task_state is cleared only ``stalled`` seconds after Nova has set it. By then the request
        is not in the queue any more: this process takes requests from the same queue, and would
        have received the request.
        """
        before = self.clock() - datetime.timedelta(seconds=self.limits.stalled)
        marked = self.nova.marked(before)
        if marked:
            for uuid in sorted(marked - self.tasks.instances()):
                try:
                    self.nova.set_free(uuid, before)
                except exception.InventoryError as error:
                    LOG.warning('Kronos could not check whether the task_state of instance %s is '
                                'stale, and will check again later: %s', uuid, error)

    def _end_dead_task(self, task: Task) -> None:
        """End a task whose worker is dead. After an error the record of the task is kept, and the
        next run tries again."""
        if not self.tasks.lose(task):
            return
        if task.state in UNBEGUN:
            self._end_unbegun_task(task)
        elif self.nova.give_up(task.migration_uuid):
            self.tasks.end(task.migration_uuid)

    def _end_unbegun_task(self, task: Task) -> None:
        """End a task whose worker died before it recorded the uuid of a migration. If Nova has
        created a migration nevertheless, end this migration as well. Otherwise clear the task_state
        of the instance."""
        died = task.beat_at + LAST_BREATH
        known = self.tasks.in_progress()
        left = [uuid for uuid in self.nova.unbegun(task.instance_uuid, died) if uuid not in known]
        for uuid in left:
            self.tasks.find_lost(uuid, task.instance_uuid)
        if not left:
            self.nova.set_free(task.instance_uuid, died)
        self.tasks.end(task.migration_uuid)
        for uuid in left:
            if self.nova.give_up(uuid):
                self.tasks.end(uuid)


def _logged(outcome: heal.Outcome) -> heal.Outcome:
    say = LOG.info if outcome.state == repairs.HEALED else LOG.warning
    say('Allocations of instance %s (%s): %s: %s', outcome.finding.instance,
        outcome.finding.evidence, outcome.state, outcome.detail)
    return outcome
