"""Drains of hosts in the control database."""

import dataclasses
import datetime
import json
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging
from sqlalchemy import orm

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db import notifications
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.drain import states as drains
from kronos_nova.drain.states import Drain
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves

LOG = logging.getLogger(__name__)

JSON = ('avoid', 'blocked', 'to_stop', 'stopped')
"""Columns whose text is JSON."""

WAIT = frozenset(('waits_for', 'waits_in_vain'))
"""Columns of a :class:`~kronos_nova.drain.states.Wait`."""


class Drains:
    """The table of drains of hosts. A row is stored when a drain is requested. It is deleted after
    the host is released and the retention period has passed."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def request(self, wanted: list[Drain],
                refuse: Callable[[Collection[str]], None] = lambda _drained: None) -> None:
        """Record the request to drain some hosts. Either the drains of all these hosts are
        recorded, or none of them.

        An earlier drain of a host may have ended, because the host is empty or the deadline has
        passed, while the host was not released. The state of this earlier drain then becomes
        released. The new drain takes over the list of servers that the earlier drain has stopped,
        and the records that Kronos disabled the host and that the service for high availability
        does not act on it.

        :param refuse: function that raises an error if the request has to be refused. Its argument
            has the names of the hosts that are being drained, and of the hosts whose drain has
            ended without a release. The function is called in the transaction that records the
            request, so that two simultaneous requests cannot both pass the check
        :raises DrainPending: one of the hosts is being drained, or its requested release is not
            done yet
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            if all(session.get(models.DrainRow, drain.uuid) for drain in wanted):
                return  # An earlier try wrote the row, and its answer was lost.
            hosts = [drain.host for drain in wanted]
            busy = session.scalars(sa.select(models.DrainRow.host).where(
                models.DrainRow.host.in_(hosts),
                models.DrainRow.state.in_((*drains.ACTIVE, drains.RELEASING)))).first()
            if busy is not None:
                raise exception.DrainPending(host=busy)
            refuse({drain.host for drain in read(session, (*drains.ACTIVE, *drains.OVER))})
            earlier = sa.and_(models.DrainRow.host.in_(hosts),
                              models.DrainRow.state.in_(drains.OVER))
            taken_over = {row.host: {
                'stopped': row.stopped, 'is_ours': row.is_ours, 'is_unwatched': row.is_unwatched,
            } for row in session.scalars(sa.select(models.DrainRow).where(earlier))}
            for uuid in session.scalars(sa.select(models.DrainRow.uuid).where(earlier)).all():
                _enter(session, uuid, drains.OVER, drains.RELEASED)
            for drain in wanted:
                columns = _columns(dataclasses.asdict(dataclasses.replace(drain, stopped={})))
                session.add(models.DrainRow(**columns | taken_over.get(drain.host, {})))
                notifications.drain(session, drain.uuid, None, drain.requested_at)

    @retried
    def in_states(self, states: Collection[str]) -> list[Drain]:
        """Return the drains that are in one of ``states``, the oldest request first."""
        with self.database.reader() as session:
            return read(session, states)

    @retried
    def latest(self, host: str) -> Drain | None:
        """Return the newest drain of a host; None if there is none. Names that differ from ``host``
        in upper or lower case are other hosts, although many databases regard COMPUTE1 and compute1
        as equal."""
        with self.database.reader() as session:
            found = session.scalars(sa.select(models.DrainRow).where(
                models.DrainRow.host == host).order_by(models.DrainRow.requested_at.desc()))
            return next((_drain(row) for row in found if row.host == host), None)

    @retried
    def latest_of(self, hosts: Collection[str]) -> dict[str, Drain]:
        """Return {host: newest drain of the host}. Hosts that never had a drain are left out."""
        with self.database.reader() as session:
            found = session.scalars(sa.select(models.DrainRow).where(
                models.DrainRow.host.in_([*hosts])).order_by(models.DrainRow.requested_at))
            return {row.host: _drain(row) for row in found}

    @retried
    def get(self, uuid: str) -> Drain:
        """Return a drain by its uuid.

        :raises DrainNotFound: there is no such drain
        """
        with self.database.reader() as session:
            return _drain(rows.find(session, models.DrainRow, uuid,
                                    exception.DrainNotFound(host=uuid)))

    @retried
    def note(self, drain: Drain, states: Collection[str], **values: Any) -> bool:
        """Save the columns ``values`` of a drain, if the drain is still in one of ``states``. The
        value ``wait`` is a :class:`drains.Wait`; in :meth:`enter` and :meth:`end` too.

        :returns: whether the columns were saved
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            return count_changed(session, sa.update(models.DrainRow).where(
                models.DrainRow.uuid == drain.uuid, models.DrainRow.state.in_(states),
            ).values(**_columns(values))) == 1

    def note_unevaluated(self, drain: Drain, why: str) -> None:
        """Record that a drain waits, because its aggregate is not evaluated any more.

        :param why: end of a relative clause about the aggregate
        """
        wait = drains.Wait(is_in_vain=True, why=(
            f'an evaluation of aggregate {drain.aggregate}, which {why}; '
            f'{drains.released_by(drain.host)}'))
        if wait != drain.wait and self.note(drain, (drain.state,), wait=wait):
            LOG.warning('The drain of host %s waits for %s', drain.host, wait.why)

    @retried
    def enter(self, drain: Drain, states: Collection[str], new: str, **values: Any) -> bool:
        """Bring a drain to the state ``new``, if the drain is still in one of ``states``.

        :returns: whether the state was changed
        :raises IllegalDrainTransition: a drain in one of ``states`` is not allowed to change to the
            new state
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            return _enter_and_report(session, drain, states, new, values.get('looked_at'), values)

    @retried
    def end(self, drain: Drain, states: Collection[str], new: str, now: datetime.datetime, who: str,
            **values: Any) -> bool:
        """Bring a drain to the state ``new``, if the drain is still in one of ``states``. Abandon
        the moves of the drain that were not requested from Nova yet. Migrations that were already
        requested continue.

        :param who: name that is recorded as the worker that abandoned the moves
        :returns: whether the state was changed
        :raises IllegalDrainTransition: a drain in one of ``states`` is not allowed to change to the
            new state
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            is_changed = _enter_and_report(session, drain, states, new, now, values)
            if is_changed:
                rows.abandon(session, _not_begun(drain.host), now, who,
                             f'{drain.host} is not drained any more')
            return is_changed


def _enter_and_report(session: orm.Session, drain: Drain, olds: Collection[str], new: str,
                      now: datetime.datetime | None, values: Mapping[str, Any]) -> bool:
    before = session.scalar(sa.select(models.DrainRow.state).where(
        models.DrainRow.uuid == drain.uuid))
    if not _enter(session, drain.uuid, olds, new, **values):
        return False
    notifications.drain(session, drain.uuid, before, now)
    return True


def _enter(session: orm.Session, uuid: str, olds: Collection[str], new: str, **values: Any) -> bool:
    """Bring a drain to another state.

    :param olds: the drain has to be in one of these states; otherwise nothing is done
    :returns: whether the state was changed
    :raises IllegalDrainTransition: a drain in one of ``olds`` is not allowed to change to the new
        state
    """
    illegal = [old for old in olds if new not in drains.DRAIN_TRANSITIONS[old]]
    if illegal:
        raise exception.IllegalDrainTransition(drain=uuid, old=illegal[0], new=new)
    return _write_state(session, sa.and_(models.DrainRow.uuid == uuid,
                                         models.DrainRow.state.in_(olds)), new, values)


def release_unreadable(session: orm.Session, uuid: str, now: datetime.datetime) -> None:
    """Set the state of a drain to RELEASED. The caller has found that the drain's present state is
    not one that this version of Kronos knows."""
    _write_state(session, models.DrainRow.uuid == uuid, drains.RELEASED, {'finished_at': now})


def _write_state(session: orm.Session, which: sa.ColumnElement[bool], new: str,
                 values: Mapping[str, Any]) -> bool:
    """Write the state ``new`` and the columns ``values`` of the drain that matches the condition
    ``which``. A drain that has ended waits for nothing. No other function writes states of drains.

    :returns: whether exactly one drain matched
    """
    session.flush()
    ended = {} if new in drains.ACTIVE else {'wait': drains.NO_WAIT}
    return count_changed(session, sa.update(models.DrainRow).where(which).values(
        state=new, **_columns({**values, **ended}))) == 1


def _not_begun(host: str) -> sa.Select[tuple[models.MoveRow]]:
    """Return a query of the moves that take servers off a drained host and were not requested from
    Nova yet."""
    return rows.moves_in(moves.NOT_BEGUN).join(
        models.PlanRow, models.PlanRow.uuid == models.MoveRow.plan_uuid).where(
            models.PlanRow.purpose == automation.DRAIN, models.MoveRow.source == host)


def read(session: orm.Session, states: Collection[str] = drains.ACTIVE) -> list[Drain]:
    """Return the drains that are in one of ``states``, within a transaction. The oldest request
    comes first."""
    row = models.DrainRow
    return [_drain(found) for found in session.scalars(sa.select(row).where(
        row.state.in_(states)).order_by(row.requested_at, row.uuid))]


def _columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as they are stored. The value ``wait``, a :class:`drains.Wait`, is stored
    in two columns.

    :raises ValueError: ``values`` has one of these two columns without the other
    """
    if len(WAIT & values.keys()) == 1:
        raise ValueError('The columns of a wait are written together: pass "wait".')
    found = {name: json.dumps(value) if name in JSON else value
             for name, value in values.items() if name != 'wait'}
    if 'wait' in values:
        found |= {'waits_for': values['wait'].why, 'waits_in_vain': values['wait'].is_in_vain}
    return found


def _drain(row: models.DrainRow) -> Drain:
    return rows.record(Drain, row, avoid=tuple(json.loads(row.avoid)),
                       blocked=json.loads(row.blocked), to_stop=tuple(json.loads(row.to_stop)),
                       stopped=json.loads(row.stopped))
