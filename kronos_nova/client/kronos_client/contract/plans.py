"""Operations on plans: the moves that one evaluation planned for an aggregate, and their effect."""

from typing import Annotated
from typing import Literal
from typing import get_args

import msgspec

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Name
from kronos_client.contract.base import Page
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import OPERATOR
from kronos_client.contract.operation import Operation

Order = Annotated[int, msgspec.Meta(ge=1, le=2 ** 31 - 1)]
Orders = Annotated[list[Order], msgspec.Meta(max_length=10000)]


State = Literal['observed', 'proposed', 'approved', 'executing', 'done', 'rejected', 'stopped',
                'expired', 'superseded', 'void']
STATES: tuple[State, ...] = get_args(State)
"""States of plans."""


class Plan(Response):
    """A plan of moves in an aggregate. The combined imbalance is the sum of the imbalances in all
    policies, each multiplied by the weight of its policy. ``combined_before`` is the combined
    imbalance before the plan, and ``combined_after`` after the plan. ``combined_now`` is the
    combined imbalance after the plan, computed with newer loads; null if unknown. Each evaluation
    computes ``combined_now`` again while the plan waits for approval. ``waits_for`` is the reason
    why an approved plan is not started yet. ``reason`` is the reason why the plan ended, or a text
    about moves that were left out."""

    uuid: str
    aggregate: str
    purpose: str
    state: str
    mode: str
    planner: str
    created_at: Time
    expires_at: Time
    approved_at: Maybe
    approved_by: str | None
    finished_at: Maybe
    combined_before: float | None
    combined_after: float | None
    combined_now: float | None
    move_count: int
    times_seen: int
    last_seen_at: Maybe
    waits_for: str | None
    reason: str | None


class Plans(Response):
    """A page of plans. ``next`` is the marker of the next page; null on the last page."""

    plans: list[Plan]
    next: str | None


class PlannedPolicy(Response):
    """The imbalance in a policy before and after the plan. An imbalance is null if it is
    unknown."""

    name: str
    state: str
    weight: float
    threshold: float
    detail: str
    imbalance_before: float | None
    imbalance_after: float | None


class NextBest(Response):
    """The best alternative to a planned move: another server, another destination, or both."""

    instance_uuid: str
    instance_name: str | None
    destination: str
    memory_mb: int
    combined_after: float


class PlannedMove(Response):
    """A move as it was planned. ``depends_on`` are the ``order`` numbers of the moves that have to
    complete before this move starts. ``group`` is the number of a group of moves that help only
    together; null for a move that helps alone.

    ``combined_after`` is the combined imbalance after the move; null if the move was planned
    without loads. ``begins_after`` is the predicted time from the start of the plan to the start of
    the move. ``expected_seconds`` is the predicted duration of the move, and ``expected_downtime``
    the predicted time for which the guest is stopped. These three times are in seconds, and null if
    there is no prediction. ``project_id`` is the project of the server. ``benefits`` are the
    projects that benefit from the move, because they have servers that stay on the source.
    ``caused_by`` is the uuid of the server with the largest load on the source. It is empty if this
    move moves that server, or if the move does not relieve the source.
    """

    order: int
    phase: str
    instance_uuid: str
    instance_name: str | None
    source: str
    destination: str
    memory_mb: int
    combined_after: float | None
    reason: str
    depends_on: list[int]
    group: int | None
    project_id: str
    caused_by: str
    benefits: list[str]
    next_best: NextBest | None
    begins_after: float | None
    expected_seconds: float | None
    expected_downtime: float | None


class Stayed(Response):
    """The number of servers that were not moved for one reason. ``reason`` is a word; ``means``
    explains the word."""

    reason: str
    count: int
    means: str


class Refusal(Response):
    """The hosts that Nova refused as destinations of a server, and Nova's reason."""

    instance_uuid: str
    hosts: list[str]
    reason: str


class PlanReport(Response):
    """The figures and moves of a plan. The report is kept for a shorter time than the record of the
    plan."""

    policies: list[PlannedPolicy]
    moves: list[PlannedMove]
    not_moved: list[Stayed]
    refusals: list[Refusal]
    warnings: list[str]
    notes: list[str] = []


class PlanDetail(Plan):
    """A plan with its report; the report is null if it is no longer kept."""

    report: PlanReport | None


class ListPlans(Page):
    """A request to list plans that meet all conditions. ``since`` and ``until`` select the plans
    that were made between these times."""

    aggregate: Name | None = None
    state: State | None = None
    since: Maybe = None
    until: Maybe = None


class OnePlan(Request):
    """A request about one plan. ``plan`` is its uuid."""

    plan: str


class ApprovePlan(OnePlan):
    """A request to approve a plan, with all of its moves or with a part of them. ``skip`` are the
    ``order`` numbers of moves to leave out. Moves that depend on a skipped move, and moves of the
    same group, are left out as well. ``only`` are the ``order`` numbers of moves to make. Moves on
    which a chosen move depends, and moves of the same group, are made as well."""

    skip: Orders = []
    only: Orders = []


class Approved(Response):
    """The result of an approval. ``moves`` is the number of moves of the plan, and ``chosen`` the
    number of moves that were approved. ``combined_before`` and ``combined_after`` are the combined
    imbalance before and after the plan, by the load when the plan was made. ``combined_now`` is the
    combined imbalance after all moves of the plan, by the load of the last evaluation; null if
    unknown. ``waits_for`` is the reason why the plan cannot start now; null if none is known."""

    chosen: int
    moves: int
    combined_before: float | None
    combined_after: float | None
    combined_now: float | None
    waits_for: str | None


LIST = Operation(
    name='plans:list', command='plan list', method='GET', path='/v1/plans', request=ListPlans,
    response=Plans, refusals=(404,), summary='Plans, the newest first.')
SHOW = Operation(
    name='plans:show', command='plan show', method='GET', path='/v1/plans/{plan}',
    request=OnePlan, response=PlanDetail, refusals=(404,),
    summary='A plan with its moves, their reasons, and the reasons for which servers stayed.')
APPROVE = Operation(
    name='plans:approve', command='plan approve', method='POST', path='/v1/plans/{plan}/approve',
    request=ApprovePlan, response=Approved, audience=OPERATOR, refusals=(404, 409),
    summary='Approve a proposed plan, with all of its moves or without some.')
REJECT: Operation[None] = Operation(
    name='plans:reject', command='plan reject', method='POST', path='/v1/plans/{plan}/reject',
    request=OnePlan, audience=OPERATOR, status=204, refusals=(404, 409),
    summary='Reject a plan that has not started.')

OPERATIONS = (LIST, SHOW, APPROVE, REJECT)
