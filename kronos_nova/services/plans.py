"""Operations on plans: list, show, approve and reject plans."""

from typing import TypeVar

from kronos_client.contract import plans as contract
from kronos_client.contract import reasons
from kronos_nova import exception
from kronos_nova.cycle import levels
from kronos_nova.db import pagination
from kronos_nova.db import switches as db_switches
from kronos_nova.objects import plan as plans
from kronos_nova.operations import approving
from kronos_nova.operations import switching
from kronos_nova.services import pages
from kronos_nova.services.context import Context

AnyPlan = TypeVar('AnyPlan', bound=contract.Plan)


def list_plans(context: Context, request: contract.ListPlans) -> contract.Plans:
    """Return a page of plans.

    :raises PlanNotFound: the marker is not the uuid of a plan
    :raises NotInScope: the aggregate has no plan, and Kronos does not plan for it
    """
    found = pagination.plans(context.database, request.limit + 1, request.marker,
                             aggregate=request.aggregate, state=request.state,
                             since=request.since, until=request.until)
    if request.aggregate and not found:
        switching.refuse_unknown(context.conf, request.aggregate)
    page, following = pages.first_page(found, request, lambda each: each.uuid)
    switches = db_switches.SwitchBoard(context.database).read()
    return contract.Plans(plans=[view(contract.Plan, approving.with_pause(each, switches))
                                 for each in page], next=following)


def show(context: Context, request: contract.OnePlan) -> contract.PlanDetail:
    """Return a plan with its report, if the report is still stored.

    :raises PlanNotFound: there is no such plan
    """
    found = approving.with_pause(context.journal().plan(request.plan),
                                 db_switches.SwitchBoard(context.database).read())
    report = found.report and plans.AggregateReport.from_json(found.report)
    return view(contract.PlanDetail, found, report=_report(context, report) if report else None)


def approve(context: Context, request: contract.ApprovePlan) -> contract.Approved:
    """Approve all or some of the moves of a plan.

    :raises PlanNotFound: there is no such plan
    :raises PlanNotWaiting: the plan was already approved or rejected, or is too old
    :raises RequestRefused: the plan has no move with one of the numbers; or both lists of numbers
        are given; or every move would be skipped; or the automation level of the aggregate does not
        permit approved plans
    :raises PlanPending: the plan is of the level "observe", and its aggregate has an open plan
    """
    journal = context.journal()
    plan = journal.plan(request.plan)
    switches = db_switches.SwitchBoard(context.database).read()
    refused = switches.refusal(plan.aggregate, levels.defaults(context.conf), plan.purpose,
                               is_approved=True)
    if plan.state in plans.APPROVABLE and refused:
        raise exception.RequestRefused(
            what=f'Plan {plan.uuid}', problem=f'cannot be approved: {refused}, which permits no '
                                              'plan',
            remedy='"automation set approve" or "automation set auto" permits plans.')
    return approving.approve(journal, plan, context.who, context.utcnow(), skip=request.skip,
                             only=request.only, hold=switches.hold(plan.aggregate))


def reject(context: Context, request: contract.OnePlan) -> None:
    """Reject a plan that has not started.

    :raises PlanNotFound: there is no such plan
    :raises PlanNotWaiting: the plan has started or ended
    """
    context.journal().reject_plan(request.plan, context.who, context.utcnow())


def view(cls: type[AnyPlan], found: plans.PlanRecord, **more: object) -> AnyPlan:
    return cls.made_from(found, waits_for=found.detail, reason=found.ended_because, **more)


def _report(context: Context, report: plans.AggregateReport) -> contract.PlanReport:
    names = context.names_of(plans.servers_of(report.moves))
    return contract.PlanReport(
        policies=[contract.PlannedPolicy.made_from(each) for each in report.policies],
        moves=[planned(each, names) for each in report.moves],
        not_moved=[stayed(each.reason, each.count or 0) for each in report.not_moved],
        refusals=[contract.Refusal.made_from(each, hosts=list(each.hosts))
                  for each in report.refusals],
        warnings=list(report.warnings), notes=list(report.notes))


def stayed(reason: str, count: int) -> contract.Stayed:
    return contract.Stayed(reason=reason, count=count, means=reasons.WHY_SERVERS_STAY[reason])


def planned(move: plans.PlannedMove, names: dict[str, str]) -> contract.PlannedMove:
    """Return a planned move as a struct of the contract.

    :param names: names of servers, by uuid
    """
    return contract.PlannedMove.made_from(
        move, instance_name=names.get(move.instance_uuid), depends_on=list(move.depends_on),
        benefits=list(move.benefits), next_best=next_best(move, names))


def next_best(move: plans.PlannedMove, names: dict[str, str]) -> contract.NextBest | None:
    other = move.next_best
    return None if other is None else contract.NextBest.made_from(
        other, instance_name=names.get(other.instance_uuid))


FUNCTIONS = {contract.LIST.name: list_plans, contract.SHOW.name: show,
             contract.APPROVE.name: approve, contract.REJECT.name: reject}
