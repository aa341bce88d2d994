"""Losses of single hosts and of failure domains, and the check of whether lost servers can
restart."""

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
"""Level of the loss of a single host, in place of a level of failure domains."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Hosts that fail together.

    level : a level of failure domains, or :data:`HOST`
    name : name of the host or failure domain; the name of a failure domain begins with the names of
        the larger domains around the domain
    hosts : names of the hosts
    """

    level: str
    name: str
    hosts: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JudgedLoss:
    """A loss and the result of its check.

    verdict : result of the check; None if the time for all checks was over before this check
    in_order : result of a second check, in which Nova's scheduler chooses a host for one server
        after the other, without regard to later servers. True if all servers restart; False if it
        is not certain that all servers find a host; None if this was not checked
    """

    loss: Loss
    verdict: LossVerdict | None = None
    in_order: bool | None = None


@dataclasses.dataclass(slots=True)
class LossMemory:
    """The results of earlier checks of losses. A placement has a new host for each server of the
    lost hosts. If an earlier placement is still possible, no new placement is searched.

    placements : {lost hosts: {uuid of a server: host on which it restarts}}
    rounds : number of rounds of checks so far; each call of :func:`judged` begins a round
    judged : {lost hosts: number of the round in which the loss was last checked}
    ordered : {lost hosts: number of the round in which restarts in Nova's order were last checked}
    """

    placements: dict[tuple[str, ...], Mapping[str, str]] = dataclasses.field(default_factory=dict)
    judged: dict[tuple[str, ...], int] = dataclasses.field(default_factory=dict)
    ordered: dict[tuple[str, ...], int] = dataclasses.field(default_factory=dict)
    rounds: int = 0

    def forget_but(self, losses: Iterable[Loss]) -> None:
        """Drop the results of all losses except ``losses``."""
        kept = {loss.hosts for loss in losses}
        for table in (self.placements, self.judged, self.ordered):
            for hosts in table.keys() - kept:
                table.pop(hosts, None)


def of_hosts(hosts: Iterable[Host], names: Collection[str]) -> list[Loss]:
    """Return the possible losses of hosts of an aggregate. There is a loss for each host alone.
    There is also a loss for each failure domain that has one of the aggregate's hosts; this loss
    has all hosts of the domain.

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
    """Check for each loss whether the lost servers can restart, one loss after the other until the
    time is over. The losses whose last check is the oldest come first. Among losses whose last
    check is equally old, the losses of single hosts come first.

    :param memory: results of earlier rounds, to which the results of this round are added
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
    """Check for each covered loss whether all servers restart even when Nova's scheduler chooses a
    host for one server after the other, without regard to later servers. The losses are checked one
    after the other until the time is over. Return the results of :func:`judged`, with ``in_order``
    set for the checked losses.

    :param losses: result of :func:`judged`
    :param memory: results of earlier rounds, to which the results of this round are added
    :param left: returns the seconds that are left
    """
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
