"""The claims of a compute node. From the claims, the resource tracker of Kronos, which extends
Nova's, computes the usage of the node. This module is pure: it has no I/O and reads no clock.

There are three kinds of claims:

* a claim of an instance on the node
* a claim of a move to or from the node
* an *untracked* claim, which Nova's code does not count: Kronos has prepared the claim before a
  move, or Nova's audit did not find its instance

A node has at most two claims of an instance at the same time, which differ in ``resize_target``.
"""

import collections
import dataclasses
import datetime
from collections.abc import Iterable

from kronos_nova.objects.claim import CLAIMED
from kronos_nova.objects.claim import Amount
from kronos_nova.objects.claim import Claim

#: The key of a claim: (node, uuid of the instance, ``resize_target``).
Key = tuple[str, str, bool]


def keys_of(node: str, uuid: str) -> tuple[Key, Key]:
    """Return the two keys (node, uuid of the instance, ``resize_target``) that claims of an
    instance on a node can have. The first key is for resources that the instance has already. The
    second key is for resources that the instance gets by a move."""
    return (node, uuid, False), (node, uuid, True)


@dataclasses.dataclass(frozen=True, slots=True)
class MoveClaim:
    """The usage that Nova counts for a migration. ``is_old`` is true for the resources of the
    instance before the migration, which are kept for a revert. ``is_old`` is false for the
    resources of the instance after the migration."""

    amount: Amount
    is_old: bool
    migration_uuid: str


@dataclasses.dataclass(slots=True)
class _Holding:
    instance: Amount | None = None
    move: MoveClaim | None = None

    def amounts(self) -> dict[bool, Amount]:
        """Return the Amounts of one instance's claims, by ``resize_target``. The key True has the
        resources after a move. The key False has the resources before a move, or the resources of
        an instance that does not move. A key without a claim is left out."""
        if self.move is None:
            return {False: self.instance} if self.instance else {}
        if self.instance is None:
            return {not self.move.is_old: self.move.amount}
        if self.move.is_old:
            return {False: self.move.amount, True: self.instance}
        return {False: self.instance, True: self.move.amount}


class NodeClaims:
    """The claims of one node.

    ``untracked`` is {key: Claim} of the claims whose usage Nova itself does not count.
    ``is_audited`` is true while Nova's audit counts all usage again. During the audit, ``waiting``
    has the claims that were untracked before the audit.
    """

    def __init__(self, host: str, node: str):
        self.host = host
        self.node = node
        self.untracked: dict[Key, Claim] = {}
        self.waiting: dict[Key, Claim] = {}
        self.is_audited = False
        self._holdings: collections.defaultdict[str, _Holding] = collections.defaultdict(_Holding)

    def begin_audit(self) -> None:
        """Drop all claims except the untracked ones, because Nova's audit is about to count all
        usage again. Keep the untracked claims in ``waiting`` until the audit ends."""
        self._holdings.clear()
        self.waiting.update(self.untracked)
        self.untracked.clear()
        self.is_audited = True

    def end_audit(self, untracked: Iterable[Claim]) -> None:
        """End Nova's audit, and set the untracked claims.

        :param untracked: Claims that the audit has not counted
        """
        self.waiting.clear()
        for claim in untracked:
            self.add_untracked(claim)
        self.is_audited = False

    def track_instance(self, uuid: str, amount: Amount) -> None:
        self._holdings[uuid].instance = amount

    def track_move(self, uuid: str, move: MoveClaim) -> None:
        """Set the claim of a move. PCI devices in this claim are removed from the claim of the
        instance itself, so that each device is counted once."""
        holding = self._holdings[uuid]
        holding.move = move
        if holding.instance:
            holding.instance = dataclasses.replace(holding.instance, pci=tuple(
                address for address in holding.instance.pci if address not in move.amount.pci))

    def forget_instance(self, uuid: str) -> None:
        """Drop the claim of an instance itself, because the instance has left or was never built.
        The claim of a move of the instance is kept."""
        holding = self._holdings[uuid]
        holding.instance = None
        if holding.move is None:
            del self._holdings[uuid]

    def drop_move(self, uuid: str, is_old: bool) -> Amount | None:
        """Drop one of the two claims of an instance whose move has ended. The other claim becomes
        the claim of the instance itself.

        If the instance has only one claim on this node, this claim is dropped, for any value of
        ``is_old``.

        :param is_old: whether to drop the claim for the resources before the move
        :returns: the dropped Amount; None if there was no claim
        """
        sides = self.amounts(uuid)
        gone = sides.pop(not is_old, None) or (sides.popitem()[1] if sides else None)
        self._holdings.pop(uuid, None)
        for claim in self.untracked_for(uuid):
            del self.untracked[claim.key]
        for amount in sides.values():
            self.track_instance(uuid, amount)
        return gone

    def add_untracked(self, claim: Claim) -> None:
        self.untracked[claim.key] = claim

    def untracked_for(self, uuid: str) -> list[Claim]:
        return [self.untracked[key] for key in keys_of(self.node, uuid) if key in self.untracked]

    def knows(self, uuid: str) -> bool:
        """Return True if Nova itself counts usage of an instance on this node."""
        return uuid in self._holdings

    def uuids(self) -> set[str]:
        return {*self._holdings, *(claim.instance_uuid for claim in self.untracked.values())}

    def amounts(self, uuid: str) -> dict[bool, Amount]:
        """Return the Amounts of the claims of an instance, by ``resize_target``."""
        amounts = {claim.resize_target: claim.amount for claim in self.untracked_for(uuid)}
        return amounts | self._holdings[uuid].amounts() if uuid in self._holdings else amounts

    def claims(self, uuid: str, now: datetime.datetime) -> dict[Key, Claim]:
        """Return {key: Claim} of an instance. For the keys, see :func:`keys_of`.

        :param now: creation time of the claims that Nova's tracker counts; an untracked claim keeps
            its own creation time
        """
        claims = {claim.key: claim for claim in self.untracked_for(uuid)}
        if uuid not in self._holdings:
            return claims
        holding = self._holdings[uuid]
        for resize_target, amount in holding.amounts().items():
            claim = Claim(
                host=self.host, node=self.node, instance_uuid=uuid, amount=amount, created_at=now,
                resize_target=resize_target, state=CLAIMED,
                migration_uuid=holding.move.migration_uuid if holding.move else None)
            claims[claim.key] = claim
        return claims
