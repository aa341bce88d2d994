"""The interface through which the executor requests migrations from Nova and follows them."""

import dataclasses
import datetime
from collections.abc import Iterable
from typing import Protocol

from kronos_nova.objects import migration_status
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.snapshot import Service

CLOCK_SLACK = datetime.timedelta(seconds=5)
"""Difference between the clocks of controllers up to which a migration is found by its time."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceState:
    """The host and the state of an instance."""

    host: str
    status: str
    task_state: str | None = None
    locked: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MigrationState:
    """A migration record of Nova. ``was_started`` is true once nova-compute was asked to begin:
    that of the source, or for a cold migration that of the destination. ``fault`` is Nova's error,
    empty where there is none. ``is_outage`` is true if a service that did not answer caused the
    fault. Memory is in bytes, None where the hypervisor's driver does not report it.
    """

    uuid: str
    status: str
    was_started: bool
    fault: str = ''
    is_outage: bool = False
    memory_total: int | None = None
    memory_remaining: int | None = None
    memory_processed: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ListedMigration:
    """A migration of an instance as Nova lists it. ``number`` is Nova's id, which is higher for
    later migrations."""

    number: int
    uuid: str
    status: str
    source: str | None
    created_at: datetime.datetime


class RequestedMigrations:
    """The search for the migration that a move requested.

    The time of a migration is from a clock of Nova, and the time of a move is from a clock of
    Kronos. So the two times are compared only where nothing else identifies the migration. This is
    the case where another process made the request and the migration has ended.
    """

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def about_to_ask(self, move: MoveRecord, listed: Iterable[ListedMigration]) -> None:
        """Remember the newest migration of the instance, before the migration of a move is
        requested from Nova."""
        self._newest[move.uuid] = max((each.number for each in listed), default=0)

    def forget(self, move: MoveRecord) -> None:
        """Forget what :meth:`about_to_ask` remembered for a try of a move that has ended."""
        self._newest.pop(move.uuid, None)

    def find(self, move: MoveRecord, listed: Iterable[ListedMigration]) -> ListedMigration | None:
        """Return the oldest migration that the move may have requested; None where there is none.
        Nova runs one migration of an instance at a time, so a later migration cannot be the
        requested one.

        :param listed: all migrations of the instance that are of the move's kind
        """
        return min((each for each in listed if self._is_ours(move, each)),
                   key=lambda each: each.number, default=None)

    def _is_ours(self, move, migration):
        if move.migration_uuid:
            return migration.uuid == move.migration_uuid
        if move.uuid in self._newest:
            return migration.number > self._newest[move.uuid]
        if migration.source == move.source and migration.status not in migration_status.ENDED:
            return True
        return (move.requested_at is not None and
                migration.created_at >= move.requested_at - CLOCK_SLACK)


class ComputeApi(Protocol):
    """Nova, in-process or by its public API. Every method raises NovaClientError when Nova does not
    answer."""

    def instance(self, uuid: str) -> InstanceState | None:
        """Return an instance, or None if it was deleted."""

    def service(self, host: str) -> Service | None:
        """Return the nova-compute service of a host, or None when there is none."""

    def hold_room(self, move: MoveRecord) -> None:
        """Have the destination hold room for the instance. Harmless when repeated.

        Nothing happens where the destination has no two-phase claims. If this process dies before
        it releases the room, the claim expires.

        :raises PreFlightError: the instance does not fit there
        """

    def release_room(self, move: MoveRecord, has_moved: bool) -> None:
        """Release the room of a move that has ended: the room belongs to the instance now, or is
        free again. Harmless when no room is held. Raises no error."""

    def live_migrate(self, move: MoveRecord) -> None:
        """Ask for the live migration, under the request id ``req-<uuid of the move>``, and do not
        wait for its end.

        :raises PreFlightError: Nova refused, and nothing has changed
        """

    def cold_migrate(self, move: MoveRecord) -> None:
        """Ask for a cold migration, like :meth:`live_migrate`."""

    def confirm(self, move: MoveRecord) -> None:
        """Ask Nova to confirm a cold migration. Harmless when repeated."""

    def migration(self, move: MoveRecord) -> MigrationState | None:
        """Return the migration that this move requested: by its uuid where the move has one, else
        the first one of the instance since the request; None while Nova has none."""

    def set_free(self, move: MoveRecord) -> bool:
        """Clear the task_state ``migrating`` of an instance whose request Nova has lost, because
        the service that received the request died before it made a migration.

        :returns: whether the task_state is cleared; False where a service may still act on the
            request
        """

    def abort(self, move: MoveRecord) -> bool:
        """Ask Nova to end a migration in progress. Harmless when it has ended or cannot be ended
        any more.

        :returns: whether Nova accepted; False where the migration cannot be ended now
        """

    def force_complete(self, move: MoveRecord) -> None:
        """Ask Nova to end a migration in progress by pausing the instance. Harmless when it has
        ended or cannot be forced."""
