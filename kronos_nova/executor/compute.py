"""The port through which the executor requests migrations from Nova and follows them."""

import dataclasses
import datetime
from collections.abc import Iterable
from typing import Protocol

from kronos_nova.objects import migration_status
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.snapshot import Service

CLOCK_SLACK = datetime.timedelta(seconds=5)
"""By how much the clocks of controllers may differ where a migration is known by its time."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceState:
    """The host and the state of an instance."""

    host: str
    status: str
    task_state: str | None = None
    locked: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MigrationState:
    """A migration record. ``was_started`` tells whether the source compute was asked to begin, of a
    cold migration the destination, ``fault`` what went wrong, where Nova says so, and ``is_outage``
    whether that was something that did not answer.

    Memory in bytes, None where the hypervisor's driver does not say.
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
    """A migration of an instance as Nova lists it; ``number`` grows from one to the next."""

    number: int
    uuid: str
    status: str
    source: str | None
    created_at: datetime.datetime


class RequestedMigrations:
    """Finds the migration that a move requested.

    The time of a migration is written by another host's clock than the time of the move, so it
    decides only where nothing else does: another process asked, and the migration has ended.
    """

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def about_to_ask(self, move: MoveRecord, listed: Iterable[ListedMigration]) -> None:
        """Note the migrations that the instance has before Nova is asked for this one."""
        self._newest[move.uuid] = max((each.number for each in listed), default=0)

    def forget(self, move: MoveRecord) -> None:
        """Drop what is known of a try that has ended."""
        self._newest.pop(move.uuid, None)

    def find(self, move: MoveRecord, listed: Iterable[ListedMigration]) -> ListedMigration | None:
        """Return the oldest migration that may be the move's: Nova lets only one run at a time, so
        a later one cannot be.

        :param listed: all of the instance and of the move's kind
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
        """Have the destination hold room for the instance, where it can; harmless when repeated.

        Nothing happens where the destination has no claims in two phases. What is held and not
        released, because this process died, expires by itself.

        :raises PreFlightError: it does not fit there
        """

    def release_room(self, move: MoveRecord, has_moved: bool) -> None:
        """Release the room of a move that is over: it belongs to the instance now, or is free
        again. Harmless when nothing is held; raises nothing."""

    def live_migrate(self, move: MoveRecord) -> None:
        """Ask for the migration, under the request id ``req-<uuid of the move>``; does not wait for
        it.

        :raises PreFlightError: Nova said no, and nothing has changed
        """

    def cold_migrate(self, move: MoveRecord) -> None:
        """Ask for a cold migration; as :meth:`live_migrate` otherwise."""

    def confirm(self, move: MoveRecord) -> None:
        """Ask Nova to confirm a cold migration. Harmless when that was done or asked already."""

    def migration(self, move: MoveRecord) -> MigrationState | None:
        """Return the migration that this move requested: by its uuid where the move has one, else
        the first one of the instance since the request; None while Nova has none."""

    def set_free(self, move: MoveRecord) -> bool:
        """Free an instance that Nova marked as migrating and then forgot, as the service that took
        the request died before there was a migration.

        :returns: whether it is free; False where a service may still act on the request
        """

    def abort(self, move: MoveRecord) -> bool:
        """Ask Nova to end a migration in progress. Harmless when it has ended or cannot be ended
        any more.

        :returns: whether Nova will do it; False where it cannot be ended now
        """

    def force_complete(self, move: MoveRecord) -> None:
        """Ask Nova to end a migration in progress by pausing the instance. Harmless when it has
        ended or cannot be forced."""
