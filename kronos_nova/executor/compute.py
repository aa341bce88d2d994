"""The port through which the executor asks Nova to migrate, and watches."""

import dataclasses
from typing import Protocol

from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.snapshot import Service


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceState:
    """Where an instance is, and how."""

    host: str
    status: str
    task_state: str | None = None
    locked: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MigrationState:
    """A migration record. ``was_started`` tells whether the source compute was asked to begin,
    ``fault`` what went wrong, where Nova says so, and ``is_outage`` whether that was something that
    did not answer.

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


class ComputeApi(Protocol):
    """Nova, in-process or by its public API. Every method raises NovaClientError when Nova does not
    answer."""

    def instance(self, uuid: str) -> InstanceState | None:
        """The instance, or None when there is none any more."""

    def service(self, host: str) -> Service | None:
        """The nova-compute service of a host, or None when there is none."""

    def hold_room(self, move: MoveRecord) -> None:
        """Have the destination hold room for the instance, where it can; harmless when repeated.

        Nothing happens where the destination has no claims in two phases. What is held and not
        released, because this process died, expires by itself.

        :raises PreFlightError: it does not fit there
        """

    def release_room(self, move: MoveRecord, has_moved: bool) -> None:
        """The move is over: what was held belongs to the instance now, or is given back. Harmless
        when nothing is held; raises nothing."""

    def live_migrate(self, move: MoveRecord) -> None:
        """Ask for the migration, under the request id ``req-<uuid of the move>``; does not wait for
        it.

        :raises PreFlightError: Nova said no, and nothing has changed
        """

    def cold_migrate(self, move: MoveRecord) -> None:
        """Ask for a cold migration of a stopped instance; as :meth:`live_migrate` otherwise."""

    def confirm(self, move: MoveRecord) -> None:
        """Ask Nova to confirm a cold migration. Harmless when that was done or asked already."""

    def migration(self, move: MoveRecord) -> MigrationState | None:
        """The migration that this move asked for: by its uuid where the move has one, else the
        first one of the instance since the request; None when Nova has none (yet).
        """

    def set_free(self, move: MoveRecord) -> bool:
        """Free an instance that Nova marked as migrating and then forgot: whoever took the request
        died before there was a migration.

        :returns: whether it is free; False where somebody may still act on the request
        """

    def abort(self, move: MoveRecord) -> bool:
        """Ask Nova to end a migration under way. Harmless when it has ended or cannot be ended any
        more.

        :returns: whether Nova will do it; False where it cannot be ended now
        """

    def force_complete(self, move: MoveRecord) -> None:
        """Ask Nova to end a migration under way by pausing the instance. Harmless when it has ended
        or cannot be forced."""
