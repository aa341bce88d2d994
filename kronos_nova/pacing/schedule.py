"""The schedule of a plan: the times at which its moves begin and end.

A *slot* is the permission for one move in progress, in the cloud or on a host. A list schedule
never leaves a slot idle while a move could use the slot. So a list schedule is at most twice as
long as the shortest schedule (Graham, SIAM J. Appl. Math. 1969). Several orders of the moves, among
them the given order, are simulated with predicted durations. The function :func:`best` chooses one
of these schedules.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from kronos_nova.objects.move import Caps
from kronos_nova.pacing.precopy import Copy

TOLERANCE = 1e-9
"""Largest difference in seconds at which two times in a schedule count as equal. Fixed: far below
the accuracy of a schedule."""
SAME = 0.2
"""Step, as a fraction of a link's bandwidth, to which overloads are rounded. The overload of a link
is the part of its predicted traffic that exceeds its bandwidth. The overload of a move is the
larger of two overloads once the move has started: that of the source's link and that of the
destination's link. Of equally urgent moves, the move with the smallest rounded overload starts
first. If the rounded overloads are equal as well, the longest move starts first.

Raised, a move may start although another move would overload the links less; lowered, errors of the
predictions decide which move starts. Chosen just above the median error of predicted durations,
which is 10 to 18 % (``bench makespan``)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A move to be scheduled.

    after : positions, in the list of jobs, of the moves that must end before this move begins
    heat : score of the host that the move relieves; 0 if load does not matter
    due : seconds from now within which the move has to end
    is_running : whether the move has already begun. Moves that have begun may exceed the limits on
        concurrent moves
    """

    instance: str
    source: str
    destination: str
    copy: Copy
    after: tuple[int, ...] = ()
    heat: float = 0.0
    due: float = np.inf
    is_running: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Bandwidths of migrations and of the hosts' links, in MiB per second.

    stream : maximum bandwidth of one migration
    default : bandwidth, in each direction, of the link of a host that is not in ``hosts``
    hosts : {host: bandwidth of its link in each direction}
    """

    stream: float
    default: float
    hosts: dict[str, float] = dataclasses.field(default_factory=dict)

    def of_host(self, host: str) -> float:
        return self.hosts.get(host, self.default)


@dataclasses.dataclass(frozen=True, slots=True)
class Timeline:
    """The times at which moves begin and end.

    begins, ends : float64, for each move the seconds from now to its beginning and to its end
    """

    begins: np.ndarray
    ends: np.ndarray

    @property
    def makespan(self) -> float:
        return float(self.ends.max(initial=0.0))


def best(jobs: Sequence[Job], caps: Caps, links: Links) -> Timeline:
    """Return the best schedule of the moves.

    If any move relieves a hot host, the moves off the hottest host begin first. The given order is
    used instead if its schedule is shorter.

    If no move relieves a hot host, the schedule is chosen by the deadlines of the moves. The delay
    of a move is the time from its deadline to its end. The delay of a schedule is the largest delay
    of its moves. The schedule with the smallest delay is chosen; of schedules with equal delays,
    the shortest.
    """
    floor = _Floor(jobs, caps, links)
    first_come = floor.play(_first_come)
    if any(job.heat for job in jobs):
        hottest = floor.play(_hottest)
        return hottest if hottest.makespan <= first_come.makespan + TOLERANCE else first_come
    due = np.array([job.due for job in jobs])
    found = [first_come, *(floor.play(rule) for rule in RULES)]
    return min(found, key=lambda timeline: (
        np.maximum(timeline.ends - due, 0.0).max(initial=0.0).round(6), timeline.makespan))


def first_come(jobs: Sequence[Job], caps: Caps, links: Links) -> Timeline:
    """Return the schedule in which moves begin in the given order, as soon as the limits permit."""
    return _Floor(jobs, caps, links).play(_first_come)


def lower_bound(jobs: Sequence[Job], caps: Caps, links: Links) -> float:
    """Return a lower bound of the duration of any schedule, in seconds.

    The bound is the largest of three times: the time that the busiest host or link needs for its
    moves; the time of all moves one after the other, divided by the number of moves that may run at
    the same time in the cloud; and the duration of the longest chain of moves. In a chain, each
    move waits for the end of the move before it.
    """
    floor = _Floor(jobs, caps, links)
    return float(max(floor.alone.sum() / caps.total, floor.tails.max(initial=0.0),
                     *(floor.work(True, n).max(initial=0.0) for n in (0, 1))))


class _Floor:
    """A simulation of n moves that share the slots and links of hosts. A slot is the right of one
    move to run on a host. The method :meth:`work` gives a lower bound of the time that the moves
    take. Each array has one element for each move, or one element for each host."""

    def __init__(self, jobs: Sequence[Job], caps: Caps, links: Links):
        self.jobs, self.links, self.total = jobs, links, caps.total
        names = sorted({name for job in jobs for name in (job.source, job.destination)})
        index = {name: n for n, name in enumerate(names)}
        self.ends_at = tuple(np.array([index[getattr(job, side)] for job in jobs], dtype=np.intp)
                             for side in ('source', 'destination'))
        self.slots = (np.array([caps.sources.get(name, caps.per_source) for name in names]),
                      np.full(len(names), caps.per_destination))
        self.link = np.array([links.of_host(name) for name in names], dtype=float)
        self.instance = np.unique([job.instance for job in jobs], return_inverse=True)[1]
        self.running = np.array([job.is_running for job in jobs], dtype=bool)
        self.heat = np.array([job.heat for job in jobs])
        self.due = np.array([job.due for job in jobs])
        self.fixed = np.array([job.copy.factor * job.copy.fixed for job in jobs])
        most = np.array([self._most(n) for n in range(len(jobs))])
        self.alone = np.array([job.copy.seconds(bandwidth)
                               for job, bandwidth in zip(jobs, most, strict=True)])
        self.copied = (self.alone - self.fixed) * most
        self.mean_rate = self.copied / np.maximum(self.alone, TOLERANCE)
        self.tails = _tails(jobs, self.alone)
        self._dependents: list[list[int]] = [[] for _ in jobs]
        for n, job in enumerate(jobs):
            for earlier in job.after:
                self._dependents[earlier].append(n)

    def _most(self, n: int) -> float:
        return min(self.links.stream, *(self.link[ends[n]] for ends in self.ends_at))

    def work(self, some: np.ndarray | bool, side: int) -> np.ndarray:
        """Return float64 (hosts,): a lower bound of the seconds that each host needs for the moves
        in ``some``. The bound follows from the slots and the link of the host.

        :param some: bool (n,), true for the moves that count; or True for all moves
        :param side: 0 for moves off the host, 1 for moves to the host
        """
        slots = np.minimum(self.slots[side], np.maximum(self._on(side), 1))
        return np.maximum(self._on(side, self.alone * some) / slots,
                          self._on(side, self.copied * some) / self.link)

    def _on(self, side: int, what: np.ndarray | None = None) -> np.ndarray:
        """Return an array with a value for each host: the sum of ``what`` over the moves of the
        host. If ``what`` is None, return the number of moves of each host.

        :param side: 0 for moves off the host, 1 for moves to the host
        :param what: array with a value for each move
        """
        return np.bincount(self.ends_at[side], weights=what, minlength=len(self.link))

    def play(self, rule: 'Rule') -> Timeline:
        """Simulate all moves and return the times at which they begin and end.

        :param rule: function that chooses the next move among the moves that may begin
        """
        count = len(self.jobs)
        begins, ends = np.full(count, np.nan), np.full(count, np.nan)
        # ``ahead`` has the seconds until each move begins to copy, ``left`` the part of its copying
        # that is left.
        ahead, left = self.fixed.copy(), np.ones(count)
        under_way = np.zeros(count, dtype=bool)
        self._held = np.array([len(job.after) for job in self.jobs])
        now = 0.0
        for n in np.flatnonzero(self.running):
            under_way[n], begins[n] = True, 0.0
        while np.isnan(ends).any():
            self._start(rule, begins, under_way, now)
            copying = under_way & (ahead <= TOLERANCE)
            preparing, going = np.flatnonzero(under_way & ~copying), np.flatnonzero(copying)
            seconds = self._seconds(going, copying)
            step = np.concatenate([ahead[preparing], left[going] * seconds]).min()
            now += step
            ahead[preparing] -= step
            left[going] -= step / seconds
            done = going[left[going] <= TOLERANCE]
            under_way[done], ends[done] = False, now
            for n in done:
                self._held[self._dependents[n]] -= 1
        return Timeline(begins, ends)

    def _start(self, rule: 'Rule', begins: np.ndarray, under_way: np.ndarray,
               now: float) -> None:
        while under_way.sum() < self.total:
            may = self._may_begin(begins, under_way)
            if not len(may):
                return
            n = may[rule(self, may, under_way, np.isnan(begins))]
            under_way[n], begins[n] = True, now

    def _may_begin(self, begins: np.ndarray, under_way: np.ndarray) -> np.ndarray:
        may = np.isnan(begins) & (self._held == 0)
        for side in (0, 1):
            may &= (self._busy(side, under_way) < self.slots[side])[self.ends_at[side]]
        busy = np.zeros(len(self.jobs), dtype=bool)
        busy[self.instance[under_way]] = True
        return np.flatnonzero(may & ~busy[self.instance])

    def _busy(self, side: int, under_way: np.ndarray) -> np.ndarray:
        return np.bincount(self.ends_at[side][under_way], minlength=len(self.link))

    def bandwidth(self, moves: np.ndarray, under_way: np.ndarray, more: int = 0) -> np.ndarray:
        """Return float64: the bandwidth of each of ``moves``, in MiB per second. The moves in
        progress on a link share the link equally. A move gets at most the maximum bandwidth of one
        migration.

        :param moves: positions of the moves
        :param under_way: bool (n,), True for the moves in progress
        :param more: number of moves on each link in addition to the moves in progress
        """
        share = np.full(len(moves), float(self.links.stream))
        for side in (0, 1):
            host = self.ends_at[side][moves]
            share = np.minimum(share, self.link[host] / (
                self._busy(side, under_way)[host] + more))
        return share

    def _seconds(self, going: np.ndarray, under_way: np.ndarray) -> np.ndarray:
        """Return float64: the seconds that each of the moves ``going`` needs to copy all of its
        memory. The number of moves on each link is assumed not to change during this time.

        :param going: positions of the moves that are copying, for which times are returned
        :param under_way: bool (n,), True for each move that is copying; these moves share the links
        """
        return np.array([max(self.jobs[n].copy.seconds(bandwidth) - self.fixed[n], TOLERANCE)
                         for n, bandwidth in zip(going, self.bandwidth(going, under_way),
                                                 strict=True)])

    def bottleneck(self, may: np.ndarray, waits: np.ndarray) -> np.ndarray:
        """Return float64: the urgency of each move that may begin, in seconds. The urgency is the
        larger of two times. The first is the time that the busier one of the move's two hosts still
        needs for its moves. The second is the duration of the longest chain of moves that begins
        with this move. In a chain, each move waits for the end of the move before it.

        :param may: positions of the moves that may begin
        :param waits: bool (n,), True for the moves that have not begun
        """
        found = self.tails[may]
        for side in (0, 1):
            found = np.maximum(found, self.work(waits, side)[self.ends_at[side][may]])
        return found

    def crowding(self, may: np.ndarray, under_way: np.ndarray) -> np.ndarray:
        """Return float64, one value for each move that may begin: the fraction by which the move
        would overload the link of its source or of its destination, whichever is larger; 0 if both
        links have enough bandwidth. Each move is assumed to use as much bandwidth as it would use
        on average without other moves.

        :param may: positions of the moves that may begin
        :param under_way: bool (n,), True for the moves in progress
        """
        found = np.zeros(len(may))
        for side in (0, 1):
            host = self.ends_at[side][may]
            asked = self._on(side, self.mean_rate * under_way)[host] + self.mean_rate[may]
            found = np.maximum(found, asked / self.link[host] - 1.0)
        return found


def _tails(jobs: Sequence[Job], alone: np.ndarray) -> np.ndarray:
    """Return float64, one value for each job: the seconds of the longest chain of moves that begins
    with this move. In a chain, each move waits for the end of the move before it.

    :param alone: seconds of each move while no other moves are in progress
    """
    tails = alone.copy()
    for n in range(len(jobs) - 1, -1, -1):
        for earlier in jobs[n].after:
            tails[earlier] = max(tails[earlier], alone[earlier] + tails[n])
    return tails


Rule = Callable[[_Floor, np.ndarray, np.ndarray, np.ndarray], int]
"""A function that chooses the next move to begin, among the moves that may begin now.

The function has four arguments: the simulation; intp (n,), the positions of the moves that may
begin; bool (m,), true for the moves in progress; and bool (m,), true for the moves that have not
begun. The function returns an index into the second argument. ``_free_links`` is good if slots are
scarce, because moves get free links. ``_bottleneck`` is good if bandwidth is scarce, because the
busiest link stays in use.
"""


def _first_come(_floor: _Floor, _may: np.ndarray, _under_way: np.ndarray,
                _waits: np.ndarray) -> int:
    return 0


def _hottest(floor: _Floor, may: np.ndarray, under_way: np.ndarray, _waits: np.ndarray) -> int:
    return _first(-floor.heat[may], -floor.bandwidth(may, under_way, 1))


def _free_links(floor: _Floor, may: np.ndarray, under_way: np.ndarray, waits: np.ndarray) -> int:
    return _first(floor.due[may], -floor.bandwidth(may, under_way, 1),
                  -floor.bottleneck(may, waits), -floor.alone[may])


def _bottleneck(floor: _Floor, may: np.ndarray, under_way: np.ndarray, waits: np.ndarray) -> int:
    return _first(floor.due[may], -floor.bottleneck(may, waits).round(3),
                  (floor.crowding(may, under_way) / SAME).round(), -floor.alone[may])


def _first(*keys: np.ndarray) -> int:
    return int(np.lexsort(keys[::-1])[0])


RULES = _free_links, _bottleneck
