"""Rolling maintenances in the control database."""

import dataclasses
import datetime
import json
from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects import maintenance
from kronos_nova.objects.maintenance import Maintenance


class Maintenances:
    """The table of rolling maintenances. A rolling maintenance empties and services hosts one after
    the other. At most one maintenance is open at a time, because two would move servers onto the
    hosts that the other one wants to empty."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def begin(self, wanted: Maintenance) -> None:
        """Record a new maintenance, if no other maintenance is open.

        :raises MaintenancePending: another maintenance is not done
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            if session.get(models.MaintenanceRow, wanted.uuid):
                return  # An earlier try wrote the row, and its answer was lost.
            other = _open(session)
            if other is not None:
                raise exception.MaintenancePending(maintenance=other.uuid, state=other.state)
            session.add(models.MaintenanceRow(
                uuid=wanted.uuid, state=wanted.state, requested_by=wanted.requested_by,
                requested_at=wanted.requested_at, hosts=json.dumps([*wanted.hosts.items()]),
                options=json.dumps(dataclasses.asdict(wanted.options))))

    @retried
    def current(self) -> Maintenance | None:
        """Return the maintenance that is not done; None if there is none."""
        with self.database.reader() as session:
            row = _open(session)
            return None if row is None else _maintenance(row)

    def open(self) -> Maintenance:
        """Return the maintenance that is not done.

        :raises MaintenanceNotFound: every maintenance is done
        """
        found = self.current()
        if found is None:
            raise exception.MaintenanceNotFound
        return found

    @retried
    def get(self, uuid: str) -> Maintenance:
        """Return a maintenance by its uuid, in any state."""
        with self.database.reader() as session:
            return _maintenance(session.get_one(models.MaintenanceRow, uuid))

    @retried
    def acquire(self, uuid: str, runner: str, now: datetime.datetime,
                silent_before: datetime.datetime) -> bool:
        """Record ``runner`` as the process that runs a maintenance, unless another process that is
        alive runs it.

        :param silent_before: a process whose last sign of life is older than this time counts as
            dead
        :returns: whether ``runner`` runs the maintenance now
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            free = sa.or_(models.MaintenanceRow.runner.is_(None),
                          models.MaintenanceRow.runner == runner,
                          models.MaintenanceRow.runner_at < silent_before)
            return count_changed(session, sa.update(models.MaintenanceRow).where(
                models.MaintenanceRow.uuid == uuid, free,
            ).values(runner=runner, runner_at=now)) == 1

    @retried
    def give_back(self, uuid: str, runner: str) -> None:
        """Record that ``runner`` no longer runs a maintenance, so that another process can continue
        the maintenance at once."""
        with rows.serialized(self.database, rows.DISPATCH) as session:
            session.execute(sa.update(models.MaintenanceRow).where(
                models.MaintenanceRow.uuid == uuid, models.MaintenanceRow.runner == runner,
            ).values(runner=None))

    @retried
    def set_state(self, uuid: str, state: str) -> bool:
        """Bring a maintenance to a state. A maintenance that is done is not changed, because
        another maintenance may have begun after its end.

        :returns: whether the state was changed
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            return count_changed(session, sa.update(models.MaintenanceRow).where(
                models.MaintenanceRow.uuid == uuid,
                models.MaintenanceRow.state != maintenance.DONE).values(state=state)) == 1

    @retried
    def set_host(self, uuid: str, host: str, state: str,
                 only_from: Collection[str] | None = None) -> bool:
        """Bring a host of a maintenance to the state ``state``.

        :param only_from: states that the host may have before the change; with another state,
            nothing is changed. None permits any state
        :returns: whether the state was changed
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            row = session.get_one(models.MaintenanceRow, uuid)
            hosts = dict(json.loads(row.hosts))
            if only_from is not None and hosts.get(host) not in only_from:
                return False
            hosts[host] = state
            row.hosts = json.dumps([*hosts.items()])
            return True


def _open(session: orm.Session) -> models.MaintenanceRow | None:
    return session.scalars(sa.select(models.MaintenanceRow).where(
        models.MaintenanceRow.state != maintenance.DONE)).first()


def _maintenance(row: models.MaintenanceRow) -> Maintenance:
    return rows.record(Maintenance, row, hosts=dict(json.loads(row.hosts)),
                       options=maintenance.MaintenanceOptions(**json.loads(row.options)))
