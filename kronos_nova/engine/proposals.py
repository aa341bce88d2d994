"""Whether a plan that waits for approval is still the plan to make."""

import dataclasses

import numpy as np

from kronos_nova.engine.approval import replay
from kronos_nova.model import State
from kronos_nova.objects import automation
from kronos_nova.objects import plan as plans
from kronos_nova.objects.plan import AggregateReport

MARGIN = 0.25
"""Share of a new plan's gain by which it has to end better than the plan that waits. Raised, people
decide on plans that fit less; lowered, plans are replaced because loads fluctuate. Chosen so that a
host that comes back empty exceeds it, and a fluctuation of a threshold's size does not."""

LEAST_GAIN = 0.5
"""Share of the promised gain that an approved plan has to keep in order to be started. Raised, more
approvals come to nothing; lowered, more is copied to little use."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProposalOutlook:
    """What a plan that waits would come to by now.

    combined : combined imbalance after its moves that are still permitted
    unrelieved : names of hosts that are hot after it, and not after a new plan
    """

    combined: float
    unrelieved: tuple[str, ...] = ()


def outlook(report: AggregateReport, case, start: State, capped, end: State, marks,
            weights: np.ndarray) -> ProposalOutlook:
    """What a plan comes to from ``start``.

    :param case: PlanningCase
    :param capped: the model of ``start`` with the overload ceiling
    :param end: where a new plan ends
    :param marks: above which hosts are hot
    :param weights: float64 (P,), of the policies in the combined imbalance
    """
    state = start.copy()
    replay(case, state, capped, report)
    hot = marks.hot(state).any(axis=1) & ~marks.hot(end).any(axis=1)
    return ProposalOutlook(combined=float(state.imbalances()[:len(weights)] @ weights),
                   unrelieved=tuple(case.problem.hosts[host] for host in np.flatnonzero(hot)))


def superseded_because(found: ProposalOutlook | None, level: str, new: AggregateReport) -> str:
    """Why a plan that waits gives way to the result of a new evaluation; '' where it stays.

    :param found: None where that evaluation made no plan
    :param level: the level of its aggregate
    """
    if new.outcome == plans.BALANCED:
        return 'every policy is at or below its threshold by now'
    if new.outcome == plans.NO_MOVE:
        return 'no move is permitted and of use by now'
    if new.outcome != plans.PLANNED or found is None:
        return ''
    if level == automation.AUTO:
        return 'the level is auto by now, and a new plan starts without approval'
    if found.unrelieved:
        return f'{found.unrelieved[0]} is hot by now, and the plan does not relieve it'
    if new.combined_before is None or new.combined_after is None:
        return ''
    gain = new.combined_before - new.combined_after
    if found.combined - new.combined_after > MARGIN * gain:
        return (f'it would end at a combined imbalance of {found.combined:.3f} by now, and a new '
                f'plan at {new.combined_after:.3f}')
    return ''


def not_worth_starting(report: AggregateReport, before: float, after: float) -> str:
    """Why an approved plan that only spreads load is not started; '' where it may be.

    :param before: combined imbalance by now
    :param after: combined imbalance after the moves that are still permitted
    """
    promised_before, promised_after = report.combined_before, report.combined_after
    if promised_before is None or promised_after is None or any(
            move.phase != plans.SPREAD for move in report.moves):
        return ''
    if before - after >= LEAST_GAIN * (promised_before - promised_after):
        return ''
    return (f'it was to bring the combined imbalance from {promised_before:.3f} to '
            f'{promised_after:.3f}, and by now brings it from {before:.3f} to {after:.3f} only')
