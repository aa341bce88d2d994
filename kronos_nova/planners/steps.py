"""From moves to steps: each is made, and tells what it does to every policy."""

from kronos_nova.planners.base import Step
from kronos_nova.simulation import State


class StepRecorder:
    """Makes moves one after the other, and keeps of each what it does."""

    def __init__(self, state: State):
        self.state = state
        self.imbalances = state.imbalances()

    def take(self, vm: int, destination: int, why: str) -> Step:
        problem, before = self.state.problem, self.imbalances
        source = self.state.move(vm, destination)
        self.imbalances = self.state.imbalances()
        effect = ', '.join(f'{name} {old:.3f} to {new:.3f}' for name, old, new in
                           zip(problem.policies, before, self.imbalances, strict=True))
        return Step(vm=vm, source=source, destination=destination,
                    combined_after=float(self.imbalances @ problem.policy_weights),
                    why=why, reason=f'{why}: imbalance {effect}')
