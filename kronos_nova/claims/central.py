"""The claim store ``central``, which keeps claims in the control database. nova-compute cannot
reach this database, so nova-conductor reads and writes the claims."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.claims import message
from kronos_nova.claims import table
from kronos_nova.claims.node_claims import Key
from kronos_nova.db import claim_models
from kronos_nova.db import migrate
from kronos_nova.db.engine import Database
from kronos_nova.objects.claim import Claim

LOG = logging.getLogger(__name__)

R = TypeVar('R')


class CentralStore:
    """The part of the claim store ``central`` that runs in nova-compute. Its methods call
    nova-conductor."""

    def __init__(self, conf: object, host: str, call: Callable[..., Any] | None):
        if call is None:
            raise exception.ConfigurationError(
                what='[kronos_claims] store', problem='is "central". Only nova-compute can use '
                'this store, because only nova-compute can call nova-conductor',
                remedy='Start this program with a configuration in which store is "sqlite".')
        self.host = host
        self._call = call

    def open(self) -> bool:
        """Return True. Nothing has to be opened, because the conductor has the database open."""
        return True

    def load(self) -> list[Claim]:
        """Return the claims of this host. Rows that are not valid claims are left out and
        logged."""
        found, now = [], clock.utcnow()
        for row in self._call('load', host=self.host)[:message.MOST_ROWS]:
            try:
                found.append(message.claim_of(row, self.host, now))
            except (boundary.OutOfBounds, ValueError) as error:
                LOG.warning('A row of the claims of this host in the control database is invalid, '
                            'and is ignored: %s', boundary.shown(error))
        return found

    def write(self, put: Sequence[Claim], drop: Sequence[Key]) -> dict[Key, int]:
        ids = self._call('write', host=self.host, put=[table.to_row(claim) for claim in put],
                         drop=[list(key) for key in drop])
        return {claim.key: number for claim, number in zip(put, ids, strict=True)}

    def close(self) -> None:
        """Do nothing. The conductor keeps the database open."""


class CentralTable:
    """The part of the claim store ``central`` that runs in nova-conductor, for all compute hosts.
    Its methods take and return values that a message can carry.

    :param database: kronos_nova.db.engine.Database of the control database
    :raises DatabaseVersionError: the database is not at the revision of this code
    """

    def __init__(self, database: Database):
        migrate.check(database.engine, migrate.CONTROL)
        self._database = database
        self._table = table.ClaimTable(claim_models.CentralClaim)

    def load(self, host: str) -> list[dict[str, Any]]:
        """Return the claims of a host as dicts.

        :raises ClaimError: ``host`` is not a valid host name
        """
        _checked(boundary.printable, host, 'host')
        with self._database.reader() as session:
            return self._table.load_messages(session.connection(), host)

    def write(self, host: str, put: object, drop: object) -> list[int]:
        """Insert or overwrite the claims ``put``, and remove the claims with the keys ``drop``. All
        claims ``put`` have to be claims of ``host``. A key in ``drop`` removes only a claim of
        ``host``.

        :returns: the ids of the claims ``put``, in the same order
        :raises ClaimError: the claims are invalid, not of ``host``, or more than a host may have;
            nothing was written
        """
        _checked(boundary.printable, host, 'host')
        claims = _checked(message.claims_of, put, host, clock.utcnow())
        keys = _checked(message.keys_of, drop)
        with self._database.writer() as session:
            ids = self._table.write(session.connection(), host, claims, keys)
            if claims and self._table.count(session.connection(), host) > message.MOST_ROWS:
                raise exception.ClaimError(
                    problem=f'host {boundary.shown(host)} would have more than '
                            f'{message.MOST_ROWS} claims')
        return [ids[claim.key] for claim in claims]


def _checked(check: Callable[..., R], *args: Any) -> R:
    try:
        return check(*args)
    except (boundary.OutOfBounds, ValueError) as error:
        raise exception.ClaimError(
            problem=f'the claims of a host are invalid: {boundary.shown(error)}') from error
