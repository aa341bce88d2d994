"""Rules of operators by which instances must not be moved now, to any destination."""

import dataclasses
import datetime
from collections.abc import Mapping
from collections.abc import Set

from kronos_nova.policies.rules import OperatorRule
from kronos_nova.policies.selection import Selections


@dataclasses.dataclass(frozen=True, slots=True)
class RuleHold:
    """A rule of an operator that keeps an instance from being moved now. ``yields`` is True if the
    rule does not apply while the host of the instance is emptied. ``why`` is the text for an
    operator."""

    yields: bool
    why: str


def rule_holds(selections: Selections, aggregate: str, uuids: Set[str], now: float,
               moved_today: Mapping[str, int]) -> dict[str, RuleHold]:
    """Return {uuid of an instance: the RuleHold of the rule that keeps the instance from being
    moved}. If several rules keep an instance, a rule that also applies while the host of the
    instance is emptied is preferred.

    :param uuids: uuids of the aggregate's instances
    :param now: Unix seconds
    :param moved_today: {uuid: number of moves in the last 24 hours}
    """
    found: dict[str, RuleHold] = {}
    for each in selections:
        hold = _hold(each.rule, aggregate, now)
        if hold is None:
            continue
        for uuid in each.servers & uuids:
            is_held = each.rule.max_moves is None or (
                moved_today.get(uuid, 0) >= each.rule.max_moves)
            if is_held and (uuid not in found or found[uuid].yields and not hold.yields):
                found[uuid] = hold
    return found


def _hold(rule: OperatorRule, aggregate: str, now: float) -> RuleHold | None:
    """Return the RuleHold by which a rule keeps its servers from being moved now; None if the rule
    permits their moves. For a rule that limits the number of moves, a RuleHold is always returned,
    and the caller checks whether the number is used up."""
    if rule.never_move:
        return RuleHold(rule.yields, f'rule {rule.name} never moves it')
    if rule.max_moves is not None:
        return RuleHold(True, f'rule {rule.name} moves it {rule.max_moves} times a day at most')
    if rule.move_only is None or rule.open_times.is_open(aggregate, now):
        return None
    opens = datetime.datetime.fromtimestamp(rule.open_times.opens_at(aggregate, now), datetime.UTC)
    return RuleHold(rule.yields, f'rule {rule.name} moves it only in its windows; the next opens '
                                 f'at {opens.isoformat()}')
