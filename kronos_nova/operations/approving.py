"""Approval of a plan, or of some of its moves."""

import dataclasses
import datetime
from collections.abc import Sequence

from kronos_client.contract.plans import Approved
from kronos_nova import exception
from kronos_nova.db.journal import Journal
from kronos_nova.objects import automation
from kronos_nova.objects import plan as plans


def with_pause(plan: plans.PlanRecord, switches: automation.Switches) -> plans.PlanRecord:
    """Return a plan. If the plan is approved and its aggregate is paused, the plan waits for the
    end of the pause: ``detail`` of the result has the pause."""
    hold = switches.hold(plan.aggregate) if plan.state == plans.APPROVED else None
    return dataclasses.replace(plan, detail=hold) if hold else plan


def approve(journal: Journal, plan: plans.PlanRecord, who: str, now: datetime.datetime,
            skip: Sequence[int] = (), only: Sequence[int] = (),
            hold: str | None = None) -> Approved:
    """Approve all moves of a plan, all moves except some, or only some moves.

    :param plan: the plan, read with its report
    :param skip: numbers (``order``) of moves to leave out. Moves that depend on a skipped move,
        moves of its group, and moves that only make room for skipped moves are left out as well
    :param only: numbers of moves to make. Moves on which a chosen move depends and moves of its
        group are made as well
    :param hold: reason why no move of the aggregate may start at present; None if moves may start
    :raises PlanNotFound: there is no such plan
    :raises PlanNotWaiting: the plan was already approved or rejected, or is too old
    :raises RequestRefused: the plan has no move with one of the numbers; or both lists are given;
        or every move would be skipped
    :raises PlanPending: the plan is of the level "observe", and its aggregate has an open plan
    """
    if skip and only:
        raise exception.RequestRefused(
            what='The selection of moves',
            problem='has both "skip" and "only"',
            remedy='Give either the moves to skip, or the only moves to make.')
    # Only a finished plan has no report, and it is refused below.
    moves = plans.AggregateReport.from_json(plan.report).moves if plan.report else ()
    chosen: list[plans.PlannedMove] = []
    if plan.state in plans.APPROVABLE:
        chosen = _only(moves, only) if only else _without(moves, skip)
        if skip and not chosen:
            raise exception.RequestRefused(
                what=f'Plan {plan.uuid}', problem='would have no move left',
                remedy='To make none of its moves, use "plan reject".')
    journal.approve_plan(plan.uuid, chosen, who, now)
    return Approved.made_from(plan, chosen=len(chosen), moves=len(moves), waits_for=hold)


def _without(moves: Sequence[plans.PlannedMove], skipped: Sequence[int]) -> list[plans.PlannedMove]:
    """Return the moves of a plan without the skipped moves. If a move is skipped, the moves that
    depend on it and the moves of its group are skipped as well. A move that only makes room is
    skipped if all moves that need the room are skipped.

    :param skipped: numbers of moves
    :raises RequestRefused: the plan has no move with one of the numbers
    """
    _refuse_unknown('skip', skipped, moves)
    left_out, groups = set(skipped), _groups(moves)
    while True:
        more = left_out.union(*(groups[move.order] for move in moves if move.order in left_out
                                or left_out.intersection(move.depends_on)
                                or _serves_nothing(move, moves, left_out)))
        if more == left_out:
            return [move for move in moves if move.order not in left_out]
        left_out = more


def _serves_nothing(move: plans.PlannedMove, moves: Sequence[plans.PlannedMove],
                    left_out: set[int]) -> bool:
    return move.only_makes_room and all(
        other.order in left_out for other in moves if move.order in other.depends_on)


def _only(moves: Sequence[plans.PlannedMove], wanted: Sequence[int]) -> list[plans.PlannedMove]:
    """Return the moves ``wanted``. If a move is returned, the moves on which it depends and the
    moves of its group are returned as well.

    :param wanted: numbers of moves
    :raises RequestRefused: the plan has no move with one of the numbers
    """
    _refuse_unknown('only', wanted, moves)
    kept, by_order, groups = set(), {move.order: move for move in moves}, _groups(moves)
    left = list(wanted)
    while left:
        order = left.pop()
        if order not in kept:
            kept.add(order)
            left.extend((*by_order[order].depends_on, *groups[order]))
    return [move for move in moves if move.order in kept]


def _groups(moves: Sequence[plans.PlannedMove]) -> dict[int, set[int]]:
    """Return {number of a move: set of the numbers of all moves in its group}. For a move without a
    group, the set has only the number of this move."""
    return {move.order: {other.order for other in moves if other is move
                         or move.group is not None and other.group == move.group}
            for move in moves}


def _refuse_unknown(word: str, numbers: Sequence[int], moves: Sequence[plans.PlannedMove]) -> None:
    unknown = sorted(set(numbers) - {move.order for move in moves})
    if unknown:
        raise exception.RequestRefused(
            what=f'Move {unknown[0]} in "{word}"', problem='is not a move of this plan',
            remedy='"plan show" lists the moves of the plan with their numbers.')
