"""The executor's part of an installation in virtual time: which moves of several plans run when."""

import dataclasses
from collections.abc import Iterable

from kronos_nova.objects import plan
from kronos_nova.objects.move import Caps
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import PlannedMove

ROUNDED = 1.0
"""Seconds of delay that the rounding of a plan's figures may add up to."""


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A move that completed; times in seconds since the plans began."""

    aggregate: str
    begun: float
    ended: float
    move: PlannedMove

    @property
    def key(self) -> tuple[str, int]:
        return self.aggregate, self.move.order


def dispatched(reports: Iterable[AggregateReport], caps: Caps, stale_after: float) -> list[Run]:
    """Carry out plans that begin together; the moves in the order in which they end.

    A move begins at the time that its plan gives it, or later if the caps of the whole cloud have
    no room for it then. It takes the seconds that its plan expects. A move that does not begin
    within ``stale_after`` seconds is given up, with the moves that depend on it, unless it empties
    a host. One plan alone is carried out as it expects.
    """
    waiting = sorted(((report.name, move) for report in reports for move in report.moves),
                     key=lambda pair: (_turn(pair[1]), pair[0], pair[1].order))
    running, made, now = [], [], 0.0
    done, gone = set(), set()
    while waiting or running:
        for name, move in list(waiting):
            needed = {(name, order) for order in move.depends_on}
            is_late = now > stale_after + ROUNDED and move.phase != plan.EVACUATE
            if is_late or needed & gone:
                waiting.remove((name, move))
                gone.add((name, move.order))
            elif _turn(move) <= now and needed <= done and _has_room(move, running, caps):
                waiting.remove((name, move))
                running.append(Run(name, now, now + (move.expected_seconds or 0.0), move))
        now = min([run.ended for run in running]
                  + [_turn(move) for _name, move in waiting if _turn(move) > now], default=now)
        ended = sorted((run for run in running if run.ended <= now),
                       key=lambda run: (run.ended, run.key))
        made += ended
        done.update(run.key for run in ended)
        running = [run for run in running if run.ended > now]
    return made


def _turn(move):
    return move.begins_after or 0.0


def _has_room(move, running, caps):
    return (len(running) < caps.total
            and sum(run.move.source == move.source for run in running) < caps.per_source
            and sum(run.move.destination == move.destination
                    for run in running) < caps.per_destination)
