"""Instances that an operator's rules do not let move now, whatever the destination."""

import dataclasses
import datetime
from collections.abc import Mapping
from collections.abc import Set

from kronos_nova.policies.rules import OperatorRule
from kronos_nova.policies.selection import Selections


@dataclasses.dataclass(frozen=True, slots=True)
class RuleHold:
    """A rule by which an instance is not moved. ``yields`` if a host is emptied of it all the same;
    ``why`` is a line for a person."""

    yields: bool
    why: str


def rule_holds(selections: Selections, aggregate: str, uuids: Set[str], now: float,
               moved_today: Mapping[str, int]) -> dict[str, RuleHold]:
    """Map instances to the rule that holds each, those that hold when hosts are emptied first.

    :param uuids: of the instances of the aggregate
    :param now: Unix seconds
    :param moved_today: uuid to the moves of the last 24 hours
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
    """Return the hold that a rule places on its servers now; None for none."""
    if rule.never_move:
        return RuleHold(rule.yields, f'rule {rule.name} never moves it')
    if rule.max_moves is not None:
        return RuleHold(True, f'rule {rule.name} moves it {rule.max_moves} times a day at most')
    if rule.move_only is None or rule.open_times.is_open(aggregate, now):
        return None
    opens = datetime.datetime.fromtimestamp(rule.open_times.opens_at(aggregate, now), datetime.UTC)
    return RuleHold(rule.yields, f'rule {rule.name} moves it only in its windows; the next opens '
                                 f'at {opens.isoformat()}')
