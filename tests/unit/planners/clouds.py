"""Small random clouds as problems, for hypothesis."""

import numpy as np
from hypothesis import strategies as st

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.base import Constraints
from kronos_nova.constraints.capacity import Capacity
from kronos_nova.constraints.group import GroupRule
from kronos_nova.constraints.headroom import Headroom
from kronos_nova.planners.base import Step
from kronos_nova.simulation import Group
from kronos_nova.simulation import Problem

# Few different figures, so that ties are common.
FIGURES = st.sampled_from([0.0, 0.05, 0.1, 0.1, 0.15, 0.2, 0.25, 0.3])


@st.composite
def problems(draw, max_hosts=6, max_vms=14, max_policies=3):
    hosts = draw(st.integers(2, max_hosts))
    vms = draw(st.integers(1, max_vms))
    policies = draw(st.integers(1, max_policies))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    weights = np.array(draw(st.lists(FIGURES, min_size=vms * policies, max_size=vms * policies)))
    weights = weights.reshape(vms, policies)
    vm_host = rng.integers(0, hosts, vms)
    scale = rng.choice([1.0, 1.0, 0.5], (hosts, 1)).repeat(policies, axis=1)
    scores = rng.choice([0.0, 0.1, 0.2], (hosts, policies))
    np.add.at(scores, vm_host, weights * scale[vm_host])
    available = rng.random(hosts) < 0.85
    share = rng.random(policies) + 0.1
    demands = rng.integers(1, 4, (vms, 1)).astype(float)
    used = np.zeros((hosts, 1))
    np.add.at(used, vm_host, demands)
    packs = draw(st.booleans())
    return Problem(
        hosts=tuple(f'h{n}' for n in range(hosts)), vms=tuple(f'v{n:02}' for n in range(vms)),
        policies=tuple(f'p{n}' for n in range(policies)), resource_classes=('VCPU',),
        policy_weights=share / share.sum(), thresholds=rng.choice([0.0, 0.1, 0.2], policies),
        scores=scores, weights=weights, host_scale=scale, capacity_scores=scores.copy(),
        capacity_thresholds=np.full(policies, 0.9 if packs else np.inf),
        vm_host=vm_host, memory_mb=rng.choice([512, 1024], vms),
        movable=(rng.random(vms) < 0.9) & available[vm_host], available=available,
        used=used, limits=used.max() + rng.integers(0, 3, (hosts, 1)).astype(float),
        demands=demands, groups=tuple(_groups(rng, vms)))


def _groups(rng, vms):
    for number in range(rng.integers(0, 3)):
        members = np.flatnonzero(rng.random(vms) < 0.3)
        if len(members) > 1:
            yield Group(uuid=f'g{number}', name=f'g{number}', members=members,
                        anti=bool(rng.random() < 0.6), hard=bool(rng.random() < 0.5),
                        max_per_host=int(rng.integers(1, 3)))


def constraints(problem):
    """The constraints that need nothing but the problem."""
    rules = ConstraintRules()
    return Constraints(tuple(made for made in (
        constraint(problem, None, rules) for constraint in (Capacity, GroupRule, Headroom))
        if not made.idle) + (_Available(problem),))


class _Available:
    reason = 'capacity'
    idle = False

    def __init__(self, problem):
        self.available = problem.available

    def mask(self, state, vm):
        return self.available

    def column(self, state, host):
        return np.full(len(state.problem.vms), self.available[host])

    def permits(self, state, vm, host):
        return bool(self.available[host])


def idle(vm_host, hosts=None, groups=()):
    """Instances of one vCPU on hosts with room and without load, in server groups."""
    hosts, vms = hosts or max(vm_host) + 2, len(vm_host)
    return Problem(
        hosts=tuple(f'h{n}' for n in range(hosts)), vms=tuple(f'v{n}' for n in range(vms)),
        policies=('p',), resource_classes=('VCPU',), policy_weights=np.ones(1),
        thresholds=np.full(1, 0.1), scores=np.zeros((hosts, 1)), weights=np.zeros((vms, 1)),
        host_scale=np.ones((hosts, 1)), capacity_scores=np.full((hosts, 1), np.nan),
        capacity_thresholds=np.full(1, np.inf), vm_host=np.array(vm_host),
        memory_mb=np.full(vms, 512), movable=np.ones(vms, dtype=bool),
        available=np.ones(hosts, dtype=bool), used=np.zeros((hosts, 1)),
        limits=np.full((hosts, 1), 100.0), demands=np.ones((vms, 1)), groups=tuple(groups))


def step(state, vm, destination):
    """Make a move, as a planner would."""
    source = state.move(vm, destination)
    return Step(vm=vm, source=source, destination=destination, reason='',
                combined_after=state.combined())
