"""The interface through which the executor requests migrations from Nova and follows them."""

import dataclasses
import datetime
from collections.abc import Iterable
from typing import Protocol

from kronos_nova.objects import migration_status
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.snapshot import Service

CLOCK_SLACK = datetime.timedelta(seconds=5)
"""Maximum difference (5 seconds) between the clocks of controllers at which Kronos still finds a
requested migration by its time. A migration counts as the requested one if, by Nova's clock, it was
created after the request or at most this time before the request. Raised, an earlier migration of
the instance may be taken for the requested one; lowered, the requested migration may not be found
if clocks differ. Not measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceState:
    """The host and the state of an instance."""

    host: str
    status: str
    task_state: str | None = None
    locked: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MigrationState:
    """A migration record of Nova.

    ``was_started`` is true once a nova-compute was asked to begin: the nova-compute of the source
    for a live migration, and that of the destination for a cold migration. ``fault`` is Nova's
    error; '' if there is none. ``is_outage`` is true if the fault was caused by a service that did
    not answer. The amounts of memory are in bytes; None if the hypervisor's driver does not report
    them.
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
    """A finder of requested migrations: it finds the migration in Nova that the executor requested
    for a move.

    The migration is recognised by the first of these properties that is known:

    * The uuid of the migration, if the journal has the uuid.
    * The number of the migration, if this process made the request. The number is higher than the
      numbers of all migrations that had begun before the request.
    * The source of the migration, while the migration is in progress.
    * The time at which Nova created the migration. This property is the last one, because the
      clocks of Nova and of the executor may differ.
    """

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def about_to_ask(self, move: MoveRecord, listed: Iterable[ListedMigration]) -> None:
        """Remember the newest migration of the instance. Called before the migration of a move is
        requested from Nova, so that the new migration can be recognised by its higher number.

        A record with the status ``pre-migrating`` is left out: it is from an earlier request, and
        Nova uses it again for the new request.
        """
        self._newest[move.uuid] = max(
            (each.number for each in listed if each.status != migration_status.PRE_MIGRATING),
            default=0)

    def forget(self, move: MoveRecord) -> None:
        """Forget the migration that :meth:`about_to_ask` remembered, because the try of the move
        has ended."""
        self._newest.pop(move.uuid, None)

    def find(self, move: MoveRecord, listed: Iterable[ListedMigration]) -> ListedMigration | None:
        """Return the migration that was requested for the move; None if there is none. If several
        migrations match, return the oldest. Nova runs one migration of an instance at a time. So a
        later migration was requested after the migration of this move had ended, and does not
        belong to this move.

        :param listed: all migrations of the instance that are of the move's kind
        """
        return min((each for each in listed if self._is_ours(move, each)),
                   key=lambda each: each.number, default=None)

    def _is_ours(self, move: MoveRecord, migration: ListedMigration) -> bool:
        if move.migration_uuid:
            return migration.uuid == move.migration_uuid
        if move.uuid in self._newest:
            return migration.number > self._newest[move.uuid]
        if migration.source == move.source and migration.status not in migration_status.ENDED:
            return True
        return (move.requested_at is not None and
                migration.created_at >= move.requested_at - CLOCK_SLACK)


class ComputeApi(Protocol):
    """The protocol by which the executor uses Nova, in-process or by the public API. Every method
    raises NovaClientError if Nova does not answer."""

    def instance(self, uuid: str) -> InstanceState | None:
        """Return an instance, or None if it was deleted."""

    def service(self, host: str) -> Service | None:
        """Return the nova-compute service of a host; None if the host has no such service."""

    def hold_room(self, move: MoveRecord) -> None:
        """Have nova-compute on the destination reserve resources for the instance, before the
        migration is requested (a two-phase claim). A repeated call changes nothing.

        Nothing happens if this nova-compute does not support two-phase claims. If this process dies
        before it releases the resources, the claim expires.

        :raises PreFlightError: the instance does not fit on the destination
        """

    def release_room(self, move: MoveRecord, has_moved: bool) -> None:
        """Release the resources that :meth:`hold_room` reserved, once the move has ended. If no
        resources are reserved, nothing happens. No error is raised.

        :param has_moved: True if the instance has moved and uses the resources itself; False if the
            resources become free
        """

    def live_migrate(self, move: MoveRecord) -> None:
        """Request a live migration from Nova, and do not wait for its end. The request id is
        ``req-<uuid of the move>``.

        :raises PreFlightError: Nova refused, and nothing has changed
        """

    def cold_migrate(self, move: MoveRecord) -> None:
        """Request a cold migration from Nova, like :meth:`live_migrate`."""

    def confirm(self, move: MoveRecord) -> None:
        """Ask Nova to confirm the cold migration of a move. A repeated call does no harm. Such a
        call sends the request again if Nova permits this, because the first request may have been
        lost."""

    def migration(self, move: MoveRecord) -> MigrationState | None:
        """Return the migration that was requested for a move; None while Nova has none. If the
        journal does not have the uuid of the migration yet, the first migration of the instance
        since the request is returned."""

    def set_free(self, move: MoveRecord) -> bool:
        """Clear the task_state of an instance after Nova has lost the request for its migration.
        Nova sets the task_state ``migrating`` for a live migration, and ``resize_prep`` for a cold
        migration. Nova loses a request if the service that received the request dies before the
        service has created a migration.

        :returns: True if the task_state is cleared; False if it is not cleared, because a service
            may still act on the request
        """

    def abort(self, move: MoveRecord) -> bool:
        """Ask Nova to abort a migration in progress. Nothing happens if the migration has ended or
        cannot be aborted any more.

        :returns: True if Nova accepted; False if the migration cannot be aborted now
        """

    def force_complete(self, move: MoveRecord) -> bool:
        """Ask Nova to complete a migration in progress by pausing the instance. Nothing happens if
        the migration has ended or cannot be forced.

        :returns: True if Nova accepted; False if the migration cannot be forced now
        """
