"""The claims of a compute host, in memory and in a claim store.

The claims in memory are correct even if the store cannot be written. If the store fails, the error
is logged once. The store is then not used until the next audit of Nova, which updates the store.
"""

import collections
import dataclasses
import datetime
import itertools
from collections.abc import Callable
from collections.abc import Sequence

import prometheus_client
from oslo_log import log as logging

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.claims import node_claims
from kronos_nova.claims.base import ClaimStore
from kronos_nova.claims.node_claims import Key
from kronos_nova.claims.node_claims import NodeClaims
from kronos_nova.objects.claim import Claim

LOG = logging.getLogger(__name__)

UNSAVED = prometheus_client.Gauge(
    'kronos_claims_unsaved', 'Whether the claims of this host are in memory only (1) or kept (0).')
STORE_ERRORS = prometheus_client.Counter(
    'kronos_claims_store_errors_total', 'Failed attempts to read or write the claims.')
ORPHANS = prometheus_client.Counter(
    'kronos_claims_orphans_total',
    'Claims released because they belonged to no instance and no migration.')

KNOWN = (exception.ClaimError, exception.DatabaseVersionError)
"""Errors that a claim store is expected to raise. Other authors may have written the store, so any
other error is handled in the same way, but logged with its traceback."""


class Ledger:
    """The claims of each node of a compute host, in memory and in the store. The caller has to hold
    a lock.

    :param store: ClaimStore
    :param clock: callable that returns the time
    """

    def __init__(self, store: ClaimStore, host: str,
                 clock: Callable[[], datetime.datetime] = clock.utcnow):
        self.store = store
        self.host = host
        self.clock = clock
        self.is_saved = True
        self.nodes: dict[str, NodeClaims] = {}
        # {node: {key: Claim as stored}}
        self._rows: dict[str, dict[Key, Claim]] = collections.defaultdict(dict)
        self._numbers = itertools.count(-1, -1)

    def node_claims(self, node: str) -> NodeClaims:
        if node not in self.nodes:
            self.nodes[node] = NodeClaims(self.host, node)
        return self.nodes[node]

    def open(self) -> bool:
        """Open the store and read its claims.

        :returns: True if the stored claims are complete; False if claims may be missing, or if the
            store cannot be read
        """
        try:
            trusted = self.store.open()
            self._read()
        except Exception as error:
            self._failed(error)
            return False
        return trusted

    def rows(self, node: str) -> list[Claim]:
        """Return the claims of a node that were in the store when the store was last read or
        written."""
        return list(self._rows[node].values())

    def refresh(self) -> None:
        """Read the stored claims again, at the start of an audit of Nova. Since the last reading,
        an operator may have removed claims, or a failed store may work again."""
        try:
            self._read()
        except Exception as error:
            self._failed(error)

    def _read(self) -> None:
        rows: dict[str, dict[Key, Claim]] = collections.defaultdict(dict)
        for claim in self.store.load():
            rows[claim.node][claim.key] = claim
        self._rows = rows

    def save(self, node: str, uuid: str | None = None) -> dict[Key, Claim]:
        """Write changed claims to the store: the claims of the instance ``uuid``, or of all
        instances of the node if ``uuid`` is None.

        If the store has failed, it is used again only when all instances of a node are saved, at an
        audit of Nova.

        :returns: {key: Claim} with ids; the ids of claims that are only in memory are negative
        """
        wanted = self._wanted(node, uuid)
        rows = self._rows[node]
        if uuid is not None:
            rows = {key: rows[key] for key in node_claims.keys_of(node, uuid) if key in rows}
        put = [claim for key, claim in wanted.items()
               if not claim.says_the_same_as(rows.get(key))]
        drop = [key for key in rows if key not in wanted]
        if self.is_saved and (put or drop) or not self.is_saved and uuid is None:
            self._write(node, put, drop)
        return {key: self._numbered(claim) for key, claim in wanted.items()}

    def _numbered(self, claim: Claim) -> Claim:
        """Return the claim with the id that it has in the store. A claim that is not stored gets a
        negative id."""
        row = self._rows[claim.node].get(claim.key)
        number = row.id if row else claim.id or next(self._numbers)
        claim = dataclasses.replace(claim, id=number)
        if claim.key in self.node_claims(claim.node).untracked:
            self.node_claims(claim.node).add_untracked(claim)
        return claim

    def is_expired(self, claim: Claim, expiry: datetime.timedelta) -> bool:
        """Return whether a claim is older than the duration ``expiry``.

        The time of a claim is in the future if the clock of this host was set back after the claim
        was made. This method then sets the time of the claim to now, and returns False. Without
        this correction, the claim would not expire until the clock had caught up.
        """
        now = self.clock()
        if claim.created_at > now:
            self._restamp(claim, now)
            return False
        return claim.created_at + expiry < now

    def _restamp(self, claim: Claim, now: datetime.datetime) -> None:
        claim = dataclasses.replace(claim, created_at=now)
        for claims in (self._rows[claim.node], self.node_claims(claim.node).untracked,
                       self.node_claims(claim.node).waiting):
            if claim.key in claims:
                claims[claim.key] = claim
        if claim.key in self._rows[claim.node] and self.is_saved:
            self._write(claim.node, [claim], [])

    def _wanted(self, node: str, uuid: str | None) -> dict[Key, Claim]:
        mine = self.node_claims(node)
        now = self.clock()
        claims: dict[Key, Claim] = {}
        for each in mine.uuids() if uuid is None else (uuid,):
            claims.update(mine.claims(each, now))
        return {key: self._as_first_made(node, claim) for key, claim in claims.items()}

    def _as_first_made(self, node: str, claim: Claim) -> Claim:
        row = self._rows[node].get(claim.key)
        return claim if row is None else dataclasses.replace(
            claim, id=row.id, created_at=row.created_at)

    def _write(self, node: str, put: Sequence[Claim], drop: Sequence[Key]) -> None:
        try:
            ids = self.store.write(put, drop)
        except Exception as error:
            self._failed(error)
            return
        for key in drop:
            del self._rows[node][key]
        for claim in put:
            self._rows[node][claim.key] = dataclasses.replace(claim, id=ids[claim.key])
        if not self.is_saved:
            LOG.info('The claims of this host can be saved again.')
        self.is_saved = True
        UNSAVED.set(0)

    def forget_node(self, node: str) -> None:
        """Remove all claims of a node. The node no longer belongs to this host."""
        self.nodes.pop(node, None)
        if self._rows[node]:
            self._write(node, [], list(self._rows[node]))

    def _failed(self, error: Exception) -> None:
        STORE_ERRORS.inc()
        UNSAVED.set(1)
        if self.is_saved:
            LOG.error('The claims of this host cannot be saved. nova-compute continues with the '
                      'claims in its memory. A restart of nova-compute loses the claims that were '
                      'not saved: %s', error,
                      exc_info=None if isinstance(error, KNOWN) else error)
        self.is_saved = False
