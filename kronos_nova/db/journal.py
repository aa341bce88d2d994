"""The journal: every plan and move, written before anything outside changes."""

import contextlib
import dataclasses
import datetime
import json

import sqlalchemy as sa
from oslo_db import api as db_api
from oslo_utils import uuidutils

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db import room
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans

DISPATCH = 'dispatch'
PLANNING = 'planning'
SCAN_LIMIT = 1000
NOTHING = json.dumps([])

# A transaction that lost against another is run again: none has effects outside the database.
retried = db_api.wrap_db_retry(max_retries=5, retry_interval=0.1, inc_retry_interval=True,
                               retry_on_deadlock=True, retry_on_disconnect=True)


class Journal:
    """Plans and moves in the control database.

    :param database: kronos_nova.db.engine.Database
    :param worker: name of this process, written beside everything that it takes on
    """

    def __init__(self, database, worker):
        self.database = database
        self.worker = worker

    # Plans

    @retried
    def record_plan(self, report, state, now, expires_at, stagger=0.0):
        """Write a plan; with ``state`` EXECUTING its moves too, ready to be dispatched.

        :param report: AggregateReport
        :param stagger: seconds by which each move is due after the one before it
        :returns: the plan's uuid
        :raises PlanPending: the aggregate has an open plan already, whoever made it
        """
        with self._through_gate(PLANNING) as session:
            if state in plans.OPEN:
                _refuse_second_plan(session, report.name)
            plan = models.Plan(
                uuid=uuidutils.generate_uuid(), aggregate=report.name, mode=report.mode,
                planner=report.planner, state=state, created_at=now, expires_at=expires_at,
                combined_before=report.combined_before, combined_after=report.combined_after,
                report=report.to_json())
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
        with self._through_gate(PLANNING) as session:
            plan = session.get(models.Plan, uuid)
            if plan is None or plan.state != plans.PROPOSED or plan.expires_at < now:
                raise exception.PlanNotFound(plan=uuid)
            plan.state, plan.approved_at, plan.approved_by = plans.APPROVED, now, approved_by
            plan.report = _with_moves(plan.report, chosen)

    @retried
    def start_plan(self, uuid, chosen, now, stagger=0.0):
        """Let an approved plan run, or end it where nothing of it is left.

        :param chosen: the Moves that still hold; the others of the plan are left out
        :param stagger: seconds by which each move is due after the one before it
        :raises PlanNotFound: no such plan, or it is not approved
        """
        with self._through_gate(PLANNING) as session:
            plan = session.get(models.Plan, uuid)
            if plan is None or plan.state != plans.APPROVED or plan.expires_at < now:
                raise exception.PlanNotFound(plan=uuid)
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
            return [_record(plans.PlanRecord, row) for row in session.scalars(
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
    def plans(self, aggregate=None, limit=50):
        """PlanRecords, the newest first."""
        query = sa.select(models.Plan).order_by(models.Plan.created_at.desc()).limit(limit)
        if aggregate is not None:
            query = query.where(models.Plan.aggregate == aggregate)
        with self.database.reader() as session:
            return [_record(plans.PlanRecord, row) for row in session.scalars(query)]

    @retried
    def plan(self, uuid):
        """:raises PlanNotFound: no such plan"""
        with self.database.reader() as session:
            row = session.get(models.Plan, uuid)
            if row is None:
                raise exception.PlanNotFound(plan=uuid)
            return _record(plans.PlanRecord, row)

    # Moves

    @retried
    def knows(self, move_uuid):
        """Whether there is such a move, whatever its state."""
        with self.database.reader() as session:
            return session.get(models.Move, move_uuid) is not None

    @retried
    def move(self, uuid):
        """:raises MoveNotFound: no such move"""
        with self.database.reader() as session:
            row = session.get(models.Move, uuid)
            if row is None:
                raise exception.MoveNotFound(move=uuid)
            return _move_record(row)

    @retried
    def dispatch(self, caps, utcnow, aggregates=None):
        """Let planned moves go whose time has come, as many as the caps leave room for.

        Two dispatchers never let the same move go, nor do they together pass a cap: both go through
        one gate. A move that was let go counts, whether or not anybody has taken it on.

        :param utcnow: asked for the time when the gate is passed: by an earlier one a move would
            seem to have gone before another made room for it
        :param aggregates: only moves of these, or of any when None
        :returns: MoveRecords, now DISPATCHED and nobody's
        """
        with self._through_gate(DISPATCH) as session:
            now = utcnow()
            space = room.Room(caps, session.execute(_columns_of(moves.IN_FLIGHT)))
            if space.is_full:
                return []
            going = []
            for waiting in session.execute(_ready(now, aggregates)).all():
                if space.is_full:
                    break
                if _waits_for_another(session, waiting) or not space.enter(waiting):
                    continue
                row = session.get(models.Move, waiting.uuid)
                row.dispatched_at = now
                _transit(session, row, moves.DISPATCHED, now, self.worker)
                going.append(row)
            return [_move_record(row) for row in going]

    @retried
    def claim(self, uuid, now):
        """Take on a dispatched move, if nobody has; counts as a sign of life.

        :returns: the MoveRecord, or None where somebody else has it or it is not to be done
        """
        with self.database.writer() as session:
            taken = session.execute(sa.update(models.Move).where(
                models.Move.uuid == uuid, models.Move.state == moves.DISPATCHED,
                models.Move.owner.is_(None)).values(owner=self.worker))
            if not taken.rowcount:
                return None
            session.merge(models.Worker(name=self.worker, heartbeat_at=now))
            row = session.get(models.Move, uuid)
            _note(session, row, row.state, now, self.worker, 'taken on')
            return _move_record(row)

    @retried
    def take_back(self, now, dispatched_before):
        """Plan again what was dispatched before then and nobody has taken on: its message is lost.

        :returns: MoveRecords, now PLANNED
        """
        with self._through_gate(DISPATCH) as session:
            lost = session.scalars(_moves_in((moves.DISPATCHED,)).where(
                models.Move.owner.is_(None), models.Move.dispatched_at < dispatched_before)).all()
            for row in lost:
                _transit(session, row, moves.PLANNED, now, self.worker, 'nobody took it on')
            return [_move_record(row) for row in lost]

    @retried
    def advance(self, move, new, now, detail='', **values):
        """Bring a move of this worker to its next state, with what else is to be kept.

        :param move: the MoveRecord as the worker knows it
        :returns: the MoveRecord as it is now
        :raises IllegalTransition: the move cannot go there from where it is
        :raises MoveLost: another worker owns it now, or it is in another state already
        """
        if new != move.state and not moves.is_legal(move.state, new):
            raise exception.IllegalTransition(move=move.uuid, old=move.state, new=new)
        with self.database.writer() as session:
            kept = session.execute(sa.update(models.Move).where(
                models.Move.uuid == move.uuid, models.Move.owner == self.worker,
                models.Move.state == move.state,
            ).values({'owner': self.worker, 'state': new, **values}))
            row = session.get(models.Move, move.uuid)
            if not kept.rowcount:
                raise exception.MoveLost(move=move.uuid, owner=row.owner, state=row.state)
            if new != move.state:
                _note(session, row, move.state, now, self.worker, detail)
            return _move_record(row)

    @retried
    def settle(self, uuid, now):
        """Note that what follows from the end of a move was done."""
        with self.database.writer() as session:
            session.execute(sa.update(models.Move).where(
                models.Move.uuid == uuid, models.Move.state.in_(moves.TERMINAL),
                models.Move.settled_at.is_(None)).values(settled_at=now))

    @retried
    def unsettled(self, finished_before):
        """MoveRecords of running plans that ended before then and from which nothing has followed
        yet."""
        query = _moves_in(moves.TERMINAL).join(
            models.Plan, models.Plan.uuid == models.Move.plan_uuid,
        ).where(models.Plan.state == plans.EXECUTING, models.Move.settled_at.is_(None),
                models.Move.finished_at < finished_before)
        with self.database.reader() as session:
            return [_move_record(row) for row in session.scalars(query)]

    @retried
    def mine(self):
        """MoveRecords that this worker has under way, in the order in which they were due."""
        query = _moves_in(moves.IN_FLIGHT).where(models.Move.owner == self.worker).order_by(
            models.Move.not_before, models.Move.ordinal)
        with self.database.reader() as session:
            return [_move_record(row) for row in session.scalars(query)]

    @retried
    def moves(self, plan_uuid=None, states=None, limit=None):
        """MoveRecords, the newest plan's first and then in their order."""
        query = sa.select(models.Move).order_by(
            models.Move.created_at.desc(), models.Move.plan_uuid, models.Move.ordinal)
        if plan_uuid is not None:
            query = query.where(models.Move.plan_uuid == plan_uuid)
        if states is not None:
            query = query.where(models.Move.state.in_(states))
        with self.database.reader() as session:
            return [_move_record(row) for row in session.scalars(query.limit(limit))]

    @retried
    def durations(self, limit=500):
        """[(memory in MiB, seconds)] of the newest moves that completed, from request to end."""
        query = sa.select(models.Move.memory_mb, models.Move.requested_at,
                          models.Move.finished_at).where(
            models.Move.state == moves.COMPLETED, models.Move.requested_at.is_not(None),
            models.Move.memory_mb > 0).order_by(models.Move.finished_at.desc()).limit(limit)
        with self.database.reader() as session:
            return [(memory_mb, (end - begin).total_seconds())
                    for memory_mb, begin, end in session.execute(query)]

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

    @retried
    def events(self, move_uuid):
        """[(time, old state, new state, worker, detail)] of a move, the oldest first."""
        query = sa.select(models.MoveEvent).where(
            models.MoveEvent.move_uuid == move_uuid).order_by(models.MoveEvent.id)
        with self.database.reader() as session:
            return [(e.at, e.old_state, e.new_state, e.worker, e.detail)
                    for e in session.scalars(query)]

    @retried
    def request_abort(self, uuid):
        """Ask whoever has a move to end it.

        :raises MoveNotFound: no such move, or it has ended
        """
        with self.database.writer() as session:
            done = session.execute(sa.update(models.Move).where(
                models.Move.uuid == uuid, models.Move.state.not_in(moves.TERMINAL),
            ).values(abort_requested=True))
            if not done.rowcount:
                raise exception.MoveNotFound(move=uuid)

    @retried
    def abandon(self, now, stale_before):
        """Give up planned moves that may not start any more.

        Those are: planned before ``stale_before``, asked to abort, or depending on a move that did
        not succeed.

        :returns: MoveRecords, now ABANDONED
        """
        with self._through_gate(DISPATCH) as session:
            given_up = []
            for row in session.scalars(_moves_in((moves.PLANNED,)).where(sa.or_(
                    models.Move.abort_requested, models.Move.created_at < stale_before,
                    models.Move.depends_on != NOTHING))):
                why = _why_not_any_more(session, row, stale_before)
                if why:
                    row.finished_at = row.settled_at = now
                    _transit(session, row, moves.ABANDONED, now, self.worker, why)
                    given_up.append(row)
            return [_move_record(row) for row in given_up]

    # Workers

    @retried
    def heartbeat(self, now):
        """Say that this worker lives."""
        with self.database.writer() as session:
            session.merge(models.Worker(name=self.worker, heartbeat_at=now))

    @retried
    def adopt(self, now, dead_before, aggregates=None):
        """Take over what workers that were last heard of before ``dead_before`` had under way.

        :param aggregates: only moves of these, or of any when None
        :returns: the MoveRecords, now owned by this worker, in the states they were left in
        """
        with self._through_gate(DISPATCH) as session:
            alive = sa.select(models.Worker.name).where(models.Worker.heartbeat_at >= dead_before)
            query = _moves_in(moves.IN_FLIGHT).where(
                models.Move.owner.not_in(alive), models.Move.owner != self.worker)
            orphans = session.scalars(_of(query, aggregates)).all()
            for row in orphans:
                _note(session, row, row.state, now, self.worker, f'adopted from {row.owner}')
                row.owner = self.worker
            session.execute(sa.delete(models.Worker).where(
                models.Worker.heartbeat_at < dead_before))
            return [_move_record(row) for row in orphans]

    @retried
    def retire(self, now):
        """Leave: what this worker had not begun goes back, what it has under way is up for
        adoption at once."""
        with self._through_gate(DISPATCH) as session:
            for row in session.scalars(_moves_in((moves.DISPATCHED, moves.CHECKING)).where(
                    models.Move.owner == self.worker)):
                row.owner = None
                _transit(session, row, moves.PLANNED, now, self.worker, 'its worker ends')
            session.execute(sa.delete(models.Worker).where(models.Worker.name == self.worker))

    @contextlib.contextmanager
    def _through_gate(self, name):
        with self.database.writer() as session:
            session.execute(sa.update(models.Gate).where(
                models.Gate.name == name).values(passed=models.Gate.passed + 1))
            yield session


def _moves_in(states):
    return sa.select(models.Move).where(models.Move.state.in_(states))


def _columns_of(states):
    """What is needed to weigh moves against the caps: cheaper than whole rows by far."""
    return sa.select(
        models.Move.uuid, models.Move.plan_uuid, models.Move.instance_uuid, models.Move.source,
        models.Move.destination, models.Move.depends_on).where(models.Move.state.in_(states))


def _ready(now, aggregates):
    query = _columns_of((moves.PLANNED,)).where(models.Move.not_before <= now).order_by(
        models.Move.not_before, models.Move.ordinal)
    return _of(query, aggregates).limit(SCAN_LIMIT)


def _of(query, aggregates):
    return query if aggregates is None else query.where(models.Move.aggregate.in_(aggregates))


def _before(session, row):
    """{ordinal: state} of the moves that ``row`` depends on."""
    ordinals = json.loads(row.depends_on)
    if not ordinals:
        return {}
    return dict(session.execute(sa.select(models.Move.ordinal, models.Move.state).where(
        models.Move.plan_uuid == row.plan_uuid, models.Move.ordinal.in_(ordinals))).all())


def _waits_for_another(session, row):
    return any(state != moves.COMPLETED for state in _before(session, row).values())


def _why_not_any_more(session, row, stale_before):
    if row.abort_requested:
        return 'aborted by an operator'
    if row.created_at < stale_before:
        return 'too old: the load it was planned for is no longer the load there is'
    for ordinal, state in sorted(_before(session, row).items()):
        if state in (moves.FAILED, moves.ABANDONED):
            return f'depends on move {ordinal}, which is {state}'
    return None


def _refuse_second_plan(session, aggregate):
    existing = session.scalars(sa.select(models.Plan.uuid).where(
        models.Plan.aggregate == aggregate, models.Plan.state.in_(plans.OPEN))).first()
    if existing is not None:
        raise exception.PlanPending(aggregate=aggregate, plan=existing)


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
        _note(session, row, None, now, None, 'planned')


def _transit(session, row, new, now, worker, detail=''):
    if not moves.is_legal(row.state, new):
        raise exception.IllegalTransition(move=row.uuid, old=row.state, new=new)
    old, row.state = row.state, new
    _note(session, row, old, now, worker, detail)


def _note(session, row, old, now, worker, detail):
    session.add(models.MoveEvent(move_uuid=row.uuid, at=now, old_state=old, new_state=row.state,
                                 worker=worker, detail=detail))


def _record(cls, row, **changed):
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(cls)}
    return cls(**{**values, **changed})


def _move_record(row):
    return _record(moves.MoveRecord, row, depends_on=tuple(json.loads(row.depends_on)))
