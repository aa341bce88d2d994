"""Names and aggregates of servers. They are stored here, because the journal has only the uuids of
servers."""

import datetime
import types
from collections.abc import Iterable
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried
from kronos_nova.db.retry import retried_as_update

LONGEST = 200
"""Maximum number of characters of a server's name in the control database. A longer name is cut,
and a remark about the cut is added. Raised, the name and the remark may not fit into the column;
lowered, more names are cut. Fixed by the column, which has 255 characters for the name and the
remark."""

CHUNK = 500
"""Maximum number of uuids in one query for the names of servers. Raised, a query in a log is hard
to read; lowered, more queries are needed. SQLite and MySQL would permit more uuids. Not
measured."""


FRESH = datetime.timedelta(hours=6)
"""Time (6 hours) after a name was saved, during which the same name is not saved again. Raised, the
time at which a name was last seen is less exact, and so is the time of its deletion; lowered, each
evaluation writes more rows. Chosen as a fraction of a day, because retention counts in days."""


Known = tuple[str | None, str | None]
"""(name of a server, name of its aggregate). A value that is not known is None."""


class ServerNames:
    """The table with the name and the aggregate of each server, by the server's uuid, as they were
    read last."""

    def __init__(self, database: Database):
        self.database = database
        self._saved: dict[str, tuple[Known, datetime.datetime]] = {}    # written by this object

    def save(self, names: Mapping[str, str], now: datetime.datetime,
             aggregates: Mapping[str, str] = types.MappingProxyType({})) -> None:
        """Save names and aggregates of servers. A value is not written again if this object has
        saved the same value in the last six hours (:data:`FRESH`).

        :param names: {uuid: name}; characters that cannot be printed are replaced
        :param aggregates: {uuid: name of the aggregate in which the server was evaluated}; a server
            that is not in ``aggregates`` keeps its last aggregate
        """
        new = {uuid: (name, aggregates.get(uuid)) for uuid, name in names.items()
               if not self._is_saved(uuid, name, aggregates.get(uuid), now)}
        if new:
            self._write(new, now)
            fresh = {uuid: pair for uuid, pair in self._saved.items() if now - pair[1] < FRESH}
            self._saved = fresh | {uuid: (known, now) for uuid, known in new.items()}

    def _is_saved(self, uuid: str, name: str, aggregate: str | None,
                  now: datetime.datetime) -> bool:
        (known, known_in), at = self._saved.get(uuid, ((None, None), now))
        return known == name and aggregate in (None, known_in) and now - at < FRESH

    @retried_as_update
    def _write(self, names: Mapping[str, Known], now: datetime.datetime) -> None:
        row, shown = models.ServerNameRow, {uuid: (boundary.shown(name, LONGEST), aggregate)
                                            for uuid, (name, aggregate) in sorted(names.items())}
        with self.database.writer() as session:
            known = _known(session, shown)
            for uuids in _chunks(known):
                session.execute(sa.update(row).where(row.uuid.in_(uuids)).values(seen_at=now))
            for uuid, (name, aggregate) in known.items():
                wanted = (shown[uuid][0], shown[uuid][1] or aggregate)
                if (name, aggregate) != wanted:
                    session.execute(sa.update(row).where(row.uuid == uuid).values(
                        name=wanted[0], aggregate=wanted[1]))
            new = [{'uuid': uuid, 'name': name, 'aggregate': aggregate, 'seen_at': now}
                   for uuid, (name, aggregate) in shown.items() if uuid not in known]
            if new:
                session.execute(sa.insert(row), new)

    def find(self, server: str) -> list[str]:
        """Return the uuids of the servers that have ``server`` as their name. If ``server`` is the
        uuid of a server, return this uuid.

        MariaDB compares texts without regard to case. Names that differ only in case are therefore
        found as well, unless a server has exactly the given name.

        :param server: a name or a uuid
        """
        row = models.ServerNameRow
        with self.database.reader() as session:
            known = session.get(row, server.lower())
            if known is not None:
                return [known.uuid]
            found = session.execute(sa.select(row.uuid, row.name).where(row.name == server)).all()
            exact = [uuid for uuid, name in found if name == server]
            return exact or [uuid for uuid, _name in found]

    @retried
    def page(self, limit: int, marker: str | None,
             part: str) -> list[tuple[str, str, datetime.datetime]]:
        """Return a page of servers as (uuid, name, time at which the name was read), sorted by
        name.

        :param marker: uuid of the last server of the previous page
        :param part: text that the names contain, without regard to case
        :raises ServerNotFound: there is no server with the uuid ``marker``
        """
        row = models.ServerNameRow
        query = sa.select(row.uuid, row.name, row.seen_at).order_by(row.name, row.uuid).limit(limit)
        if part:
            query = query.where(row.name.icontains(part, autoescape=True))
        with self.database.reader() as session:
            if marker is not None:
                last = session.get(row, marker)
                if last is None:
                    raise exception.ServerNotFound(server=marker)
                query = query.where(sa.or_(row.name > last.name, sa.and_(
                    row.name == last.name, row.uuid > last.uuid)))
            return [tuple(found) for found in session.execute(query)]

    def read(self, uuids: Iterable[str]) -> dict[str, str]:
        """Return {uuid: name} of servers. Servers whose names are not known are left out."""
        with self.database.reader() as session:
            return {uuid: name for uuid, (name, _aggregate) in _known(session, uuids).items()}

    @retried
    def aggregate(self, uuid: str) -> str | None:
        """Return the name of the aggregate in which the server was evaluated last; None if that is
        not known."""
        row = models.ServerNameRow
        with self.database.reader() as session:
            return session.scalar(sa.select(row.aggregate).where(row.uuid == uuid))


def _known(session: orm.Session, uuids: Iterable[str]) -> dict[str, tuple[str, str | None]]:
    row, found = models.ServerNameRow, {}
    for chunk in _chunks(uuids):
        found.update({uuid: (name, aggregate) for uuid, name, aggregate in session.execute(
            sa.select(row.uuid, row.name, row.aggregate).where(row.uuid.in_(chunk)))})
    return found


def _chunks(uuids: Iterable[str]) -> list[list[str]]:
    wanted = sorted(set(uuids))
    return [wanted[start:start + CHUNK] for start in range(0, len(wanted), CHUNK)]
