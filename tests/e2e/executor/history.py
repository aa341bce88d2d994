"""Checks of the journal's events: were the caps kept, was any move overtaken."""

import datetime
import itertools

from kronos_nova import exception
from kronos_nova.executor.outcome import HARMLESS
from kronos_nova.objects import move as moves
from kronos_nova.pacing.slots import ConcurrencySlots

COMMIT = datetime.timedelta(seconds=1)
"""The delay after its time with which an end may be written, because a dispatcher sees it only
then."""


LOST = {exception.MigrationFailed.__name__, exception.MigrationTimeout.__name__}
ERROR_TYPES = LOST | {exception.PreFlightError.__name__, exception.PlanOutdated.__name__, *HARMLESS}


def requests(events):
    """Return how often Nova was asked: entries into MIGRATING."""
    return sum(1 for _at, old, new, _worker, _detail in events
               if new == moves.MIGRATING and old != moves.MIGRATING)


def blamed(events, over):
    """The ends of a move's tries that were judged as more than a service not answering, although an
    outage lasted until ``over``.

    A migration that Nova was asked for before that may be lost to Nova itself, and what is tried
    after it meets what it left.
    """
    asked, found = None, []
    for at, old, new, _worker, detail in events:
        if new == moves.MIGRATING and old != moves.MIGRATING:
            asked = at
        kind = detail.partition(':')[0]
        if new not in (moves.PLANNED, moves.FAILED) or kind not in ERROR_TYPES:
            continue
        if kind in LOST and asked is not None and asked < over:
            return found
        if kind not in HARMLESS:
            found.append(detail)
    return found


def changes(done, events, delay=datetime.timedelta()):
    """[(time, whether it counts from then on, move)], in order of time, ends first.

    :param delay: by how much ends are later
    """
    found = []
    for move in done:
        for at, old, new, _worker, _detail in events[move.uuid]:
            was, counts = old in moves.IN_FLIGHT, new in moves.IN_FLIGHT
            if was != counts:
                found.append((at if counts else at + delay, counts, move))
    return sorted(found, key=lambda change: change[:2])


def cap_violations(done, events, caps):
    """Moments at which more moves were in progress than the caps allow."""
    under_way, wrong = {}, []
    for at, counts, move in changes(done, events):
        if counts:
            if not ConcurrencySlots(caps, under_way.values()).enter(move):
                wrong.append((at, move.uuid, len(under_way)))
            under_way[move.uuid] = move
        else:
            under_way.pop(move.uuid)
    return wrong


def overtakings(done, events, caps):
    """Dispatches, at the first try, of a move that was due later than one for which there was room.

    :param done: moves of one plan; a move that is tried again is due again, and not judged
    """
    under_way, waiting, wrong = {}, sorted(done, key=_due), []
    changed = changes(done, events, COMMIT)
    for _at, batch in itertools.groupby(changed, key=lambda change: change[:2]):
        batch = [(counts, move) for _when, counts, move in batch]
        if not batch[0][0]:
            for _counts, move in batch:
                under_way.pop(move.uuid)
            continue
        going = {move.uuid for _counts, move in batch}
        slots = ConcurrencySlots(caps, under_way.values())
        last = max((waiting.index(move) for _counts, move in batch if move in waiting), default=-1)
        for move in waiting[:last + 1]:
            if slots.enter(move) and move.uuid not in going:
                wrong.append((move.uuid, sorted(going)))
        waiting = [move for move in waiting if move.uuid not in going]
        under_way.update((move.uuid, move) for _counts, move in batch)
    return wrong


def _due(move):
    return move.not_before, move.position, move.ordinal
