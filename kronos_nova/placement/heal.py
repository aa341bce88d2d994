"""Repairs of the wrong allocations that an audit has found.

Each finding is examined again before its repair. If one of the consumers has changed since it was
read, its generation has changed, and placement refuses the repair. Each repair is recorded in a
journal, and can be undone.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Protocol

from kronos_nova import exception
from kronos_nova.objects import repair as repairs
from kronos_nova.objects.repair import Repair
from kronos_nova.placement import audit
from kronos_nova.placement import errors
from kronos_nova.placement import holdings
from kronos_nova.placement import ownership
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import MIGRATION
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.records import InstanceHistory
from kronos_nova.placement.records import NovaRecords


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of the repair of one finding. ``repair`` is the uuid of the repair in the journal;
    None if nothing was changed."""

    finding: audit.Finding
    state: str
    detail: str = ''
    repair: str | None = None


class RepairJournal(Protocol):
    """The protocol of a journal in which each repair is recorded before the repair is made."""

    def plan(self, repair: Repair) -> str:
        """Record the allocations before and after a repair that is about to be made. Return the
        uuid of the record."""

    def close(self, uuid: str, state: str, detail: str = '') -> None:
        """Record the end of a repair. ``state`` is healed, failed or undone.

        :raises RepairUnrecorded: the end cannot be recorded
        """

    def get(self, uuid: str) -> Repair | None:
        """Return a repair that was made and not undone; None if there is no such repair."""


class Healer:
    """The repair of the findings of one audit.

    :param client: client of placement
    :param nova: Nova's records, which are read again before each repair
    :param held: Holdings of the audit; only their provider trees and sharing providers are used
    :param rooms: callable that returns {uuid of a consumer: KeptRoom}, for the consumers that keep
        room at present
    """

    def __init__(self, client: PlacementClient, nova: NovaRecords, held: holdings.Holdings,
                 limits: audit.AuditLimits, journal: RepairJournal,
                 rooms: Callable[[], Mapping[str, audit.KeptRoom]] = dict):
        self._rooms = rooms
        self._client = client
        self._nova = nova
        self._holdings = held
        self._limits = limits
        self._journal = journal

    def examine(self, uuid: str, migrations: Iterable[str] = (), read: InstanceHistory | None = None
             ) -> tuple[audit.Finding | None, bool]:
        """Examine an instance and its migrations, as they are at present. Return (finding, whether
        the result is final).

        The finding is None if all allocations are right. The result is not final while an operation
        is in progress that may change the allocations.

        :param migrations: uuids of migrations that are examined regardless of their age
        :param read: history of the instance that the caller has just read; before a finding is
            returned, the history is read again
        """
        case = self._case(uuid, migrations, read)
        finding = self._judge_case(case)
        if finding is not None and read is not None:
            return self.examine(uuid, migrations)
        return finding, not audit.is_in_flight(case, self._limits)

    def heal(self, finding: audit.Finding) -> Outcome:
        """Examine a finding again, and repair the allocation if the finding still holds. A repair
        is recorded in the journal before it is made, and its outcome is recorded after it.

        A second call does nothing, because a repaired finding no longer holds. An error of
        placement or Nova is not raised, but is in the returned Outcome.
        """
        try:
            return self._heal(finding)
        except (exception.PlacementError, exception.InventoryError,
                exception.RepairUnrecorded) as error:
            return Outcome(finding=finding, state=repairs.FAILED, detail=str(error))

    def _heal(self, finding: audit.Finding) -> Outcome:
        case = self._case(finding.instance, finding.wanted or ())
        again = self._judge(finding, case)
        if again is None or again.wanted is None:
            return Outcome(finding=finding, state=repairs.SKIPPED,
                           detail='no longer so' if again is None else again.remedy)
        held = [self._consumer(case, uuid, again.is_room) for uuid in again.wanted]
        return self._apply(finding, again, self._ways(again, again.wanted, case), held)

    def _judge(self, finding: audit.Finding, case: audit.AuditCase) -> audit.Finding | None:
        if finding.is_room:
            room = self._rooms().get(finding.instance)
            return finding if case.held and (room is None or room.has_ended) else None
        if finding.kind != audit.UNKNOWN:
            return self._judge_case(case)
        is_known = case.instance or case.migrations or self._nova.migrations([finding.instance])
        return None if is_known or not case.held else finding

    def _judge_case(self, case: audit.AuditCase) -> audit.Finding | None:
        return audit.judge_exactly(case, self._nova, self._holdings, self._limits)

    def _case(self, uuid: str, holders: Iterable[str],
              read: InstanceHistory | None = None) -> audit.AuditCase:
        """Read an instance, its migrations, and the allocations of both.

        :param holders: uuids of the old migrations that may have allocations. Other old migrations
            are not read, because an instance may have hundreds of old migrations
        """
        # Placement is read before Nova. What Nova then reports as settled was settled at that time,
        # because Nova marks a move before placement changes.
        held = self._client.consumer(uuid).allocations
        if read is None:
            read = self._nova.histories({uuid: frozenset(holders)}).get(uuid)
        if read is None:
            raise exception.InventoryError(
                problem=f'the database of the cell of instance {uuid} does not answer')
        case = audit.AuditCase(
            uuid=uuid, instance=read.instance, held=held,
            migrations=tuple((migration, self._client.consumer(migration.uuid).allocations)
                             for migration in read.migrations))
        if not all(map(self._holdings.knows, (case.held, *(held for _, held in case.migrations)))):
            # A host has created a provider in the meantime, such as for a VGPU or a PCI device.
            self._holdings = holdings.read_providers(self._client)
        return case

    def _consumer(self, case: audit.AuditCase, uuid: str, is_room: bool) -> Consumer:
        """Read a consumer again.

        :raises ConsumerChanged: the consumer's allocations have changed since the case was examined
        """
        judged = {migration.uuid: held for migration, held in case.migrations} | {
            case.uuid: case.held}
        consumer = self._client.consumer(uuid)
        if consumer.allocations != judged[uuid]:
            raise errors.ConsumerChanged(
                problem=f'the allocations of consumer {uuid} changed while they were checked')
        if consumer.project_id is None and case.instance is not None:
            consumer = dataclasses.replace(consumer, project_id=case.instance.project_id,
                                           user_id=case.instance.user_id)
        kind = consumer.consumer_type if is_room else (
            INSTANCE if uuid == case.uuid else MIGRATION)
        return dataclasses.replace(consumer, consumer_type=kind)

    def _apply(self, finding: audit.Finding, again: audit.Finding,
               ways: Iterable[Mapping[str, Allocations]], held: Sequence[Consumer]) -> Outcome:
        last: errors.InsufficientInventory | None = None
        for wanted in ways:
            after = AllocationSet(tuple(each.holding(wanted[each.uuid]) for each in held))
            repair = self._journal.plan(Repair(
                kind=finding.kind, instance_uuid=finding.instance, evidence=again.evidence,
                before=AllocationSet(tuple(held)).to_body(), after=after.to_body()))
            try:
                self._client.post(after.changed_from(held))
            except errors.PlacementUnavailable:
                raise   # The repair may have been made: it stays in the journal and can be undone.
            except exception.PlacementError as error:
                self._journal.close(repair, repairs.FAILED, str(error))
                if not isinstance(error, errors.InsufficientInventory):
                    raise
                last = error
                continue
            detail = again.remedy
            try:
                self._journal.close(repair, repairs.HEALED)
            except exception.RepairUnrecorded as error:
                detail = f'{detail}. {error}'
            return Outcome(finding=finding, state=repairs.HEALED, detail=detail, repair=repair)
        return Outcome(finding=finding, state=repairs.FAILED,
                       detail=str(last or f'{finding.host} has no room for it, or not on the '
                                          'providers where its ports and devices lie, or lacks a '
                                          'trait that it requires'))

    def _ways(self, again: audit.Finding, wanted: Mapping[str, Allocations],
              case: audit.AuditCase) -> list[Mapping[str, Allocations]]:
        """Return the alternative repairs of a finding, each as {consumer: allocations of the
        consumer after the repair}. The repair that needs the fewest new providers comes first."""
        uuid = again.needs_candidate
        if uuid is None:
            return [wanted]
        kept = wanted[uuid]
        found = self._nova.candidates(uuid, kept)
        return [{**wanted, uuid: ownership.merged(candidate, kept)}
                for candidate in sorted(found, key=lambda each: len(each.keys() - case.held))]


def undo(client: PlacementClient, journal: RepairJournal, uuid: str) -> None:
    """Restore the allocations that the consumers of a repair had before the repair.

    :raises NothingToMove: there is no such repair, or the consumers' allocations have changed since
    :raises PlacementError: placement refused the change; nothing was changed
    :raises RepairUnrecorded: the allocations are restored, but the journal does not say so
    """
    repair = journal.get(uuid)
    if repair is None:
        raise errors.NothingToMove(problem=f'there is no repair {uuid} to undo: it does not exist, '
                                           'or is undone already')
    before, after = (AllocationSet.from_body(body) for body in (repair.before, repair.after))
    now = {consumer.uuid: client.consumer(consumer.uuid) for consumer in after.consumers}
    for consumer in after.consumers:
        if now[consumer.uuid].allocations != consumer.allocations:
            raise errors.NothingToMove(
                problem=f'the allocations of consumer {consumer.uuid} have changed since the '
                        f'repair {uuid}')
    restored = [_as_of(now[consumer.uuid], consumer) for consumer in before.consumers]
    client.post(AllocationSet(tuple(restored)).changed_from(now.values()))
    journal.close(uuid, repairs.UNDONE)


def _as_of(now: Consumer, consumer: Consumer) -> Consumer:
    return dataclasses.replace(consumer, generation=now.generation,
                               project_id=consumer.project_id or now.project_id,
                               user_id=consumer.user_id or now.user_id)
