"""Limits on the number of moves: on moves of one instance, on moves of a project's instances, and
on moves because of one instance's load."""

import collections
import dataclasses
import sys
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

import numpy as np

from kronos_nova.cooldown import PlanningHistory
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.objects.plan import RELIEVE
from kronos_nova.objects.plan import SPREAD
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Instance
from kronos_nova.planners.base import Quotas
from kronos_nova.policies.selection import Selections

MOST_NAMED = 3
"""Maximum number of projects that a report names as beneficiaries of a move. Raised, reports are
longer; lowered, an operator learns of fewer projects. Chosen so that the names fit into one
line."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveLimits:
    """Maximum numbers of moves, 0 for no limit. A day is the last 24 hours, a week the last seven
    days.

    per_project : moves of a project's instances in a plan
    per_project_and_day : moves of a project's instances in a day
    per_instance_and_week : moves of one instance in a week
    per_instance_and_day : moves of one instance in a day
    per_cause_and_day : moves in a day that the load of one instance causes. These are moves of
        other instances off the host of this instance
    """

    per_project: int = 0
    per_project_and_day: int = 0
    per_cause_and_day: int = 0
    per_instance_and_week: int = 0
    per_instance_and_day: int = 0

    @property
    def look_back(self) -> bool:
        """Return True if the moves of the last day have to be counted by project or by cause. This
        is necessary for two limits: on the moves of a project's instances in a day, and on the
        moves in a day that the load of one instance causes."""
        return bool(self.per_project_and_day or self.per_cause_and_day)


def used_up(options: MoveLimits, instances: Iterable[Instance],
            history: PlanningHistory) -> set[str]:
    """Return the uuids of the instances that were moved as often as they may be, and of the
    instances whose projects' instances were moved as often as they may be in a day."""
    spans = ((options.per_instance_and_week, history.instances_moved),
             (options.per_instance_and_day, history.instances_moved_today))
    found = {uuid for cap, before in spans for uuid, moved in before.items() if 0 < cap <= moved}
    projects = {name for name, moved in history.projects_moved.items()
                if 0 < options.per_project_and_day <= moved}
    return found | {each.uuid for each in instances if (each.project_id or '') in projects}


def counted(history: PlanningHistory, moves: Iterable[PlannedMove]) -> PlanningHistory:
    """Return the history with further moves, for the limits of projects and causes in a day."""
    moves = [move for move in moves if move.phase != EVACUATE]
    if not moves:
        return history
    projects, caused = (collections.Counter(before) for before in (
        history.projects_moved, history.caused))
    projects.update(move.project_id for move in moves if move.project_id)
    caused.update(move.caused_by for move in moves if move.caused_by)
    return dataclasses.replace(history, projects_moved=projects, caused=caused)


def with_other_plans(history: PlanningHistory, aggregate: str, reports: Iterable[AggregateReport],
                     automatic: Collection[tuple[str, str]]) -> PlanningHistory:
    """Return the history with the moves that this evaluation has planned for other aggregates. Only
    plans that start without approval count.

    :param automatic: (aggregate, purpose) of the plans that start without approval
    """
    return counted(history, [move for each in reports if each.name != aggregate
                             and (each.name, each.purpose) in automatic for move in each.moves])


def beyond(options: MoveLimits, moved: Iterable[Instance], history: PlanningHistory) -> set[str]:
    """Return the uuids of the instances whose moves exceed a limit of their project.

    :param moved: the instances that a plan moves, in the order of the plan
    """
    in_plan: collections.Counter[str] = collections.Counter()
    found = set()
    for each in moved:
        project = each.project_id or ''
        in_plan[project] += 1
        if (_is_over(options.per_project, {}, in_plan, project)
                or _is_over(options.per_project_and_day, history.projects_moved, in_plan, project)):
            found.add(each.uuid)
    return found


class RemainingMoveLimits:
    """The numbers of moves that the limits still permit, while one aggregate is planned.

    Moves off a disabled host are not limited. A move that relieves a host counts as caused by the
    instance with the largest load on the host. A move of that instance itself counts as caused by
    no instance. Once a limit of a project or an instance is reached, no further moves are planned
    that count towards this limit.
    """

    def __init__(self, options: MoveLimits, problem: Problem, instances: Iterable[Instance],
                 history: PlanningHistory, selections: Selections):
        self._options, self._problem = options, problem
        self._by_rule = _limits_of_rules(selections)
        self._moved_today = history.instances_moved_today
        projects = {instance.uuid: instance.project_id or '' for instance in instances}
        self._project = {uuid: projects[uuid] for uuid in problem.vms}
        self._load = _loads(problem)
        self._heaviest = _heaviest(problem, self._load)
        self._moved, self._caused = history.projects_moved, history.caused
        self._of_instances = (
            (options.per_instance_and_week, history.instances_moved, 'a week'),
            (options.per_instance_and_day, history.instances_moved_today, 'a day'))
        self._closed_instances = {uuid: span for cap, before, span in self._of_instances
                                  for uuid, moved in before.items() if 0 < cap <= moved}
        self._closed_projects = {name for name, moved in self._moved.items()
                                 if 0 < options.per_project_and_day <= moved}
        self._closed_causes = {uuid for uuid, moved in self._caused.items()
                               if 0 < options.per_cause_and_day <= moved}

    def add_owners(self, moves: Iterable[PlannedMove]) -> tuple[PlannedMove, ...]:
        """Return the moves with three additional facts: the project of the moved instance, the
        instance whose load caused the move, and the projects that benefit."""
        return tuple(dataclasses.replace(
            move, project_id=self._project[move.instance_uuid], caused_by=self._cause(move),
            benefits=self._benefits(move)) for move in moves)

    def _benefits(self, move: PlannedMove) -> tuple[str, ...]:
        """Return the projects that benefit from a move, at most :data:`MOST_NAMED`. These are the
        projects with most load on the relieved host, not counting the moved server."""
        if move.phase not in (SPREAD, RELIEVE):
            return ()
        there = np.flatnonzero(self._problem.vm_host == self._problem.hosts.index(move.source))
        loads: dict[str, float] = collections.defaultdict(float)
        for vm in there:
            if self._problem.vms[vm] != move.instance_uuid:
                loads[self._project[self._problem.vms[vm]]] += self._load[vm]
        return tuple(name for name, _load in sorted(
            loads.items(), key=lambda each: (-each[1], each[0]))[:MOST_NAMED])

    def passed(self, moves: Iterable[PlannedMove]) -> frozenset[int]:
        """Return the numbers (``order``) of the moves that exceed a limit. The exceeded limits are
        recorded as used up for further planning."""
        in_plan: collections.Counter[str] = collections.Counter()
        caused: collections.Counter[str] = collections.Counter()
        moved: collections.Counter[str] = collections.Counter()
        passed = set()
        for move in moves:
            if move.phase == EVACUATE:
                continue
            project, cause = self._project[move.instance_uuid], self._cause(move)
            in_plan[project] += 1
            moved[move.instance_uuid] += 1
            caused[cause] += 1
            if self._is_too_much(project, in_plan):
                self._closed_projects.add(project)
                passed.add(move.order)
            elif span := self._span_over(moved, move.instance_uuid):
                self._closed_instances[move.instance_uuid] = span
                passed.add(move.order)
            elif cause and _is_over(self._options.per_cause_and_day, self._caused, caused, cause):
                self._closed_causes.add(cause)
                passed.add(move.order)
            if move.order in passed:    # a move that is not made counts towards no limit
                in_plan[project] -= 1
                moved[move.instance_uuid] -= 1
                caused[cause] -= 1
        return frozenset(passed)

    def quotas(self) -> Quotas | None:
        """Return the numbers of moves that the limits of projects permit in one plan; None if no
        such limit is set."""
        options = self._options
        if not (options.per_project or options.per_project_and_day):
            return None
        names = sorted(set(self._project.values()))
        most = np.array([min(
            options.per_project or sys.maxsize,
            max(options.per_project_and_day - self._moved.get(name, 0), 0)
            if options.per_project_and_day else sys.maxsize) for name in names], dtype=np.intp)
        number = {name: n for n, name in enumerate(names)}
        return Quotas(np.array([number[self._project[uuid]] for uuid in self._problem.vms],
                               dtype=np.intp), most)

    def compile(self) -> tuple[AllowedHosts, ...]:
        """Return the constraint that forbids moves of instances whose limit is used up; an empty
        tuple if no limit is used up. The constraint does not apply to moves that empty hosts."""
        problem = self._problem
        by_project = np.array([self._project[uuid] in self._closed_projects
                               for uuid in problem.vms], dtype=bool)
        closed_hosts = np.array([uuid in self._closed_causes for uuid in self._heaviest],
                                dtype=bool)
        by_cause = closed_hosts[problem.vm_host] & (
            np.array(self._heaviest, dtype=object)[problem.vm_host] != np.array(problem.vms))
        by_itself = np.array([uuid in self._closed_instances for uuid in problem.vms], dtype=bool)
        kind = np.where(by_itself, 3, np.where(by_project, 1, np.where(by_cause, 2, 0)))
        if not kind.any():
            return ()

        def why(state: State, vm: int, host: int) -> str:
            if kind[vm] == 3:
                return ('it is moved as often as it may be in '
                        f'{self._closed_instances[problem.vms[vm]]}')
            if kind[vm] == 1:
                return (f'as many instances of project {self._project[problem.vms[vm]]} are moved '
                        'as may be')
            return (f'the load of {self._heaviest[problem.vm_host[vm]]} has caused as many moves '
                    'as it may in a day')

        allowed = np.zeros((4, len(problem.hosts)), dtype=bool)
        allowed[0] = True
        return (AllowedHosts(reason='cap', why=why, kind=kind, allowed=allowed, yields=True),)

    def _is_too_much(self, project: str, in_plan: collections.Counter[str]) -> bool:
        options = self._options
        return (_is_over(options.per_project, {}, in_plan, project)
                or _is_over(options.per_project_and_day, self._moved, in_plan, project))

    def _span_over(self, moved: collections.Counter[str], uuid: str) -> str | None:
        """Return the span of time, such as "a week", in which an instance would be moved too often;
        None if no limit is exceeded."""
        for cap, rule in self._by_rule.get(uuid, ()):
            if _is_over(cap, self._moved_today, moved, uuid):
                return f'a day by rule {rule}'
        return next((span for cap, before, span in self._of_instances
                     if _is_over(cap, before, moved, uuid)), None)

    def _cause(self, move: PlannedMove) -> str:
        if move.phase not in (SPREAD, RELIEVE):
            return ''
        heaviest = self._heaviest[self._problem.hosts.index(move.source)]
        return '' if heaviest == move.instance_uuid else heaviest


def _limits_of_rules(selections: Selections) -> dict[str, list[tuple[int, str]]]:
    """Return {instance uuid: [(moves a day that a rule of an operator permits, name of the
    rule)]}."""
    found = collections.defaultdict(list)
    for each in selections:
        if each.rule.max_moves is not None:
            limit = each.rule.max_moves, each.rule.name
            for uuid in each.servers:
                found[uuid].append(limit)
    return found


def _is_over(cap: int, before: Mapping[str, int], now: Mapping[str, int], name: str) -> bool:
    return 0 < cap < before.get(name, 0) + now[name]


def _loads(problem: Problem) -> np.ndarray:
    """Return float64 (V,): the load that each instance causes on its host, as the weighted sum over
    policies."""
    return (problem.weights * problem.host_scale[problem.vm_host]) @ problem.policy_weights


def _heaviest(problem: Problem, load: np.ndarray) -> tuple[str, ...]:
    """Return the instance with the largest load on each host; '' if the host has no instance."""
    found = [''] * len(problem.hosts)
    for vm in np.argsort(load, kind='stable'):
        found[problem.vm_host[vm]] = problem.vms[vm]
    return tuple(found)
