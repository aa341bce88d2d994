"""Losses of single hosts and of failure domains, and judgement of whether they are covered."""

import dataclasses
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from kronos_nova.objects import domains
from kronos_nova.objects.snapshot import Host
from kronos_nova.room.failover import FITS
from kronos_nova.room.failover import Failover
from kronos_nova.room.failover import LossVerdict

HOST = ''
"""The level of a loss of one host."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Hosts that fail together.

    level : a level of failure domains, or :data:`HOST`
    name : name of the host, or of the domain preceded by the larger ones around it
    hosts : names of the hosts
    """

    level: str
    name: str
    hosts: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JudgedLoss:
    """A loss and its verdict.

    verdict : None where there was no time to judge the loss
    in_order : whether all servers also restart if Nova chooses their hosts one after the other;
        None where that was not judged
    """

    loss: Loss
    verdict: LossVerdict | None = None
    in_order: bool | None = None


@dataclasses.dataclass(slots=True)
class LossMemory:
    """The placements found in earlier rounds of judging, and the round in which each loss was last
    judged.

    A known placement that is still valid need not be searched again.
    """

    placements: dict[tuple[str, ...], Mapping[str, str]] = dataclasses.field(default_factory=dict)
    judged: dict[tuple[str, ...], int] = dataclasses.field(default_factory=dict)
    ordered: dict[tuple[str, ...], int] = dataclasses.field(default_factory=dict)
    rounds: int = 0

    def forget_but(self, losses: Iterable[Loss]) -> None:
        """Drop the results of all other losses."""
        kept = {loss.hosts for loss in losses}
        for table in (self.placements, self.judged, self.ordered):
            for hosts in table.keys() - kept:
                table.pop(hosts, None)  # type: ignore[attr-defined]


def of_hosts(hosts: Iterable[Host], names: Collection[str]) -> list[Loss]:
    """Return the possible losses of hosts of an aggregate: each host alone, and each failure domain
    of one of the hosts, with all hosts of the domain.

    :param hosts: all hosts of the cloud
    :param names: names of the aggregate's hosts
    """
    found = [Loss(level=HOST, name=name, hosts=(name,)) for name in sorted(names)]
    members: dict[tuple[str, domains.Place], list[str]] = {}
    wanted = set()
    for host in sorted(hosts, key=lambda each: each.name):
        for level in host.domains:
            place = domains.place(host, level)
            if place is not None:
                members.setdefault((level, place), []).append(host.name)
                if host.name in names:
                    wanted.add((level, place))
    return found + [
        Loss(level=level, name='/'.join(place), hosts=tuple(members[level, place]))
        for level, place in sorted(wanted)]


def judged(failover: Failover, losses: Sequence[Loss], memory: LossMemory,
           left: Callable[[], float]) -> dict[Loss, JudgedLoss]:
    """Judge losses until the time is over. Hosts come before failure domains, and of each the
    losses whose last judgement is the oldest come first.

    :param memory: results of earlier rounds, to which those of this round are added
    :param left: returns the seconds that are left
    :returns: the results in the order of ``losses``
    """
    memory.rounds += 1
    found = {loss: JudgedLoss(loss=loss) for loss in losses}
    for loss in _longest_first(losses, memory.judged):
        seconds = left()
        if seconds <= 0:
            break
        verdict = failover.judge(_indexes(failover, loss), memory.placements.get(loss.hosts),
                                 seconds)
        found[loss] = JudgedLoss(loss=loss, verdict=verdict)
        memory.judged[loss.hosts] = memory.rounds
        if verdict.verdict == FITS:
            memory.placements[loss.hosts] = verdict.placement
    return found


def ordered(failover: Failover, losses: Mapping[Loss, JudgedLoss], memory: LossMemory,
            left: Callable[[], float]) -> dict[Loss, JudgedLoss]:
    """Judge for covered losses whether all servers also restart in Nova's order. Parameters are as
    of :func:`judged`."""
    found = dict(losses)
    for loss in _longest_first([loss for loss, each in losses.items()
                                if each.verdict and each.verdict.verdict == FITS], memory.ordered):
        if left() <= 0:
            break
        found[loss] = dataclasses.replace(
            found[loss], in_order=failover.fits_in_novas_order(_indexes(failover, loss)))
        memory.ordered[loss.hosts] = memory.rounds
    return found


def _indexes(failover: Failover, loss: Loss) -> list[int]:
    return [failover.index(name) for name in loss.hosts]


def _longest_first(losses: Iterable[Loss], rounds: Mapping[tuple[str, ...], int]) -> list[Loss]:
    return sorted(losses, key=lambda loss: (
        rounds.get(loss.hosts, 0), loss.level != HOST, loss.level, loss.name))
