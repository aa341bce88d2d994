"""Plans, from their making to their end."""

import dataclasses
import datetime
import json

import sqlalchemy as sa
from oslo_utils import uuidutils

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans

PLANNING = 'planning'


class Plans:
    """The journal of plans."""

    @retried
    def record_plan(self, report, state, now, expires_at, stagger=0.0,
                    purpose=automation.BALANCE):
        """Write a plan; with ``state`` EXECUTING its moves too, ready to be dispatched.

        :param report: AggregateReport
        :param stagger: seconds by which each move is due after the one before it
        :param purpose: BALANCE or DRAIN
        :returns: the plan's uuid
        :raises PlanPending: the aggregate has an open plan already, whoever made it
        """
        with rows.serialized(self.database, PLANNING) as session:
            if state in plans.OPEN:
                _refuse_second_plan(session, report.name)
            plan = models.Plan(
                uuid=uuidutils.generate_uuid(), aggregate=report.name, mode=report.mode,
                planner=report.planner, state=state, created_at=now, expires_at=expires_at,
                combined_before=report.combined_before, combined_after=report.combined_after,
                report=report.to_json(), purpose=purpose)
            session.add(plan)
            session.flush()
            if state == plans.EXECUTING:
                _add_moves(session, plan, report.moves, now, stagger)
            return plan.uuid

    @retried
    def approve_plan(self, uuid, chosen, approved_by, now):
        """Let a proposed plan run, once it was checked against the cloud as it is by then.

        :param chosen: the Moves that may run; the others of the plan are left out
        :raises PlanNotFound: no such plan, or it is not proposed any more
        """
        with rows.serialized(self.database, PLANNING) as session:
            plan = _still(session, uuid, plans.PROPOSED, now)
            plan.state, plan.approved_at, plan.approved_by = plans.APPROVED, now, approved_by
            plan.report = _with_moves(plan.report, chosen)

    @retried
    def start_plan(self, uuid, chosen, now, stagger=0.0):
        """Let an approved plan run, or end it where nothing of it is left.

        :param chosen: the Moves that still hold; the others of the plan are left out
        :param stagger: seconds by which each move is due after the one before it
        :raises PlanNotFound: no such plan, or it is not approved
        """
        with rows.serialized(self.database, PLANNING) as session:
            plan = _still(session, uuid, plans.APPROVED, now)
            if not chosen:
                plan.state, plan.finished_at = plans.EXPIRED, now
                return
            plan.state = plans.EXECUTING
            plan.report = _with_moves(plan.report, chosen)
            _add_moves(session, plan, chosen, now, stagger)

    @retried
    def approved_plans(self):
        """PlanRecords of the plans that wait to be checked and started."""
        with self.database.reader() as session:
            return [rows.record(plans.PlanRecord, row) for row in session.scalars(
                sa.select(models.Plan).where(models.Plan.state == plans.APPROVED))]

    @retried
    def close_plans(self, now):
        """Expire what was not approved and started in time, and end plans whose moves have all
        ended and been settled.

        :returns: aggregates of the plans that ended
        """
        with self.database.writer() as session:
            session.execute(sa.update(models.Plan).where(
                models.Plan.state.in_((plans.PROPOSED, plans.APPROVED)),
                models.Plan.expires_at < now,
            ).values(state=plans.EXPIRED, finished_at=now))
            pending = sa.select(models.Move.plan_uuid).where(sa.or_(
                models.Move.state.not_in(moves.TERMINAL), models.Move.settled_at.is_(None)))
            ended = session.scalars(sa.select(models.Plan).where(
                models.Plan.state == plans.EXECUTING, models.Plan.uuid.not_in(pending))).all()
            for plan in ended:
                plan.state, plan.finished_at = plans.DONE, now
            return [plan.aggregate for plan in ended]

    @retried
    def reject_plan(self, uuid, now):
        """Put a proposed plan aside.

        :raises PlanNotFound: no such plan, or it is not proposed any more
        """
        with self.database.writer() as session:
            done = session.execute(sa.update(models.Plan).where(
                models.Plan.uuid == uuid, models.Plan.state == plans.PROPOSED,
            ).values(state=plans.REJECTED, finished_at=now))
            if not done.rowcount:
                raise exception.PlanNotFound(plan=uuid)

    @retried
    def aggregates_with_open_plans(self):
        """Names of the aggregates for which a plan waits or runs."""
        with self.database.reader() as session:
            return session.scalars(sa.select(models.Plan.aggregate).where(
                models.Plan.state.in_(plans.OPEN))).all()

    @retried
    def running_plans(self):
        """RunningPlans: those whose moves are being carried out."""
        with self.database.reader() as session:
            return [rows.running_plan(row) for row in session.execute(sa.select(
                models.Plan.uuid, models.Plan.aggregate, models.Plan.purpose,
                models.Plan.approved_at).where(models.Plan.state == plans.EXECUTING))]

    @retried
    def open_plans(self):
        """PlanRecords of the plans that wait or run."""
        with self.database.reader() as session:
            return [rows.record(plans.PlanRecord, row) for row in session.scalars(
                sa.select(models.Plan).where(models.Plan.state.in_(plans.OPEN)))]

    @retried
    def plans(self, aggregate=None, limit=50):
        """PlanRecords, the newest first."""
        query = sa.select(models.Plan).order_by(models.Plan.created_at.desc()).limit(limit)
        if aggregate is not None:
            query = query.where(models.Plan.aggregate == aggregate)
        with self.database.reader() as session:
            return [rows.record(plans.PlanRecord, row) for row in session.scalars(query)]

    @retried
    def plan(self, uuid):
        """:raises PlanNotFound: no such plan"""
        with self.database.reader() as session:
            return rows.record(plans.PlanRecord, rows.find(
                session, models.Plan, uuid, exception.PlanNotFound(plan=uuid)))

    @retried
    def hosts_being_emptied(self):
        """Names of the hosts that running plans empty, for maintenance or to free them."""
        evacuated = sa.select(models.Move.source).join(
            models.Plan, models.Plan.uuid == models.Move.plan_uuid,
        ).where(models.Plan.state == plans.EXECUTING, models.Move.phase == plans.EVACUATE)
        packed = sa.select(models.Plan.report).where(
            models.Plan.state == plans.EXECUTING, models.Plan.mode == plans.PACK)
        with self.database.reader() as session:
            hosts = set(session.scalars(evacuated))
            for report in session.scalars(packed):
                hosts.update(json.loads(report)['hosts_emptied'])
            return hosts


def _refuse_second_plan(session, aggregate):
    existing = session.scalars(sa.select(models.Plan.uuid).where(
        models.Plan.aggregate == aggregate, models.Plan.state.in_(plans.OPEN))).first()
    if existing is not None:
        raise exception.PlanPending(aggregate=aggregate, plan=existing)


def _still(session, uuid, state, now):
    """:raises PlanNotFound: no such plan, or it is not in that state any more, or too old"""
    missing = exception.PlanNotFound(plan=uuid)
    plan = rows.find(session, models.Plan, uuid, missing)
    if plan.state != state or plan.expires_at < now:
        raise missing
    return plan


def _with_moves(report, chosen):
    kept = [dataclasses.asdict(move) for move in chosen]
    return json.dumps({**json.loads(report), 'moves': kept}, sort_keys=True)


def _add_moves(session, plan, chosen, now, stagger):
    for position, move in enumerate(sorted(chosen, key=lambda move: move.order)):
        row = models.Move(
            uuid=uuidutils.generate_uuid(), plan_uuid=plan.uuid, aggregate=plan.aggregate,
            ordinal=move.order, depends_on=json.dumps(sorted(move.depends_on)), phase=move.phase,
            instance_uuid=move.instance_uuid, source=move.source, destination=move.destination,
            memory_mb=move.memory_mb, reason=move.reason, state=moves.PLANNED, created_at=now,
            not_before=now + datetime.timedelta(seconds=position * stagger))
        session.add(row)
        session.flush()
        rows.note(session, [row.uuid], (None, row.state), now, None, 'planned')
