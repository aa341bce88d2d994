"""The store ``central``: claims in the control database, which only the conductor reaches."""

from kronos_nova import exception
from kronos_nova.claims import table
from kronos_nova.db import claim_models
from kronos_nova.db import migrate


class CentralStore:
    """The compute host's side."""

    def __init__(self, conf, host, call):
        if call is None:
            raise exception.ConfigurationError(
                what='[kronos_claims] store', problem='"central" needs a conductor to ask',
                remedy='Use it in nova-compute only; "sqlite" works everywhere.')
        self.host = host
        self._call = call

    def open(self):
        """The conductor keeps the one database: there is nothing to open."""
        return True

    def load(self):
        return [table.from_message(row) for row in self._call('load', host=self.host)]

    def write(self, put, drop):
        ids = self._call('write', host=self.host, put=[table.to_row(claim) for claim in put],
                         drop=[list(key) for key in drop])
        return {claim.key: number for claim, number in zip(put, ids, strict=True)}

    def close(self):
        """As :meth:`open`: nothing."""


class CentralTable:
    """The conductor's side, in values that a message can carry.

    :param database: kronos_nova.db.engine.Database of the control database
    :raises DatabaseVersionError: it is not at the revision of this code
    """

    def __init__(self, database):
        migrate.check(database.engine, migrate.CONTROL)
        self._database = database
        self._table = table.ClaimTable(claim_models.CentralClaim)

    def load(self, host):
        """Rows as dicts."""
        with self._database.reader() as session:
            return self._table.load_messages(session.connection(), host)

    def write(self, host, put, drop):
        """:returns: the ids of ``put``, in its order"""
        claims = [table.from_message({'id': None, **row}) for row in put]
        with self._database.writer() as session:
            ids = self._table.write(session.connection(), host, claims,
                                    [tuple(key) for key in drop])
        return [ids[claim.key] for claim in claims]
