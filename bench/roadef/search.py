"""The machine reassignment problem as a purpose of the kernel's own search.

A process is an instance of the search, and a machine is a host. Load and balance costs depend on
one machine each. They are weighted sums of amounts above a limit. Each amount is a linear function
of the usage of the machine: the usage of one resource, or a difference of two resources. The scores
of the search are these amounts, times their weight and without the limit. The excess of a machine
is the sum of its positive scores.
"""

import concurrent.futures
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.roadef.annealing import Annealing
from bench.roadef.reader import Instance
from kronos_nova.model.arrays import Index
from kronos_nova.planners.base import Limits
from kronos_nova.planners.ruin_recreate import Moves
from kronos_nova.planners.ruin_recreate import Start


class MoveCosts:
    """The costs of moving processes to machines, without the cost of services."""

    def __init__(self, instance: Instance):
        of_process, _of_service, of_machine = instance.weights
        self._home: Any = instance.assignment
        self._processes = (of_process * instance.process_costs).astype(float)
        self._machines = (of_machine * instance.machine_costs).astype(float)
        self._count = len(self._machines)

    def price_of(self, vm: Index, host: Index) -> np.ndarray | np.floating:
        home = self._home[vm]
        return (self._machines.take(home * self._count + host)
                + self._processes[vm] * (home != host))

    def add(self, total: np.ndarray, vms: np.ndarray, hosts: Index) -> None:
        total += self.price_of(vms, hosts)


class Services:
    """The rules about services, as tables from which a forbidden move is known at once.

    Tables have a row for each service, and a column for each machine, location or neighborhood.

    closed : number of reasons why no process of the service may go to the machine: each process of
        the service there, and each service that the service needs and that the neighborhood lacks
    at, in_hood : number of processes of the service in the location or in the neighborhood
    locations : number of locations of each service
    needed : number of services in the neighborhood that need the service
    away : number of moved processes of each service
    """

    def __init__(self, instance: Instance):
        self._service, self._home = instance.services, instance.assignment
        self._location, self._hood = (np.unique(places, return_inverse=True)[1] for places in (
            instance.locations, instance.neighborhoods))
        self._machines_of = [np.flatnonzero(self._hood == hood)
                             for hood in range(self._hood.max() + 1)]
        self._least = instance.spread
        self._needs, self._needed_by = _both_ways(instance.dependencies)
        count, place = len(instance.spread), instance.assignment
        self.at = _counts(self._service, self._location[place], count, self._location.max() + 1)
        self.in_hood = _counts(self._service, self._hood[place], count, len(self._machines_of))
        self.locations = (self.at > 0).sum(axis=1)
        missing, self.needed = np.zeros_like(self.in_hood), np.zeros_like(self.in_hood)
        for service, needs in enumerate(self._needs):
            missing[service] = (self.in_hood[needs] == 0).sum(axis=0)
            self.needed[needs] += self.in_hood[service] > 0
        self.closed = missing[:, self._hood] + _counts(
            self._service, place, count, len(self._location))
        self.away = np.zeros(count, dtype=np.intp)
        # Other services may leave any machine.
        self._is_bound = (self._least > 1) | np.array([len(each) > 0 for each in self._needed_by])

    def allow(self, place: np.ndarray, vms: np.ndarray, hosts: Index) -> np.ndarray:
        """Return bool (n,), one value for each of n moves: true if the rules allow the move.

        :param place: machine of each process
        """
        services: Any = self._service.take(vms)
        allowed: Any = self.closed.take(services * self.closed.shape[1] + hosts) == 0
        some = np.flatnonzero(allowed & self._is_bound.take(services))
        allowed[some] = self.may_leave(
            services[some], place[vms[some]],
            hosts[some] if isinstance(hosts, np.ndarray) else hosts)
        return allowed

    def allows(self, vm: int, source: int, host: int) -> bool:
        """Return True if the rules allow a move."""
        service = self._service[vm]
        return bool(self.closed[service, host] == 0 and (
            not self._is_bound[service] or self.may_leave(service, source, host)))

    def may_leave(self, services: Index, sources: Index, hosts: Index) -> np.ndarray | np.bool_:
        """Return bool: true if a process of a service may leave its machine for another one. The
        service keeps enough locations, and the services that need the service still have it."""
        before, after = self._location[sources], self._location[hosts]
        left = (self.locations[services] - (self.at[services, before] == 1)
                + (self.at[services, after] == 0))
        may_leave = (before == after) | (left >= self._least[services])
        before, after = self._hood[sources], self._hood[hosts]
        return may_leave & ((before == after) | (self.in_hood[services, before] != 1)
                            | (self.needed[services, before] == 0))

    def note(self, vm: int, source: int, host: int) -> None:
        """Update the tables after a move."""
        service, home = self._service[vm], self._home[vm]
        self.closed[service, source] -= 1
        self.closed[service, host] += 1
        self.away[service] += int(source == home) - int(host == home)
        self._change_location(service, self._location[source], self._location[host])
        before, after = self._hood[source], self._hood[host]
        if before != after:
            self._change_hood(service, before, -1)
            self._change_hood(service, after, 1)

    def _change_location(self, service, before, after):
        self.at[service, before] -= 1
        self.locations[service] -= self.at[service, before] == 0
        self.locations[service] += self.at[service, after] == 0
        self.at[service, after] += 1

    def _change_hood(self, service, hood, number):
        """Add a process of a service to a neighborhood (1), or remove one (-1)."""
        had = self.in_hood[service, hood] > 0
        self.in_hood[service, hood] += number
        if had != (self.in_hood[service, hood] > 0):
            for other in self._needed_by[service]:
                self.closed[other, self._machines_of[hood]] -= number
            self.needed[self._needs[service], hood] += number


def _counts(rows: np.ndarray, columns: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return a table with the number of times that each pair of a row and a column occurs."""
    return np.bincount(rows * width + columns, minlength=height * width).reshape(height, width)


def _both_ways(dependencies):
    """Return (the services that each service needs, the services that need each service), as
    arrays. A service always has itself."""
    needs = [sorted({*others} - {service}) for service, others in enumerate(dependencies)]
    needed_by = [[] for _ in needs]
    for service, others in enumerate(needs):
        for other in others:
            needed_by[other].append(service)
    return tuple([np.array(each, dtype=np.intp) for each in side] for side in (needs, needed_by))


class Reassignment:
    """The purpose of a search for an assignment of processes to machines with a low objective."""

    def __init__(self, instance: Instance):
        self.prices = MoveCosts(instance)
        self.services = Services(instance)
        self._service_weight = instance.weights[1]

    def excess(self, scores: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        if isinstance(scores, np.ndarray):
            # A product with ones adds rows up faster than sum().
            return np.ones(len(scores)) @ np.maximum(scores, 0.0)
        total = np.maximum(scores[0], 0.0)
        for each in scores[1:]:
            total += np.maximum(each, 0.0)
        return total

    def excess_of(self, scores: Sequence[float]) -> float:
        return sum(score for score in scores if score > 0.0)

    def may_receive(self, scores: np.ndarray) -> bool:
        return True

    def is_caused_by(self, loads: np.ndarray, excess: float) -> bool:
        return True

    def ratings(self, search: Annealing, change: np.ndarray,
                moves: Sequence[tuple[np.ndarray, Index]]) -> np.ndarray:
        return -change

    def allows(self, search: Annealing, moves: Moves) -> bool:
        """Return True if all rules allow the moves one after the other."""
        done = []
        for vm, host in moves:
            source = int(search.place[vm])
            if not self.services.allows(vm, source, host):
                break
            done.append((vm, source, host))
            self.services.note(vm, source, host)
        for vm, source, host in reversed(done):
            self.services.note(vm, host, source)
        return len(done) == len(moves)

    def may_allow(self, search: Annealing, vms: np.ndarray, hosts: Index) -> np.ndarray:
        return self.services.allow(search.place, vms, hosts)

    def note(self, vm: int, source: int, host: int) -> None:
        self.services.note(vm, source, host)

    def total(self, search: Annealing) -> float:
        return float(search.excess.sum() + search.price.sum()
                     + self._service_weight * self.services.away.max())

    def deviation(self, search: Annealing) -> float:
        return 0.0


def begin(instance: Instance, seed: int) -> Annealing:
    """Return a search that begins with the original assignment."""
    # Transposed arrays, because a search by annealing reads whole columns.
    weights = _amounts(instance, instance.requirements, instance.requirements)
    home, machines = instance.assignment, len(instance.locations)
    used, scores = np.zeros(instance.capacities.shape), -_amounts(
        instance, instance.safety, instance.capacities)
    np.add.at(used, home, instance.requirements)
    np.add.at(scores, home, weights)
    purpose: Any = Reassignment(instance)    # whose searches are all of the class Annealing
    return Annealing(purpose, Start(
        home=home, weights=weights.T, scale=np.ones((machines, weights.shape[1])).T,
        scores=scores.T, sizes=instance.requirements.astype(float).T,
        free=(instance.capacities - used).T, held=instance.transient,
        price=np.zeros(len(home))), seed)


def _amounts(instance, loads, capacities):
    """Return float64 (n, P): the weighted amounts of load costs, then of balance costs.

    :param loads: (n, R), amount of each resource in load costs
    :param capacities: (n, R), amount of each resource in balance costs
    """
    balances = [each.weight * (capacities[:, each.second] - each.target * capacities[:, each.first])
                for each in instance.balances]
    return np.column_stack([instance.load_weights * loads, *balances]).astype(float)


RATE = 4e7
"""Pairs of a process and a machine that a search is expected to rate in a second, with the overhead
of each step. Raised, a search on a fast machine takes all of its time; lowered, a search ends
earlier. Measured: 2,700 to 4,000 draws a second on an instance with 1,000 processes."""
HOTTEST, COLDEST = 0.1, 5e-4
"""First and last temperature, as multiples of the mean load of a process. Raised, a search spends
more time on assignments at random; lowered, large processes stay where they are. Chosen with an
earlier form of the search, by one search each: with 0.03 at first, one instance ended at .10
instead of .04."""

RUNS = 1, 5
"""Numbers of searches that the first and the second of two jobs make, one after the other, in the
time of one. Raised, more results are compared, each of a shorter search; lowered, a search is
longer. Chosen because a longer search is better on most instances, but on one instance the scores
of equal searches lie between .05 and .11."""
SEEDS = 1000
"""Difference between the seeds of the random numbers of two searches of a job. Fixed: more than the
number of jobs, so that no two searches have the same random numbers."""


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """The best assignment of some searches.

    assignment : machine of each process
    objective : as the search adds it up
    rated : pairs of a process and a machine that all searches rated
    seconds : of wall time
    cpu_seconds : of all searches
    """

    assignment: list[int]
    objective: float
    rated: float
    seconds: float
    cpu_seconds: float


def best(instance: Instance, seconds: float, jobs: int) -> Found:
    """Search with ``jobs`` processes at the same time, and return the best result. Each process has
    other random numbers, and every second one makes several shorter searches (:data:`RUNS`)."""
    start = time.monotonic()
    if jobs == 1:
        found = [solve(instance, seconds, 0)]
    else:
        with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
            found = list(pool.map(solve, [instance] * jobs, [seconds] * jobs, range(jobs)))
    return dataclasses.replace(
        min(found, key=lambda each: each.objective), seconds=time.monotonic() - start,
        rated=sum(each.rated for each in found),
        cpu_seconds=sum(each.cpu_seconds for each in found))


def solve(instance: Instance, seconds: float, job: int) -> Found:
    """Search an assignment, once or several times, and return the best result. The result depends
    on the time only if the search rates fewer than :data:`RATE` pairs in a second.

    :param job: number of the job, which determines the random numbers and the number of searches
    """
    start, cpu, rated, found = time.monotonic(), time.process_time(), 0.0, []
    runs = RUNS[job % len(RUNS)]
    for run in range(runs):
        limits = Limits(budget=len(instance.services), clock=time.monotonic,
                        deadline=start + seconds * (run + 1) / runs)
        search = begin(instance, job + SEEDS * run)
        improve(search, RATE * seconds / runs, limits)
        rated += search.rated
        found.append((search.purpose.total(search), search.place.tolist()))
    objective, place = min(found)
    return Found(place, objective, rated, time.monotonic() - start, time.process_time() - cpu)


def improve(search: Annealing, effort: float, limits: Limits) -> None:
    """Lower the objective of an assignment.

    :param effort: number of pairs of a process and a machine that are rated
    """
    search.build(len(search.excess), limits)
    search.anneal(effort, (HOTTEST * search.load, COLDEST * search.load), limits)
