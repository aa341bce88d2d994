"""From moves to steps: each is made, and tells what it does to every policy."""

from kronos_nova.planners.base import Step
from kronos_nova.simulation import State

DIGITS = range(3, 7)
"""A change of less than a millionth is nothing that anybody wants to read."""


class StepRecorder:
    """Makes moves one after the other, and keeps of each what it does."""

    def __init__(self, state: State):
        self.state = state
        self.imbalances = state.imbalances()

    def take(self, vm: int, destination: int, why: str) -> Step:
        problem, before = self.state.problem, self.imbalances
        source = self.state.move(vm, destination)
        self.imbalances = self.state.imbalances()
        changes = map(change, problem.policies, before, self.imbalances)
        effect = ', '.join(filter(None, changes))
        return Step(vm=vm, source=source, destination=destination,
                    combined_after=float(self.imbalances @ problem.policy_weights),
                    why=why, reason=f'{why}: imbalance {effect}' if effect else why)


def change(name, old, new):
    """Such as ``cpu 0.412 to 0.398``, with as many digits as it takes to see that they differ; None
    where they are the same."""
    for digits in DIGITS:
        before, after = f'{old:.{digits}f}', f'{new:.{digits}f}'
        if before != after:
            return f'{name} {before} to {after}'
    return None
