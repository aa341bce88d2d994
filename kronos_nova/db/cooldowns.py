"""Cooldowns of aggregates and instances, and quarantines of instances."""

import dataclasses
import datetime
from collections.abc import Collection
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried
from kronos_nova.db.retry import retried_as_update
from kronos_nova.objects import plan as plans

CLOCKS_APART = datetime.timedelta(seconds=60)
"""Maximum difference (60 seconds) between the clocks of the nodes of a database cluster. A cooldown
counts as set by a wrong clock if the time at which it was set is farther in the future than this.
The next cooldown of the same aggregate or instance then replaces the end of such a cooldown.
Raised, cooldowns that a wrong clock wrote may last longer; lowered, a small difference between
clocks makes a valid cooldown shorter. Not measured."""

AGGREGATE = 'aggregate'
INSTANCE = 'instance'
SPREAD = 'spread'
"""Scope of a cooldown during which no moves that spread load are planned in an aggregate. All other
moves are planned."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cooldown:
    """A cooldown of aggregates or instances.

    scope : AGGREGATE, INSTANCE or SPREAD
    names : names of aggregates, or uuids of instances
    until : end of the cooldown. If a later end is already recorded, the later end is kept
    """

    scope: str
    names: Iterable[str]
    until: datetime.datetime


def begin(session: orm.Session, cooldowns: Iterable[Cooldown],
          now: datetime.datetime | None = None) -> None:
    """Begin some Cooldowns, within a transaction. Add 1 to the number of cooldowns of each
    aggregate or instance.

    The transaction has to be repeated after a duplicate key, because another worker may insert the
    same row.

    :param now: the present time; None to skip the check for a wrong clock. A wrong clock set a
        recorded cooldown if its ``set_at`` is more than :data:`CLOCKS_APART` after ``now``. The end
        of such a cooldown is replaced, even if the new end is earlier
    """
    for each in cooldowns:
        for name in each.names:
            row = session.get(models.CooldownRow, (each.scope, name))
            if row is None:
                row = models.CooldownRow(scope=each.scope, name=name, until=each.until, times=0)
                session.add(row)
            is_wrong = row.set_at and now and row.set_at > now + CLOCKS_APART
            row.until = each.until if is_wrong else max(row.until, each.until)
            row.times, row.set_at = row.times + 1, now


def end_unmoved(session: orm.Session, move_uuids: Collection[str], now: datetime.datetime) -> None:
    """End the cooldowns of instances that stay where they are, because their moves were abandoned
    before they were requested from Nova. Do this within the transaction that abandons the moves.

    Only cooldowns that began with the plans of these moves end. Three kinds of cooldowns continue:
    those of moves that an operator aborted, those of moves that were requested from Nova, and those
    of moves that empty hosts. Moves that empty hosts ignore cooldowns, so an instance may have been
    in a cooldown before.

    :param move_uuids: uuids of moves that were abandoned
    """
    move, row = models.MoveRow, models.CooldownRow
    for cooldown in session.scalars(sa.select(row).join(move, sa.and_(
            row.scope == INSTANCE, row.name == move.instance_uuid,
            row.set_at == move.checked_at)).where(
                move.uuid.in_(move_uuids), move.requested_at.is_(None),
                move.abort_requested.is_(False), move.phase != plans.EVACUATE)).all():
        cooldown.until, cooldown.times = min(cooldown.until, now), cooldown.times - 1


class Cooldowns:
    """The tables of cooldowns of aggregates and instances, and of quarantines of instances."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def cooling(self, now: datetime.datetime) -> dict[str, dict[str, float]]:
        """Return the cooldowns that are in force, as {scope: {name of an aggregate or uuid of an
        instance: seconds left}}. Scopes without cooldowns are in the result as well."""
        found: dict[str, dict[str, float]] = {AGGREGATE: {}, INSTANCE: {}, SPREAD: {}}
        with self.database.reader() as session:
            for row in session.scalars(sa.select(models.CooldownRow).where(
                    models.CooldownRow.scope.in_(found), models.CooldownRow.until > now)):
                found[row.scope][row.name] = (row.until - now).total_seconds()
        return found

    @retried
    def times(self) -> dict[str, int]:
        """Return {instance uuid: number of its cooldowns so far}. The more cooldowns an instance
        has had, the longer its next cooldown lasts."""
        with self.database.reader() as session:
            rows = session.scalars(sa.select(models.CooldownRow).where(
                models.CooldownRow.scope == INSTANCE))
            return {row.name: row.times for row in rows}

    @retried
    def forget(self, before: datetime.datetime) -> None:
        """Delete the cooldowns that ended before a time. For an instance whose cooldown is deleted,
        the number of cooldowns begins at 0 again."""
        with self.database.writer() as session:
            session.execute(sa.delete(models.CooldownRow).where(models.CooldownRow.until < before))

    @retried_as_update
    def quarantine(self, instance_uuid: str, seconds: float, reason: str,
                   now: datetime.datetime) -> None:
        """Put an instance in quarantine for ``seconds``. If ``seconds`` is -1, the quarantine lasts
        until an operator releases the instance."""
        until = None if seconds < 0 else now + datetime.timedelta(seconds=seconds)
        with self.database.writer() as session:
            session.merge(models.QuarantineRow(
                instance_uuid=instance_uuid, until=until, reason=reason, created_at=now))

    @retried
    def quarantined(self, now: datetime.datetime) -> dict[str, float]:
        """Return {instance uuid: seconds left} of the instances in quarantine. The seconds are -1
        if the quarantine has no end."""
        return {uuid: -1 if until is None else (until - now).total_seconds()
                for uuid, until, _reason, _since in self.quarantines(now)}

    @retried
    def quarantines(self, now: datetime.datetime) -> list[
            tuple[str, datetime.datetime | None, str, datetime.datetime]]:
        """Return [(instance uuid, until, reason, since)] of the instances in quarantine. ``since``
        is the time at which the quarantine began. ``until`` is the time at which it ends; None if
        the quarantine has no end."""
        with self.database.reader() as session:
            rows = session.scalars(sa.select(models.QuarantineRow).where(
                sa.or_(models.QuarantineRow.until.is_(None), models.QuarantineRow.until > now),
            ).order_by(models.QuarantineRow.created_at))
            return [(row.instance_uuid, row.until, row.reason, row.created_at) for row in rows]

    def release(self, instance_uuid: str) -> None:
        """End the quarantine of an instance.

        :raises QuarantineNotFound: the instance is in no quarantine
        """
        if not self._has_quarantine(instance_uuid):
            raise exception.QuarantineNotFound(instance=instance_uuid)
        self._release(instance_uuid)

    @retried
    def _has_quarantine(self, instance_uuid: str) -> bool:
        with self.database.reader() as session:
            return session.get(models.QuarantineRow, instance_uuid) is not None

    @retried
    def _release(self, instance_uuid: str) -> None:
        with self.database.writer() as session:
            session.execute(sa.delete(models.QuarantineRow).where(
                models.QuarantineRow.instance_uuid == instance_uuid))
