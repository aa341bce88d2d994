"""Moves of running plans that rules of operators do not permit any more.

A plan keeps to the rules as they were when it was made. Rules change while its moves wait, and the
times end in which servers may be moved.
"""

import collections
from collections.abc import Iterable

from kronos_nova.cycle.rule_holds import rule_holds
from kronos_nova.objects import plan as plans
from kronos_nova.objects.move import MoveRecord
from kronos_nova.policies.rules import MUST
from kronos_nova.policies.rules import MUST_NOT
from kronos_nova.policies.selection import Selections


def broken_rules(selections: Selections, moves: Iterable[MoveRecord], now: float) -> dict[str, str]:
    """Map moves to the rule that each breaks, in a line for a person.

    What empties a host is not held to rules that give way. What makes room is not held to times in
    which a server may be moved: an operator has ordered it. Rules about several servers are left to
    the next plan: whether they hold depends on the moves that come first.

    :param moves: those that are not begun
    :param now: Unix seconds
    """
    moves, servers = tuple(moves), collections.defaultdict[str, set[str]](set)
    for move in moves:
        servers[move.aggregate].add(move.instance_uuid)
    holds = {name: rule_holds(selections, name, uuids, now, {})
             for name, uuids in servers.items()}
    found = {}
    never = {uuid for each in selections if each.rule.never_move for uuid in each.servers}
    static = [each for each in selections if each.rule.relation in (MUST, MUST_NOT)]
    for move in moves:
        is_emptying = move.phase == plans.EVACUATE
        is_ordered = move.phase == plans.MAKE_ROOM and move.instance_uuid not in never
        hold = holds[move.aggregate].get(move.instance_uuid)
        if hold is not None and not is_ordered and not (is_emptying and hold.yields):
            found[move.uuid] = hold.why
        names = [each.rule.name for each in static if move.instance_uuid in each.servers
                 and not each.wants(move.destination) and not (is_emptying and each.rule.yields)]
        if names:
            found[move.uuid] = f'rule {" and ".join(names)} keeps it off {move.destination}'
    return found
