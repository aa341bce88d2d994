"""What a planner is, and which are installed."""

import dataclasses
from collections.abc import Callable
from typing import Any
from typing import NamedTuple
from typing import Protocol

from kronos_nova import exception
from kronos_nova import extensions
from kronos_nova.model import State

NAMESPACE = 'kronos_nova.planners'


@dataclasses.dataclass(slots=True)
class Cut:
    """A record of whether the deadline has stopped a search."""

    happened: bool = False


class NoPlace(NamedTuple):
    """Why an instance stays where it must not; ``is_proven`` if there is no plan that moves it and
    all others, False if none was found."""

    why: str
    is_proven: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a planner may spend.

    budget : moves that may still be planned
    clock : monotonic seconds; the kernel has no clock of its own
    deadline : on that clock; a planner stops there with the best plan so far. Before it, no choice
        depends on the time
    overload_ceiling : no host may pass this score in any policy on the way, unless it already was
        above
    cut : set once a planner stops at the deadline; copies of the limits share the record
    unplaced : instance to why it finds no place, of those that had to leave their hosts; filled by
        planners, shared by copies
    """

    budget: int
    clock: Callable[[], float] = lambda: 0.0
    deadline: float = float('inf')
    overload_ceiling: float = 0.95
    cut: Cut = dataclasses.field(default_factory=Cut, compare=False)
    unplaced: dict[int, 'NoPlace'] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def is_past(self) -> bool:
        """Whether the deadline has passed."""
        return self.clock() >= self.deadline

    @property
    def is_over(self) -> bool:
        """Whether a search has to stop at the deadline. Ask only where the search would continue
        otherwise, because the answer yes is recorded as a cut."""
        if self.is_past:
            self.cut.happened = True
            return True
        return False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A planned move in indexes of the problem. ``why`` is what it is for, ``reason`` that and what
    it does; ``depends_on`` are positions of earlier steps of the same list; ``joint`` is a number
    that it shares with the steps without which it does not help, None where it helps alone."""

    vm: int
    source: int
    destination: int
    combined_after: float
    reason: str
    why: str = ''
    depends_on: tuple[int, ...] = ()
    joint: int | None = None


class Planner(Protocol):
    """Chooses moves. Stateless; the same input always gives the same plan."""

    phase: str

    def plan(self, state: State, limits: Limits) -> list[Step]:
        """Choose moves and apply them to ``state``, so that the next pass starts from where this
        one ended.

        The steps are in an order in which every rule of the model holds after every one of them.
        """


def load(name: str, **arguments: Any) -> Planner:
    """The planner called ``name``.

    :param arguments: of its class, as the entry point has it

    :raises ConfigurationError: none of that name is installed, or one that is cannot be imported
    """
    found = extensions.installed(NAMESPACE)
    if name not in found:
        raise exception.ConfigurationError(
            what=f'planner "{name}"', problem='no planner of that name is installed',
            remedy=f'Choose one of: {", ".join(sorted(found.names()))}')
    return found[name].plugin(**arguments)
