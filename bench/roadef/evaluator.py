"""The objective and the violations of an assignment, computed from the definition of the problem.

The evaluator shares no code with the search.
"""

import collections
import dataclasses

from bench.roadef.reader import Instance


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """An evaluated assignment.

    objective : sum of all costs
    costs : {kind of cost: weighted cost}
    violations : {constraint: number of violations}
    """

    objective: int
    costs: dict[str, int]
    violations: dict[str, int]

    @property
    def violated(self) -> int:
        """Number of violations of all constraints."""
        return sum(self.violations.values())


def evaluate(instance: Instance, assignment: list[int]) -> Verdict:
    """Return the objective and the violations of an assignment.

    :param assignment: machine of each process
    """
    costs = {**_usage_costs(instance, assignment), **_move_costs(instance, assignment)}
    return Verdict(sum(costs.values()), costs, {
        'capacity': _over_capacity(instance, assignment),
        'conflict': _conflicts(instance, assignment),
        'spread': _too_few_locations(instance, assignment),
        'dependency': _unmet_dependencies(instance, assignment)})


def _usage(instance, assignment):
    """Return the usage of each machine as lists, one number for each resource."""
    usage = [[0] * len(instance.transient) for _ in instance.locations]
    for process, needs in enumerate(instance.requirements.tolist()):
        on_machine = usage[assignment[process]]
        for resource, amount in enumerate(needs):
            on_machine[resource] += amount
    return usage


def _usage_costs(instance, assignment):
    load = balance = 0
    for used, total, safe in zip(_usage(instance, assignment), instance.capacities.tolist(),
                                 instance.safety.tolist(), strict=True):
        for resource, weight in enumerate(instance.load_weights.tolist()):
            load += weight * max(0, used[resource] - safe[resource])
        free = [most - now for most, now in zip(total, used, strict=True)]
        for each in instance.balances:
            balance += each.weight * max(0, each.target * free[each.first] - free[each.second])
    return {'load': load, 'balance': balance}


def _moved(instance, assignment):
    """Return (process, original machine, machine) of each moved process."""
    return [(process, before, after) for process, (before, after) in enumerate(
        zip(instance.assignment.tolist(), assignment, strict=True)) if before != after]


def _move_costs(instance, assignment):
    moved = _moved(instance, assignment)
    services = collections.Counter(int(instance.services[process]) for process, *_ends in moved)
    of_process, of_service, of_machine = instance.weights
    return {
        'process moves': of_process * sum(int(instance.process_costs[process])
                                          for process, *_ends in moved),
        'service moves': of_service * max(services.values(), default=0),
        'machine moves': of_machine * sum(int(instance.machine_costs[before, after])
                                          for _process, before, after in moved)}


def _over_capacity(instance, assignment):
    """Return the number of pairs of a machine and a resource that is used above its capacity."""
    usage = _usage(instance, assignment)
    for process, before, _after in _moved(instance, assignment):
        for resource, amount in enumerate(instance.requirements[process].tolist()):
            if instance.transient[resource]:
                usage[before][resource] += amount
    return sum(now > most for used, total in zip(usage, instance.capacities.tolist(), strict=True)
               for now, most in zip(used, total, strict=True))


def _conflicts(instance, assignment):
    """Return the number of processes that share a machine with an earlier process of their
    service."""
    return len(assignment) - len(set(zip(instance.services.tolist(), assignment, strict=True)))


def _too_few_locations(instance, assignment):
    """Return the number of services with fewer locations than they need."""
    locations = collections.defaultdict(set)
    for service, machine in zip(instance.services.tolist(), assignment, strict=True):
        locations[service].add(int(instance.locations[machine]))
    return sum(len(locations[service]) < least
               for service, least in enumerate(instance.spread.tolist()))


def _unmet_dependencies(instance, assignment):
    """Return the number of services that a process needs in its neighborhood and does not find
    there, summed over all processes."""
    neighborhoods = instance.neighborhoods[assignment].tolist()
    services = instance.services.tolist()
    present = set(zip(services, neighborhoods, strict=True))
    return sum((needed, there) not in present
               for service, there in zip(services, neighborhoods, strict=True)
               for needed in instance.dependencies[service])
