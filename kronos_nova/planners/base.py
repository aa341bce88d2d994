"""The protocol of planners, the input and output types of planners, and the function that loads
installed planners."""

import dataclasses
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import Protocol

import numpy as np

from kronos_nova import exception
from kronos_nova import extensions
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.program import STAYS
from kronos_nova.model.program import Program
from kronos_nova.model.program import Solution
from kronos_nova.model.program import cheapest_cover
from kronos_nova.objects.plan import PACK
from kronos_nova.objects.plan import SPREAD

NAMESPACE = 'kronos_nova.planners'


@dataclasses.dataclass(slots=True)
class Cut:
    """A record that shows whether the deadline has stopped a search.

    happened : true once the deadline has stopped a search
    """

    happened: bool = False


class NoPlace(NamedTuple):
    """The reason why an instance stays on a host that the instance has to leave.

    why : the reason, as text
    is_proven : true if it is proven that no plan moves all instances that have to leave; false if
        such a plan may exist, but was not found
    sources : the draining hosts, as indexes of the problem, if the proof is for the instances of
        all these hosts together; empty if the proof is for the host of the instance alone
    word : the reason, as a word of :data:`~kronos_nova.objects.plan.SKIP_REASONS`
    """

    why: str
    is_proven: bool
    sources: tuple[int, ...] = ()
    word: str = 'capacity'


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Quotas:
    """Limits of the numbers of moves of several sets of instances, such as the instances of a
    project. Moves off draining hosts are not counted.

    of : intp (V,), the set to which each instance belongs
    most : intp (n,), maximum number of moves of each of n sets in one plan
    """

    of: np.ndarray
    most: np.ndarray

    def left(self, state: State) -> np.ndarray:
        """Return intp (n,): the number of further moves of each set that are permitted."""
        home = state.problem.vm_host
        moved = np.flatnonzero((state.vm_host != home) & ~state.problem.draining[home])
        return self.most - np.bincount(self.of[moved], minlength=len(self.most))

    def permit(self, state: State, vms: Sequence[int] | np.ndarray) -> bool:
        """Return True if ``vms`` may be moved, once for each time that an instance is in the list;
        False otherwise."""
        moves = np.bincount(self.of[np.asarray(vms, dtype=np.intp)], minlength=len(self.most))
        return bool((moves <= np.maximum(self.left(state), 0)).all())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a planner, and the two records ``cut`` and ``unplaced``, which the planner fills. A
    copy with another budget or deadline shares these records with the original.

    budget : number of moves that may still be planned
    clock : function that returns monotonic seconds; planners read no other clock
    deadline : time of ``clock``, in seconds, at which a planner stops and returns its best plan so
        far. Until then, the choices of a planner do not depend on the time
    overload_ceiling : score that no host may exceed in any policy after a move, unless the host
        exceeded this score before the plan
    quotas : maximum numbers of moves of sets of instances; None for no such limits. Only planners
        that empty hosts by packing read the quotas
    cut : record that shows whether the deadline has stopped a search
    unplaced : {instance that stays although it has to leave its host: NoPlace}
    """

    budget: int
    clock: Callable[[], float] = lambda: 0.0
    deadline: float = float('inf')
    overload_ceiling: float = 0.95
    quotas: Quotas | None = dataclasses.field(default=None, compare=False)
    cut: Cut = dataclasses.field(default_factory=Cut, compare=False)
    unplaced: dict[int, 'NoPlace'] = dataclasses.field(default_factory=dict, compare=False)

    def permit(self, state: State, vms: Sequence[int] | np.ndarray) -> bool:
        """Return True if the quotas permit moves of ``vms``, or if there are no quotas."""
        return self.quotas is None or self.quotas.permit(state, vms)

    @property
    def is_past(self) -> bool:
        """True if the deadline has passed."""
        return self.clock() >= self.deadline

    @property
    def is_over(self) -> bool:
        """True if the deadline has passed. If so, reading this property also records in ``cut``
        that the deadline has stopped a search. A search therefore reads this property only where it
        would otherwise continue. Code that only wants to know the time reads ``is_past``."""
        if self.is_past:
            self.cut.happened = True
            return True
        return False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """Limits of the integer programs of one planner. The limits count work and not time, so that a
    plan does not depend on the speed of the machine. A *stage* is a group of moves, and a move of a
    later stage can use room that an earlier stage freed.

    pairs : largest numbers of pairs of an instance and a host in a program; equal instances count
        once where a planner says so. A planner with several numbers solves the program with each
        number in this order, until it finds what it looks for. ``spread`` uses its two numbers as
        its limits say. Raised, more hosts are considered, or larger clusters get the best plan, and
        plans take longer; lowered, better plans are missed more often
    stages : numbers of stages of moves in a program. A planner with several numbers solves the
        program with each number in this order, until the moves can be made one after the other.
        With more numbers, more plans are found where hosts are nearly full, and a search without a
        result takes longer
    nodes : maximum number of branch-and-bound nodes of a program, divided by its number of stages.
        Raised, plans take longer; lowered, the best possible plan is missed more often
    gap : relative gap, as a share of the cost, at which a program stops. The solution then costs at
        most this share more than the cheapest solution. Raised, plans take less time; lowered, they
        are slightly better
    move_mb : fixed cost of a move, in MiB, in addition to the memory that the move copies. Raised,
        plans have fewer moves, of larger instances; lowered, plans have more moves, of smaller
        instances
    ends : maximum number of end states that are tried. If the moves to one end state have no
        possible order, the next end state is searched. Raised, more plans are found where hosts are
        nearly full, and a search without a result takes longer
    """

    pairs: tuple[int, ...]
    stages: tuple[int, ...] = (1,)
    nodes: int
    gap: float
    move_mb: float = 0.0
    ends: int = 1

    @property
    def most_pairs(self) -> int:
        """The largest number of pairs of an instance and a host in a program."""
        return self.pairs[-1]

    def solve(self, program: Program, limits: Limits, is_short: bool = False) -> Solution | None:
        """Return the best solution that is found within the limits; None if none is found.

        :param limits: the limits of the planner, whose deadline ends the search as well
        :param is_short: True if some instances have to stay for want of room. Their cost is nearly
            the whole cost, and the gap must not be a share of their cost. The gap is then a share
            of the cost that remains if the cost of such an instance is only 1
        """
        gap = self.gap / (STAYS if is_short else 1.0)
        return program.solve(limits.deadline - limits.clock(), gap, self.nodes // program.rounds)

    def cover(self, costs: np.ndarray, amounts: np.ndarray, least: np.ndarray,
              limits: Limits) -> np.ndarray | None:
        """Return the cheapest choice of items that is found within the limits, as
        :func:`~kronos_nova.model.program.cheapest_cover` does; None if none is found."""
        return cheapest_cover(costs, amounts, least, limits.deadline - limits.clock(), self.nodes)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A planned move. Instances and hosts are given as indexes of the problem.

    combined_after : combined imbalance after the move
    reason : purpose of the move, followed by the effect of the move on imbalances and loads
    why : purpose of the move
    depends_on : positions, in the list of steps, of the earlier steps that must end before this
        step starts
    joint : number of the group to which the step belongs. The steps of a group are useful only if
        all of them are made. None for a step that is useful alone
    """

    vm: int
    source: int
    destination: int
    combined_after: float
    reason: str
    why: str = ''
    depends_on: tuple[int, ...] = ()
    joint: int | None = None


class Planner(Protocol):
    """The protocol of a planner, a component that chooses moves. A planner keeps no data between
    calls: the same input always gives the same plan."""

    phase: str

    def plan(self, state: State, limits: Limits) -> list[Step]:
        """Choose moves, make the moves on ``state``, and return them as steps. The next planner
        continues from the changed ``state``.

        Every rule of the model holds after each step, if the steps are made in the returned order.
        """


def load(name: str, phases: Collection[str], **arguments: Any) -> Planner:
    """Return a new planner of the given name.

    :param name: name of the entry point of the planner
    :param phases: phases of which the planner must have one
    :param arguments: keyword arguments for the constructor of the planner

    :raises ConfigurationError: no planner of this name and phase is installed, or the code of a
        planner cannot be imported
    """
    found = extensions.installed(NAMESPACE)
    if name not in found or found[name].plugin.phase not in phases:
        fitting = sorted(each.name for each in found if each.plugin.phase in phases)
        raise exception.ConfigurationError(
            what=f'planner "{name}"',
            problem=f'no planner of that name is installed for the phase {" or ".join(phases)}',
            remedy=f'Choose one of: {", ".join(fitting)}')
    return found[name].plugin(**arguments)


def check(spread: str, pack: str) -> None:
    """Check the names of the planners for the modes ``spread`` and ``pack``.

    :raises ConfigurationError: as :func:`load`
    """
    load(spread, (SPREAD,))
    load(pack, (PACK,))


Choice = tuple[int, int, str]
"""A chosen move: (instance, destination, text about the purpose of the move)."""
DIGITS = range(3, 7)
"""Numbers of decimal digits with which the reason of a move may state a load or imbalance. The
smallest number of digits that shows the change is used. With the largest number raised, reasons
state changes that do not matter; lowered, reasons omit small changes. Chosen because a change of
less than a millionth of a host is of no use to a reader."""
ENDS = 50
"""Number of hosts that a search considers at each end: the most loaded and the least loaded hosts,
or those that are most likely and least likely to become full. Moves are searched only from and to
these hosts. More hosts are considered if a plan may have many moves. Raised, plans for large
clusters take longer; lowered, the search runs out of hosts to improve, and constraints more often
exclude all destinations of an instance. Not measured."""
AHEAD = 200
"""Number of moves that some searches plan in addition to the moves that the plan may have. The plan
then has only the first of the moves. A search plans ahead so that the first moves do not take the
room that later moves need. Raised, plans for many hosts take longer; lowered, the moves that are
left to later plans are worse. Not measured."""
FIRST_BATCH = 32
"""Number of candidate moves that are checked first, where the first candidate that meets all
conditions is chosen. Searches that replace some moves by others check no further candidates.
Raised, each check takes longer; lowered, more checks are made, and these searches miss allowed
moves more often. Chosen because one of 32 moves is nearly always possible; not measured."""


def batches(count: int) -> Iterator[slice]:
    """Yield slices that divide ``count`` candidates into batches. The first batch has
    :data:`FIRST_BATCH` candidates. Each further batch is four times as large as the one before.
    """
    begin, size = 0, FIRST_BATCH
    while begin < count:
        yield slice(begin, begin + size)
        begin, size = begin + size, 4 * size


class StepRecorder:
    """A recorder that makes moves on a state one after the other, and describes the effect of each
    move."""

    def __init__(self, state: State):
        self.state = state
        self.imbalances = state.imbalances()

    def record(self, vm: int, destination: int, why: str) -> Step:
        """Make a move on the state, and return the move as a step. The reason of the step describes
        the effect of the move.

        :param why: purpose of the move
        """
        problem, before = self.state.problem, self.imbalances
        ends = [int(self.state.vm_host[vm]), destination]
        loads = self.state.scores[ends].copy()
        source = self.state.move(vm, destination)
        self.imbalances = self.state.imbalances()
        effects = [_effect(problem, 'imbalance', before, self.imbalances)]
        for host, old in zip(ends, loads, strict=True):
            effects.append(_effect(
                problem, f'load of {problem.hosts[host]}', old, self.state.scores[host]))
        return Step(vm=vm, source=source, destination=destination,
                    combined_after=float(self.imbalances @ problem.policy_weights), why=why,
                    reason=': '.join(filter(None, (why, '; '.join(filter(None, effects))))))


def choices(state: State, limits: Limits,
            choose: Callable[[], Choice | None]) -> list[Choice]:
    """Make the moves that ``choose`` returns on ``state``, one after the other, and return these
    moves. Stop when ``choose`` returns None, the budget is used up, or the deadline has passed."""
    moves: list[Choice] = []
    while len(moves) < limits.budget and not limits.is_over:
        chosen = choose()
        if chosen is None:
            break
        state.move(*chosen[:2])
        moves.append(chosen)
    return moves


def recorded(state: State, moves: Iterable[Choice]) -> list[Step]:
    """Make the moves on ``state``, and return the moves as steps."""
    recorder = StepRecorder(state)
    return [recorder.record(*move) for move in moves]


def one_by_one(state: State, limits: Limits,
               choose: Callable[[], Choice | None]) -> list[Step]:
    """Make moves as :func:`choices` does, and return these moves as steps."""
    begin = state.copy()
    return recorded(begin, choices(state, limits, choose))


def _effect(problem: Problem, what: str, old: np.ndarray, new: np.ndarray) -> str:
    """Return a text about the change of a value in each policy; '' if the value changes in no
    policy.

    :param what: name of the value, such as "imbalance"
    :param old, new: float64 (P,), the value in each policy before and after a move
    """
    changes = ', '.join(filter(None, map(change, problem.policies, old, new)))
    return f'{what} {changes}' if changes else ''


def change(name: str, old: float, new: float) -> str | None:
    """Return a text such as ``cpu 0.412 to 0.398``, with enough decimal digits to show the
    difference. Return None if the numbers are equal even with the most digits of :data:`DIGITS`."""
    for digits in DIGITS:
        # Adding 0 gives 0 a positive sign: rounding errors may have made it negative.
        before, after = (f'{round(float(value), digits) + 0.0:.{digits}f}' for value in (old, new))
        if before != after:
            return f'{name} {before} to {after}'
    return None
