"""What the journal's events tell: were the caps kept, was anybody overtaken."""

import itertools

from kronos_nova.db import room
from kronos_nova.objects import move as moves


def requests(events):
    """How often Nova was asked: entries into MIGRATING."""
    return sum(1 for _at, old, new, _worker, _detail in events
               if new == moves.MIGRATING and old != moves.MIGRATING)


def changes(done, events):
    """[(time, move, whether it counts from then on)], in order of time, ends first."""
    found = []
    for move in done:
        for at, old, new, _worker, _detail in events[move.uuid]:
            was, counts = old in moves.IN_FLIGHT, new in moves.IN_FLIGHT
            if was != counts:
                found.append((at, counts, move))
    return sorted(found, key=lambda change: change[:2])


def cap_violations(done, events, caps):
    """Moments at which more was under way than the caps allow."""
    under_way, wrong = {}, []
    for at, counts, move in changes(done, events):
        if counts:
            if not room.Room(caps, under_way.values()).enter(move):
                wrong.append((at, move.uuid, len(under_way)))
            under_way[move.uuid] = move
        else:
            under_way.pop(move.uuid)
    return wrong


def overtakings(done, events, caps):
    """Dispatches, at the first try, of a move that was due later than one for which there was room.

    :param done: moves of one plan, first tries only
    """
    under_way, waiting, wrong = {}, sorted(done, key=_due), []
    for _at, batch in itertools.groupby(changes(done, events), key=lambda change: change[:2]):
        batch = [(counts, move) for _when, counts, move in batch]
        if not batch[0][0]:
            for _counts, move in batch:
                under_way.pop(move.uuid)
            continue
        going = {move.uuid for _counts, move in batch}
        space = room.Room(caps, under_way.values())
        last = max(waiting.index(move) for _counts, move in batch)
        for move in waiting[:last + 1]:
            if space.enter(move) and move.uuid not in going:
                wrong.append((move.uuid, sorted(going)))
        waiting = [move for move in waiting if move.uuid not in going]
        under_way.update((move.uuid, move) for _counts, move in batch)
    return wrong


def _due(move):
    return move.not_before, move.ordinal
