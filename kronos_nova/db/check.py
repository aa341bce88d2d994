"""A search for invalid rows of the control database, and the repair of these rows.

Kronos itself never writes invalid rows. Invalid rows come from a wrong clock, a restored backup, a
broken disk or a change by hand. Services repair some kinds of invalid rows without a command. Any
other invalid row blocks the work on its object, such as a plan or a drain, until the row is
repaired.
"""

import dataclasses
import datetime
import json
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging
from sqlalchemy import orm

from kronos_nova.db import drains as db_drains
from kronos_nova.db import future_times
from kronos_nova.db import leases
from kronos_nova.db import migrate
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.journal import plans as journal_plans
from kronos_nova.db.journal import rows
from kronos_nova.drain import states as drains
from kronos_nova.objects import automation
from kronos_nova.objects import hold
from kronos_nova.objects import maintenance
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import transitions

LOG = logging.getLogger(__name__)

WORKER = 'db check'
"""Name that the journal records as the worker of moves that the command ``db check`` ends."""

SWITCH_VALUES = {automation.LEVEL: automation.LEVELS, automation.REPAIR_LEVEL: automation.LEVELS,
                 automation.PAUSE: ('pause', 'stop')}
LOCKS = (rows.DISPATCH, journal_plans.PLANNING, leases.NOTIFICATIONS)
"""Names of the locks that must have a row in the table ``gates``. A transaction takes a lock by
writing to the row of the lock. So two transactions with the same lock never run at the same time.
"""
LEASES = (leases.RECONCILER, leases.RETENTION, leases.NOTIFICATIONS)


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """Rows of one table with the same fault, and the remedy.

    rows : number of rows
    remedy : the change that ``fix`` makes, or that an operator has to make
    is_fixed : whether the change was made
    """

    table: str
    problem: str
    rows: int
    remedy: str
    is_fixed: bool = False


LOST_REVISION = Fault('alembic_version', 'the record of the revision is lost', 1,
                        'the record is written again')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """A kind of fault, with the functions that find and correct it.

    find : function that searches for the fault. Its argument is a session. The function
        returns the faulty rows or, if rows are missing, the names of the missing rows
    fix : function that corrects one fault. Its arguments are a session, and a row or name that
        ``find`` has returned. None if only an operator can correct the fault
    """

    table: str
    problem: str
    remedy: str
    find: Callable[[orm.Session], Iterable[Any]]
    fix: Callable[[orm.Session, Any], None] | None = None


def examine(database: Database, aggregates: Collection[str],
            is_to_fix: bool = False) -> list[Fault]:
    """List the faults of a control database, and correct them if ``is_to_fix`` is true.

    :param aggregates: names of the aggregates that Kronos balances
    :param is_to_fix: whether to correct the faults that can be corrected; otherwise nothing is
        changed
    :raises DatabaseVersionError: the database is empty, or has another revision than the one that
        this code needs
    :raises DBError: the database does not answer
    """
    is_lost = _is_revision_lost(database.engine)
    rows_of = _Rows(database, aggregates, database.utcnow())
    found = [LOST_REVISION] * is_lost + rows_of.find()
    if not is_to_fix or not found:
        return found
    if is_lost:
        migrate.sync(database.engine, migrate.CONTROL)
    rows_of.fix()
    left = {(each.table, each.problem) for each in rows_of.find()}
    return [dataclasses.replace(each, is_fixed=(each.table, each.problem) not in left)
            for each in found]


class _Rows:
    """The search of one control database for faults, and the correction of the faults.

    :param aggregates: names of the aggregates that Kronos balances; no worker carries out moves of
        other aggregates
    :param now: the database's time
    """

    def __init__(self, database: Database, aggregates: Collection[str], now: datetime.datetime):
        self.database = database
        self.aggregates = frozenset(aggregates)
        self.now = now
        self._times = future_times.FutureTimes(database)

    def find(self) -> list[Fault]:
        """List the faults. No row is changed."""
        found = [Fault(table, 'a time in the future', count, 'the time becomes now')
                 for table, count in self._times.count(self.now).items()]
        with self.database.reader() as session:
            for check in self._checks():
                wrong = list(check.find(session))
                if wrong:
                    found.append(Fault(check.table, check.problem, len(wrong), check.remedy))
        return found

    def fix(self) -> None:
        """Correct the faults that can be corrected, in one transaction. No plan and no move is
        started while this transaction runs."""
        self._times.correct(self.now)
        names = (journal_plans.PLANNING, rows.DISPATCH)
        with rows.serialized(self.database, *names) as session:
            for check in self._checks():
                if check.fix is None:
                    continue
                for wrong in list(check.find(session)):
                    LOG.warning('Table %(table)s: fixed the row %(row)s. Problem: %(problem)s. '
                                'Change: %(remedy)s.',
                                {'table': check.table, 'problem': check.problem,
                                 'row': _name(wrong), 'remedy': check.remedy})
                    check.fix(session, wrong)

    def _checks(self) -> Iterator[_Check]:
        yield _missing('gates', models.SerializationLockRow, LOCKS,
                       'two processes may start plans or moves at the same time', passed=0)
        yield _missing('leases', models.LeaseRow, LEASES, 'no process does that work')
        yield _Check(
            table='leases', problem='a holder without an end',
            remedy='the lease becomes free; another process takes it', find=_endless_leases,
            fix=_free_lease)
        yield _Check(
            table='moves', problem='an unknown state', remedy='the move is abandoned',
            find=_not_in(models.MoveRow, transitions.MOVE_TRANSITIONS), fix=self._end_move)
        yield _Check(
            table='moves', problem='unreadable dependencies', remedy='the move is abandoned',
            find=_unreadable_moves, fix=self._end_move)
        yield _Check(
            table='moves', problem='not begun, and its plan has ended',
            remedy='the move is abandoned', find=_not_begun_orphans, fix=self._abandon)
        yield _Check(
            table='moves', problem='in progress, and no process will end it',
            remedy='the move is failed, without a quarantine; look at the server in Nova',
            find=self._lost_moves, fix=self._fail)
        yield _Check(
            table='plans', problem='an unknown state', remedy='the plan is void',
            find=_not_in(models.PlanRow, transitions.PLAN_TRANSITIONS), fix=self._void)
        yield _Check(
            table='switches', problem='an unknown kind or value',
            remedy='the switch is removed: what nova.conf says is in force',
            find=_unknown_switches, fix=_delete)
        yield _Check(
            table='drains', problem='a second drain of a host',
            remedy='the older drain is released; the host stays disabled', find=_older_drains,
            fix=self._release)
        yield _Check(
            table='drains', problem='an unknown state',
            remedy='delete the row by hand, and enable the host if it is to be used',
            find=_not_in(models.DrainRow, (*drains.ACTIVE, *drains.OVER, *drains.OPENED)))
        yield _Check(
            table='drains', problem='unreadable lists', remedy='the lists become empty',
            find=_unreadable_drains, fix=_empty_lists)
        yield _Check(
            table='holds', problem='an unknown state',
            remedy='delete the row by hand: nothing is kept for it',
            find=_not_in(models.HoldRow, hold.HOLD_TRANSITIONS))
        yield _Check(
            table='maintenances', problem='a second one that is not done',
            remedy='the older one is done; its hosts stay as they are', find=_older_maintenances,
            fix=_end_maintenance)

    def _lost_moves(self, session: orm.Session) -> Iterator[models.MoveRow]:
        """Yield the rows of moves that are in progress, but will never end: no worker carries them
        out, and no worker will take them over.

        The worker that owned the move no longer runs. Other workers take over only moves of open
        plans in the aggregates that Kronos balances. Nova may still be migrating the instance.
        """
        workers = {*session.scalars(sa.select(models.WorkerRow.name))}
        begun = [state for state in moves.IN_FLIGHT if state not in moves.NOT_BEGUN]
        for row, state in _with_plans(session, begun):
            if row.owner not in workers and (
                    state not in plans.OPEN or row.aggregate not in self.aggregates):
                yield row

    def _abandon(self, session: orm.Session, row: models.MoveRow) -> None:
        rows.transit(session, row, moves.ABANDONED, self.now, WORKER, 'its plan has ended',
                     finished_at=self.now, settled_at=self.now)

    def _fail(self, session: orm.Session, row: models.MoveRow) -> None:
        rows.transit(session, row, moves.FAILED, self.now, WORKER,
                     'its worker has ended, and no other one looks after it',
                     finished_at=self.now, settled_at=self.now)

    def _end_move(self, session: orm.Session, row: models.MoveRow) -> None:
        """Set a move whose row has a fault to the state ABANDONED, whatever its state is. Normally,
        only some states may change to this state."""
        old = row.state
        session.execute(sa.update(models.MoveRow).where(models.MoveRow.uuid == row.uuid).values(
            state=moves.ABANDONED, depends_on='[]', finished_at=self.now, settled_at=self.now))
        session.add(models.MoveEventRow(
            move_uuid=row.uuid, at=self.now, old_state=old, new_state=moves.ABANDONED,
            worker=WORKER, detail='its row could not be read'))

    def _void(self, session: orm.Session, row: models.PlanRow) -> None:
        journal_plans.void_unreadable(session, row.uuid, self.now)

    def _release(self, session: orm.Session, row: models.DrainRow) -> None:
        db_drains.release_unreadable(session, row.uuid, self.now)


def _is_revision_lost(engine: sa.Engine) -> bool:
    """Return True if a control database has all its tables but no record of its revision. Return
    False if the recorded revision is the one that this code needs.

    :raises DatabaseVersionError: the database is empty, or its recorded revision is not the one
        that this code needs
    """
    if migrate.current(engine, migrate.CONTROL) is None and migrate.is_whole(engine):
        return True
    migrate.check(engine, migrate.CONTROL)
    return False


def _name(row: models.Base | str) -> str:
    if isinstance(row, str):
        return row
    return ' '.join(str(value) for value in sa.inspect(row).identity or ())


def _missing(table: str, model: Any, names: Iterable[str], consequence: str,
             **values: object) -> _Check:
    def find(session: orm.Session) -> list[str]:
        return sorted({*names} - {*session.scalars(sa.select(model.name))})

    def insert(session: orm.Session, name: str) -> None:
        session.add(model(name=name, **values))
        session.flush()

    return _Check(table=table, problem=f'a row is missing: {consequence}',
                  remedy='the row is inserted', find=find, fix=insert)


def _not_in(model: Any, states: Iterable[str]) -> Callable[[orm.Session], Sequence[Any]]:
    def find(session: orm.Session) -> Sequence[Any]:
        return session.scalars(sa.select(model).where(model.state.not_in(tuple(states)))).all()
    return find


def _with_plans(session: orm.Session, states: Collection[str]) -> Iterator[Any]:
    """Yield (move, state of its plan) for the moves whose state is one of ``states``. The state of
    the plan is None if the plan is missing."""
    yield from session.execute(
        sa.select(models.MoveRow, models.PlanRow.state).outerjoin(
            models.PlanRow, models.PlanRow.uuid == models.MoveRow.plan_uuid).where(
                models.MoveRow.state.in_(states)))


def _not_begun_orphans(session: orm.Session) -> list[models.MoveRow]:
    return [row for row, state in _with_plans(session, moves.NOT_BEGUN) if state not in plans.OPEN]


def _unreadable_moves(session: orm.Session) -> list[models.MoveRow]:
    waiting = session.scalars(rows.moves_in((moves.PLANNED, *moves.IN_FLIGHT)))
    return [row for row in waiting if not _is_json(row.depends_on, list)]


def _endless_leases(session: orm.Session) -> Sequence[models.LeaseRow]:
    lease = models.LeaseRow
    return session.scalars(sa.select(lease).where(
        lease.holder.is_not(None), lease.expires_at.is_(None))).all()


def _free_lease(_session: orm.Session, row: models.LeaseRow) -> None:
    row.holder = None


def _unknown_switches(session: orm.Session) -> list[models.SwitchRow]:
    return [row for row in session.scalars(sa.select(models.SwitchRow))
            if row.value not in SWITCH_VALUES.get(row.kind, ())]


def _delete(session: orm.Session, row: models.Base) -> None:
    session.delete(row)


def _older_drains(session: orm.Session) -> list[models.DrainRow]:
    """Return the rows of drains in progress whose host has a newer drain in progress."""
    newest: dict[str, str] = {}
    older = []
    for row in session.scalars(sa.select(models.DrainRow).where(
            models.DrainRow.state.in_((*drains.ACTIVE, drains.RELEASING))).order_by(
                models.DrainRow.requested_at.desc(), models.DrainRow.uuid)):
        if newest.setdefault(row.host, row.uuid) != row.uuid:
            older.append(row)
    return older


def _unreadable_drains(session: orm.Session) -> list[models.DrainRow]:
    known = session.scalars(sa.select(models.DrainRow).where(
        models.DrainRow.state.in_((*drains.ACTIVE, *drains.OVER, drains.RELEASING))))
    return [row for row in known
            if not (_is_json(row.avoid, list) and _is_json(row.blocked, dict))]


def _empty_lists(_session: orm.Session, row: models.DrainRow) -> None:
    row.avoid, row.blocked = '[]', '{}'


def _older_maintenances(session: orm.Session) -> Sequence[models.MaintenanceRow]:
    return session.scalars(sa.select(models.MaintenanceRow).where(
        models.MaintenanceRow.state != maintenance.DONE).order_by(
            models.MaintenanceRow.requested_at.desc())).all()[1:]


def _end_maintenance(_session: orm.Session, row: models.MaintenanceRow) -> None:
    row.state = maintenance.DONE


def _is_json(text: str, kind: type) -> bool:
    try:
        return isinstance(json.loads(text), kind)
    except ValueError:
        return False
