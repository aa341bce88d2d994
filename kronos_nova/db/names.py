"""How the servers are called that plans speak of: the journal itself knows them by uuid."""

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
    def keep(self, names, now):
        """
        :param names: {uuid: name}; what cannot be printed is replaced
        """
        with self.database.writer() as session:
            for uuid, name in sorted(names.items()):
                session.merge(models.ServerName(
                    uuid=uuid, name=boundary.shown(name, LONGEST), seen_at=now))

    def of(self, uuids):
        """{uuid: name} of those of the servers whose names are known."""
        wanted, found = sorted(set(uuids)), {}
        with self.database.reader() as session:
            for start in range(0, len(wanted), CHUNK):
                found.update(session.execute(sa.select(
                    models.ServerName.uuid, models.ServerName.name,
                ).where(models.ServerName.uuid.in_(wanted[start:start + CHUNK]))).all())
        return found
