"""Access to stored claims for commands, which run outside of nova-compute."""

from collections.abc import Collection

import sqlalchemy as sa

from kronos_nova import exception
from kronos_nova.claims import table
from kronos_nova.db import claim_models
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.objects.claim import Claim

MODELS = {migrate.CLAIMS: claim_models.LocalClaim, migrate.CONTROL: claim_models.CentralClaim}


class ClaimReader:
    """Access to the claims of all hosts in one database. The database is not created, upgraded or
    repaired.

    :param history: the schema revisions of the database: migrate.CLAIMS for a claims file, or
        migrate.CONTROL for the control database
    :raises DatabaseVersionError: the database is not at the revision of this code
    """

    def __init__(self, engine: sa.Engine, history: migrate.RevisionHistory):
        migrate.check(engine, history)
        self._database = db_engine.Database(engine)
        self._table = table.ClaimTable(MODELS[history])

    def all(self) -> list[Claim]:
        """Return all claims, in the order of their ids."""
        with self._database.reader() as session:
            return self._table.load_all(session.connection())

    def get(self, claim_id: int) -> Claim:
        """Return a claim by its id.

        :raises ClaimError: there is no claim with this id
        """
        for claim in self.all():
            if claim.id == claim_id:
                return claim
        raise exception.ClaimError(problem=f'there is no claim with the id {claim_id}')

    def remove(self, claims: Collection[Claim]) -> None:
        with self._database.writer() as session:
            self._table.remove(session.connection(), claims)
