"""The plans in the journal, from the time at which a plan is recorded until the plan ends."""

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils
from sqlalchemy import orm

from kronos_nova import exception
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import models
from kronos_nova.db import notifications
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.db.retry import retried_as_update
from kronos_nova.drain import states as drains
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import notification as n
from kronos_nova.objects import plan as plans
from kronos_nova.objects import transitions
from kronos_nova.objects.plan import PlanRecord

PLANNING = 'planning'

WAITING = (plans.PROPOSED, plans.APPROVED)
"""States of plans that wait for approval or for their start."""

_REMEDIES = {plans.APPROVED: ' "plan reject" withdraws the approval.',
             plans.EXECUTING: ' "move abort --plan {plan}" ends its moves.'}
"""{state of a plan that can be neither approved nor rejected: the operator's remedy}."""

TOLD_WHEN_MADE = {plans.PROPOSED: n.PLAN_PROPOSED, plans.EXECUTING: n.PLAN_APPROVED}
"""{state of a new plan: type of the notification about the plan}. A plan that starts at once counts
as approved."""


class Plans:
    """The plans in the journal."""

    database: Database

    def record_plan(self, report: plans.AggregateReport, state: str, now: datetime.datetime,
                    expires_at: datetime.datetime, start_interval: float = 0.0,
                    purpose: str = automation.BALANCE,
                    kinds: Mapping[str, str] = MappingProxyType({}), uuid: str | None = None,
                    cooldowns: Collection[db_cooldowns.Cooldown] = ()) -> str:
        """Record a plan. If ``state`` is EXECUTING, the plan's moves are recorded as well, so that
        they can be dispatched.

        An aggregate at level ``observe`` often gets the same plan again. If the moves are the same
        as those of the aggregate's last plan, no new row is written. Instead, the row of the last
        plan records that it was seen once more.

        :param report: AggregateReport
        :param start_interval: seconds between the due times of two consecutive moves
        :param purpose: BALANCE, REPAIR, DRAIN or MAKE_ROOM
        :param kinds: {uuid of an instance that is not migrated live: kind of its move}
        :param uuid: uuid of the plan; None for a new uuid
        :param cooldowns: Cooldowns that begin with the plan, in the same transaction
        :returns: the plan's uuid
        :raises PlanPending: the aggregate already has an open plan, from this or another worker
        """
        return self._record_plan(uuid or uuidutils.generate_uuid(), report, state, now, expires_at,
                                 start_interval, purpose, kinds, cooldowns)

    @retried_as_update
    def _record_plan(self, uuid: str, report: plans.AggregateReport, state: str,
                     now: datetime.datetime, expires_at: datetime.datetime, start_interval: float,
                     purpose: str, kinds: Mapping[str, str],
                     cooldowns: Collection[db_cooldowns.Cooldown]) -> str:
        with rows.serialized(self.database, PLANNING) as session:
            # An earlier try wrote the row, and its answer was lost.
            if session.get(models.PlanRow, uuid):
                return uuid
            if state in plans.OPEN:
                _refuse_second_plan(session, report.name)
            fingerprint = _fingerprint(report.moves)
            if state == plans.OBSERVED and (
                    same := _saw_again(session, report, fingerprint, now)) is not None:
                return same
            plan = models.PlanRow(
                uuid=uuid, aggregate=report.name, mode=report.mode,
                planner=report.planner, state=state, created_at=now, expires_at=expires_at,
                combined_before=report.combined_before, combined_after=report.combined_after,
                move_count=len(report.moves), fingerprint=fingerprint, last_seen_at=now,
                purpose=purpose)
            session.add(plan)
            session.flush()
            session.add(models.ReportRow(plan_uuid=plan.uuid, created_at=now,
                                         body=report.to_summary_json()))
            if state == plans.EXECUTING:
                _add_moves(session, plan, report.moves, now, start_interval, kinds)
            db_cooldowns.begin(session, cooldowns, now)
            if state in TOLD_WHEN_MADE:
                notifications.plan(session, plan.uuid, TOLD_WHEN_MADE[state], now)
            return plan.uuid

    @retried
    def end_plan(self, uuid: str, old: str, new: str, why: str, now: datetime.datetime) -> None:
        """End a plan, if it is still in the state ``old``.

        :param why: reason that is recorded
        :raises IllegalPlanTransition: a plan is not allowed to change from ``old`` to ``new``
        """
        with rows.serialized(self.database, PLANNING) as session:
            _enter(session, uuid, (old,), new, now, n.PLAN_VOID, ended_because=why)

    @retried
    def end_waiting(self, aggregate: str | None, state: str, why: str,
                    now: datetime.datetime) -> None:
        """End the plans of an aggregate that wait for approval or for their start.

        :param aggregate: name of the aggregate; None for every aggregate
        :param state: SUPERSEDED or VOID
        """
        query = sa.select(models.PlanRow.uuid).where(models.PlanRow.state.in_(WAITING))
        if aggregate is not None:
            query = query.where(models.PlanRow.aggregate == aggregate)
        with rows.serialized(self.database, PLANNING) as session:
            for uuid in session.scalars(query).all():
                _enter(session, uuid, WAITING, state, now, n.PLAN_VOID, ended_because=why)

    @retried
    def proposed_plans(self) -> list[PlanRecord]:
        """Return PlanRecords of the plans that wait for approval."""
        with self.database.reader() as session:
            return _records(session, _with_reports().where(models.PlanRow.state == plans.PROPOSED))

    @retried
    def note_outlook(self, uuid: str, combined: float | None, now: datetime.datetime) -> None:
        """Save the combined imbalance that a proposed plan would reach with the present load.

        :param combined: the combined imbalance; None if it is not known
        """
        with self.database.writer() as session:
            session.execute(sa.update(models.PlanRow).where(
                models.PlanRow.uuid == uuid, models.PlanRow.state == plans.PROPOSED,
            ).values(combined_now=combined, last_seen_at=now))

    @retried
    def approve_plan(self, uuid: str, chosen: Collection[plans.PlannedMove], approved_by: str,
                     now: datetime.datetime) -> None:
        """Approve a proposed or observed plan. The plan starts later, after a check that its moves
        still fit the cloud.

        :param chosen: the Moves that may run; other moves of the plan are left out
        :raises PlanNotFound: there is no such plan
        :raises PlanNotWaiting: the plan was already approved or rejected, or is too old
        :raises PlanPending: the plan is observed, and its aggregate has an open plan
        """
        with rows.serialized(self.database, PLANNING) as session:
            if rows.has(session, models.PlanRow, uuid, approved_at=now, approved_by=approved_by):
                return
            plan = _still(session, uuid, plans.APPROVABLE, now)
            if plan.state == plans.OBSERVED:
                _refuse_second_plan(session, plan.aggregate)
            left_out = _keep_moves(session, plan, chosen)
            _enter(session, uuid, plans.APPROVABLE, plans.APPROVED, now, n.PLAN_APPROVED,
                   approved_at=now, approved_by=approved_by, ended_because=_left_out(
                       dict.fromkeys(left_out, f'left out by {approved_by}')))

    @retried_as_update
    def start_plan(self, uuid: str, chosen: Collection[plans.PlannedMove], now: datetime.datetime,
                   start_interval: float = 0.0, left_out: Mapping[int, str] | None = None,
                   cooldowns: Collection[db_cooldowns.Cooldown] = ()) -> None:
        """Start an approved plan. If ``chosen`` is empty, end the plan as VOID instead. A move that
        becomes too old is not started; the age of the moves is counted from ``now``, because they
        were just checked.

        :param chosen: the Moves that still help; other moves of the plan are left out
        :param left_out: {order of a move: reason why the move is left out}
        :param start_interval: seconds between the due times of two consecutive moves
        :param cooldowns: Cooldowns that begin in the same transaction, if the plan starts
        :raises PlanNotFound: there is no such plan
        :raises PlanNotWaiting: the plan is not approved
        """
        with rows.serialized(self.database, PLANNING) as session:
            if (rows.has(session, models.PlanRow, uuid, state=plans.VOID, finished_at=now)
                    or _has_moves_of(session, uuid, now)):
                return
            plan = _still(session, uuid, (plans.APPROVED,), now)
            why = '\n'.join(filter(None, (plan.ended_because, _left_out(left_out or {})))) or None
            if not chosen:
                _enter(session, uuid, (plans.APPROVED,), plans.VOID, now, n.PLAN_VOID,
                       ended_because=why)
                return
            _keep_moves(session, plan, chosen)
            _enter(session, uuid, (plans.APPROVED,), plans.EXECUTING, now, detail=None,
                   ended_because=why)
            _add_moves(session, plan, chosen, now, start_interval)
            db_cooldowns.begin(session, cooldowns, now)

    @retried
    def postpone_plan(self, uuid: str, why: str) -> None:
        """Record why an approved plan is not started yet. A plan in another state is not
        changed."""
        with self.database.writer() as session:
            session.execute(sa.update(models.PlanRow).where(
                models.PlanRow.uuid == uuid, models.PlanRow.state == plans.APPROVED,
            ).values(detail=why))

    @retried
    def approved_plans(self) -> list[PlanRecord]:
        """Return PlanRecords of the approved plans, which wait to be checked and started."""
        with self.database.reader() as session:
            return _records(session, _with_reports().where(models.PlanRow.state == plans.APPROVED))

    @retried_as_update
    def close_plans(self, now: datetime.datetime,
                    cooldown: datetime.timedelta | None = None) -> None:
        """End the plans that are too old to start, and the running plans whose moves have all
        ended.

        A proposed or approved plan expires if it has not started by its ``expires_at``. A running
        plan is done once all its moves have ended and are settled (the consequences of their end
        are recorded).

        :param cooldown: length of the cooldown of the aggregates whose running plans end, which
            begins in the same transaction; None for no cooldown
        """
        plan = models.PlanRow
        too_late = sa.and_(plan.state.in_(WAITING), plan.expires_at < now)
        with self.database.reader() as session:
            expired = session.scalars(sa.select(plan.uuid).where(too_late)).all()
            ended = session.scalars(_ended_plans()).all()
        if not expired and not ended:
            return
        with self.database.writer() as session:
            # The state is checked again, so that only one of two workers makes the change.
            for uuid in expired:
                _enter(session, uuid, WAITING, plans.EXPIRED, now, n.PLAN_VOID)
            done = [aggregate for uuid, aggregate in session.execute(
                sa.select(plan.uuid, plan.aggregate).where(plan.uuid.in_(ended))).all()
                if _enter(session, uuid, (plans.EXECUTING,), plans.DONE, now, n.PLAN_FINISHED)]
            if cooldown is not None:
                db_cooldowns.begin(session, [db_cooldowns.Cooldown(
                    db_cooldowns.AGGREGATE, done, now + cooldown)], now)

    @retried
    def reject_plan(self, uuid: str, rejected_by: str, now: datetime.datetime) -> None:
        """Reject a plan that waits for approval, or that is approved and has not started.

        :raises PlanNotFound: there is no such plan
        :raises PlanNotWaiting: the plan has started or ended
        """
        why = f'rejected by {rejected_by}'
        with rows.serialized(self.database, PLANNING) as session:
            if rows.has(session, models.PlanRow, uuid, state=plans.REJECTED, finished_at=now,
                        ended_because=why):
                return
            _still(session, uuid, WAITING, now)
            _enter(session, uuid, WAITING, plans.REJECTED, now, n.PLAN_VOID, ended_because=why)

    @retried
    def aggregates_with_open_plans(self) -> Sequence[str]:
        """Return the names of the aggregates that have a plan that waits or runs."""
        with self.database.reader() as session:
            return session.scalars(sa.select(models.PlanRow.aggregate).where(
                models.PlanRow.state.in_(plans.OPEN))).all()

    @retried
    def plans_under_way(self) -> list[tuple[str, str, str]]:
        """Return [(aggregate, uuid, state)] of the plans that wait or run."""
        with self.database.reader() as session:
            return [tuple(row) for row in session.execute(sa.select(
                models.PlanRow.aggregate, models.PlanRow.uuid, models.PlanRow.state).where(
                    models.PlanRow.state.in_(plans.OPEN)))]

    @retried
    def running_plans(self) -> list[plans.RunningPlan]:
        """Return RunningPlans of the plans in the state EXECUTING."""
        with self.database.reader() as session:
            return [rows.running_plan(row) for row in session.execute(sa.select(
                models.PlanRow.uuid, models.PlanRow.aggregate, models.PlanRow.purpose,
                models.PlanRow.approved_at).where(models.PlanRow.state == plans.EXECUTING))]

    @retried
    def open_plans(self) -> list[PlanRecord]:
        """Return PlanRecords of the plans that wait or run."""
        with self.database.reader() as session:
            return _records(session, _with_reports().where(models.PlanRow.state.in_(plans.OPEN)))

    @retried
    def plans(self, aggregate: str | None = None, limit: int | None = 50) -> list[PlanRecord]:
        """Return PlanRecords of the plans of an aggregate, or of all aggregates, the newest
        first."""
        query = _with_reports().order_by(models.PlanRow.created_at.desc()).limit(limit)
        if aggregate is not None:
            query = query.where(models.PlanRow.aggregate == aggregate)
        with self.database.reader() as session:
            return _records(session, query)

    @retried
    def plan(self, uuid: str) -> PlanRecord:
        """Return a plan by its uuid.

        :raises PlanNotFound: there is no such plan
        """
        with self.database.reader() as session:
            found = _records(session, _with_reports().where(models.PlanRow.uuid == uuid))
        if not found:
            raise exception.PlanNotFound(plan=uuid)
        return found[0]

    @retried
    def hosts_being_emptied(self) -> set[str]:
        """Return the names of the hosts that are being emptied by running plans. Hosts are emptied
        for maintenance, or to have free hosts."""
        other = sa.orm.aliased(models.MoveRow)
        # These moves make room on a host for instances that arrive there, so the host is not
        # emptied.
        gives_way = sa.exists().where(other.plan_uuid == models.MoveRow.plan_uuid,
                                      other.phase == plans.EVACUATE,
                                      other.destination == models.MoveRow.source)
        evacuated = sa.select(models.MoveRow.source).join(
            models.PlanRow, models.PlanRow.uuid == models.MoveRow.plan_uuid,
        ).where(models.PlanRow.state == plans.EXECUTING, models.MoveRow.phase == plans.EVACUATE,
                ~gives_way)
        packed = sa.select(models.ReportRow.body).join(
            models.PlanRow, models.PlanRow.uuid == models.ReportRow.plan_uuid).where(
            models.PlanRow.state == plans.EXECUTING, models.PlanRow.mode == plans.PACK)
        with self.database.reader() as session:
            hosts = set(session.scalars(evacuated))
            for report in session.scalars(packed):
                hosts.update(plans.AggregateReport.from_json(report).hosts_emptied)
            return hosts


def stop_approved(session: orm.Session, aggregate: str | None, why: str,
                  now: datetime.datetime) -> dict[str, int]:
    """End the plans that are approved and have not started.

    :param session: session of a transaction under the lock :data:`PLANNING`
    :param aggregate: name of the aggregate; None for every aggregate
    :returns: {uuid of such a plan: number of its moves}
    """
    is_approved = models.PlanRow.state == plans.APPROVED
    waiting = sa.select(models.PlanRow.uuid, models.PlanRow.move_count).where(is_approved)
    if aggregate is not None:
        waiting = waiting.where(models.PlanRow.aggregate == aggregate)
    return {uuid: count for uuid, count in session.execute(waiting).all()
            if _enter(session, uuid, (plans.APPROVED,), plans.STOPPED, now, n.PLAN_VOID,
                      ended_because=why)}


def _refuse_second_plan(session: orm.Session, aggregate: str) -> None:
    existing = session.scalars(sa.select(models.PlanRow.uuid).where(
        models.PlanRow.aggregate == aggregate, models.PlanRow.state.in_(plans.OPEN))).first()
    if existing is not None:
        raise exception.PlanPending(aggregate=aggregate, plan=existing)


def _has_moves_of(session: orm.Session, uuid: str, now: datetime.datetime) -> bool:
    """Return whether an earlier try has already written the moves of a plan, and its answer was
    lost. The time of the moves shows that they are from this call."""
    query = sa.select(models.MoveRow.uuid).where(
        models.MoveRow.plan_uuid == uuid, models.MoveRow.checked_at == now)
    return session.scalars(query.limit(1)).first() is not None


def _still(session: orm.Session, uuid: str, states: Collection[str],
           now: datetime.datetime) -> models.PlanRow:
    """Return the row of a plan, if the plan is still in one of ``states``.

    :raises PlanNotFound: there is no such plan
    :raises PlanNotWaiting: the plan is in another state, or is too old
    """
    plan = rows.find(session, models.PlanRow, uuid, exception.PlanNotFound(plan=uuid))
    if plan.state not in states:
        raise exception.PlanNotWaiting(plan=uuid, state=plan.state, since=_since(plan.finished_at),
                                       remedy=_REMEDIES.get(plan.state, '').format(plan=uuid))
    expires_at = plan.expires_at
    if plan.state == plans.OBSERVED and plan.last_seen_at:
        # A plan that was seen again expires as if it had been made when it was last seen.
        expires_at += plan.last_seen_at - plan.created_at
    if expires_at < now:
        raise exception.PlanNotWaiting(plan=uuid, state=plans.EXPIRED, since=_since(expires_at),
                                       remedy='')
    return plan


def _since(time: datetime.datetime | None) -> str:
    return f' since {time:%Y-%m-%d %H:%M:%S} UTC' if time else ''


def _with_reports() -> sa.Select[tuple[models.PlanRow, str]]:
    """Return a query of plans with their reports. The report is null for an old plan whose report
    was deleted."""
    return sa.select(models.PlanRow, models.ReportRow.body).outerjoin(
        models.ReportRow, models.ReportRow.plan_uuid == models.PlanRow.uuid)


def _records(session: orm.Session,
             query: sa.Select[tuple[models.PlanRow, str]]) -> list[PlanRecord]:
    return [rows.record(PlanRecord, plan, report=report)
            for plan, report in session.execute(query)]


def _ended_plans() -> sa.Select[tuple[str]]:
    """Return a query of the uuids of running plans whose moves have all ended and are settled. A
    move is settled once the consequences of its end are recorded."""
    plan, move = models.PlanRow, models.MoveRow
    return sa.select(plan.uuid).where(
        plan.state == plans.EXECUTING, ~sa.exists().where(
            move.plan_uuid == plan.uuid,
            sa.or_(move.state.not_in(moves.TERMINAL), move.settled_at.is_(None))))


def _enter(session: orm.Session, uuid: str, olds: Sequence[str], new: str, now: datetime.datetime,
           event_type: str | None = None, **values: Any) -> bool:
    """Change the state of a plan to ``new``, if the plan is in one of the states ``olds``.

    :param event_type: type of the notification about the change; None for no notification
    :returns: whether the state was changed
    :raises IllegalPlanTransition: a plan in one of ``olds`` is not allowed to change to the new
        state
    """
    illegal = [old for old in olds if new not in transitions.PLAN_TRANSITIONS[old]]
    if illegal:
        raise exception.IllegalPlanTransition(plan=uuid, old=illegal[0], new=new)
    if not transitions.PLAN_TRANSITIONS[new]:
        values['finished_at'] = now
    is_changed = _write_state(session, sa.and_(
        models.PlanRow.uuid == uuid, models.PlanRow.state.in_(olds)), new, values)
    if is_changed and event_type is not None:
        notifications.plan(session, uuid, event_type, now)
    return is_changed


def void_unreadable(session: orm.Session, uuid: str, now: datetime.datetime) -> None:
    """Set the state of a plan to VOID. The caller has found that the plan's present state is not
    one that this version of Kronos knows."""
    _write_state(session, models.PlanRow.uuid == uuid, plans.VOID, {
        'finished_at': now, 'ended_because': 'its state could not be read'})


def _write_state(session: orm.Session, which: sa.ColumnElement[bool], new: str,
                 values: Mapping[str, Any]) -> bool:
    """Write the state ``new`` and the columns ``values`` of the plan that matches the condition
    ``which``. No other function writes states of plans.

    :returns: whether exactly one plan matched
    """
    session.flush()
    return count_changed(session, sa.update(models.PlanRow).where(which).values(
        state=new, **values)) == 1


def _keep_moves(session: orm.Session, plan: models.PlanRow,
                chosen: Collection[plans.PlannedMove]) -> list[int]:
    """Remove all moves except ``chosen`` from a plan's report. If any move is removed, also remove
    the expected imbalances, because they were computed for all moves together.

    :returns: numbers (``order``) of the moves that are left out
    """
    report = rows.find(session, models.ReportRow, plan.uuid, exception.PlanNotWaiting(
        plan=plan.uuid, state=plans.EXPIRED, since='', remedy=''))
    kept = plans.AggregateReport.from_json(report.body)
    left_out = sorted({move.order for move in kept.moves} - {move.order for move in chosen})
    if left_out:
        kept = dataclasses.replace(kept, moves=tuple(chosen), combined_after=None, policies=tuple(
            dataclasses.replace(policy, imbalance_after=None) for policy in kept.policies))
        report.body, plan.combined_after = kept.to_summary_json(), None
        plan.move_count, plan.fingerprint = len(chosen), _fingerprint(chosen)
    return left_out


def _fingerprint(chosen: Iterable[plans.PlannedMove]) -> str:
    """Return a fingerprint of the moves of a plan.

    Plans have equal fingerprints if they move the same instances between the same hosts in the same
    phases. The fingerprint does not depend on imbalances and loads.
    """
    said = sorted((move.phase, move.instance_uuid, move.source, move.destination)
                  for move in chosen)
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _last_plan(session: orm.Session, aggregate: str) -> models.PlanRow | None:
    return session.scalars(sa.select(models.PlanRow).where(
        models.PlanRow.aggregate == aggregate,
    ).order_by(models.PlanRow.created_at.desc()).limit(1)).first()


def _saw_again(session: orm.Session, report: plans.AggregateReport, fingerprint: str,
               now: datetime.datetime) -> str | None:
    """Record that the aggregate's last plan was seen once more, if the last plan was only observed
    and has the same moves as the new plan. Return the uuid of the last plan if this was recorded;
    None otherwise. The last plan also has to have its report, which may have been deleted
    since."""
    last = _last_plan(session, report.name)
    if (last is None or (last.state, last.fingerprint) != (plans.OBSERVED, fingerprint)
            or session.get(models.ReportRow, last.uuid) is None):
        return None
    last.last_seen_at, last.times_seen = now, last.times_seen + 1
    last.combined_before, last.combined_after = report.combined_before, report.combined_after
    return last.uuid


def _add_moves(session: orm.Session, plan: models.PlanRow, chosen: Iterable[plans.PlannedMove],
               now: datetime.datetime, start_interval: float,
               kinds: Mapping[str, str] = MappingProxyType({})) -> None:
    for position, move in enumerate(sorted(
            chosen, key=lambda move: (move.begins_after or 0.0, move.order))):
        row = models.MoveRow(
            uuid=uuidutils.generate_uuid(), plan_uuid=plan.uuid, aggregate=plan.aggregate,
            ordinal=move.order, depends_on=json.dumps(sorted(move.depends_on)), group=move.group,
            only_makes_room=move.only_makes_room, phase=move.phase,
            instance_uuid=move.instance_uuid, source=move.source, destination=move.destination,
            memory_mb=move.memory_mb, reason=move.reason, state=moves.PLANNED,
            created_at=plan.created_at, checked_at=now, project_id=move.project_id or None,
            caused_by=move.caused_by or None,
            kind=kinds.get(move.instance_uuid, drains.LIVE),
            not_before=now + datetime.timedelta(seconds=position * start_interval),
            position=position,
            expected_seconds=move.expected_seconds,
            expected_downtime=move.expected_downtime)
        session.add(row)
        session.flush()
        rows.note(session, [row.uuid], (None, row.state), now, None, 'planned')


def _left_out(reasons: Mapping[int, str]) -> str | None:
    """Return a text that lists the moves that were left out of a plan, with the reasons; None if no
    move was left out."""
    return '\n'.join(f'move {order}: {why}' for order, why in sorted(reasons.items())) or None
