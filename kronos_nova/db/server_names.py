"""Names of the servers in plans; the journal itself has uuids only."""

import sqlalchemy as sa

from kronos_nova import boundary
from kronos_nova.db import models
from kronos_nova.db.retry import retried_as_update

LONGEST = 200
"""Characters of a name; how many more there were has to fit in as well."""

CHUNK = 500
"""Values in one query; SQLite and MySQL take more, but a statement should stay readable."""


class ServerNames:
    """Names by uuid, as they were when last read."""

    def __init__(self, database):
        self.database = database

    @retried_as_update
    def save(self, names, now):
        """
        :param names: {uuid: name}; what cannot be printed is replaced
        """
        row, shown = models.ServerNameRow, {uuid: boundary.shown(name, LONGEST)
                                            for uuid, name in sorted(names.items())}
        with self.database.writer() as session:
            known = _names(session, shown)
            for uuids in _chunks(known):
                session.execute(sa.update(row).where(row.uuid.in_(uuids)).values(seen_at=now))
            for uuid, name in known.items():
                if name != shown[uuid]:
                    session.execute(sa.update(row).where(row.uuid == uuid).values(name=shown[uuid]))
            new = [{'uuid': uuid, 'name': name, 'seen_at': now} for uuid, name in shown.items()
                   if uuid not in known]
            if new:
                session.execute(sa.insert(row), new)

    def read(self, uuids):
        """{uuid: name} of those of the servers whose names are known."""
        with self.database.reader() as session:
            return _names(session, uuids)


def _names(session, uuids):
    row, found = models.ServerNameRow, {}
    for chunk in _chunks(uuids):
        found.update(session.execute(
            sa.select(row.uuid, row.name).where(row.uuid.in_(chunk))).all())
    return found


def _chunks(uuids):
    wanted = sorted(set(uuids))
    return [wanted[start:start + CHUNK] for start in range(0, len(wanted), CHUNK)]
