"""Moves of plans in progress that the rules of operators no longer permit.

A plan obeys the rules that were valid when the plan was made. While moves of the plan wait, an
operator may change the rules. A rule may also permit moves at certain times only, and such a time
may end.
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
    """Return {uuid of a move: a text with the operators' rule that the move violates}. In three
    cases, a rule is not checked:

    * A rule that may be broken to empty hosts is not checked for moves that empty a host.
    * A rule that permits moves only at certain times is not checked for moves that make room,
      because an operator requested these moves.
    * A rule about several servers is not checked, because earlier moves of the plan may violate or
      repair the rule. The next plan checks the rule.

    :param moves: moves that have not begun
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
