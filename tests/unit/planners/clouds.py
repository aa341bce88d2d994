"""Small random clouds as problems, for hypothesis, and their models."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.base import compile_model
from kronos_nova.model import Group
from kronos_nova.model import Prices
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.objects import snapshot as objects
from kronos_nova.planners.base import Step
from tests.unit.model.referee import Referee


class Factor:
    """A factor of a count of examples, such as ``60 * Factor('0.1')``. The product is an int of at
    least 1."""

    def __init__(self, text: str):
        self.value = float(text)

    def __rmul__(self, count: int) -> int:
        return max(1, round(count * self.value))


MANY = Factor(os.environ.get('KRONOS_EXAMPLES', '1'))
"""Factor of the number of examples."""


def judges(least: int) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Decorate a property test that counts the cases which it judges in ``self.judged``.

    A test whose assertions are in a loop passes although no example enters the loop. With the
    decorator it fails.

    :param least: cases that are judged with ``MANY`` at 1; in proportion with less
    """
    def decorate(test: Callable[[Any], None]) -> Callable[[Any], None]:
        @functools.wraps(test)
        def counting(self: Any) -> None:
            self.judged = 0
            test(self)
            self.assertGreaterEqual(self.judged, int(least * MANY.value))
        return counting
    return decorate


# Few different figures, so that ties are common.
FIGURES = st.sampled_from([0.0, 0.05, 0.1, 0.1, 0.15, 0.2, 0.25, 0.3])
UP = objects.Service(state='up', status='enabled')
DOWN = objects.Service(state='down', status='enabled')


@st.composite
def problems(draw, max_hosts=6, max_vms=14, max_policies=3, least=(2, 1, 1), most_groups=3,
             share_of_members=0.3):
    """Every kind of thing a problem can have: server groups of the four kinds, units, a provider
    that hosts share, what others hold, and instances with moves in progress.

    :param least: hosts, instances and policies
    """
    hosts, vms, policies = (draw(st.integers(*ends)) for ends in zip(
        least, (max_hosts, max_vms, max_policies), strict=True))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    weights = np.array(draw(st.lists(FIGURES, min_size=vms * policies, max_size=vms * policies)))
    weights = weights.reshape(vms, policies)
    vm_host = rng.integers(0, hosts, vms)
    scale = rng.choice([1.0, 1.0, 0.5], (hosts, 1)).repeat(policies, axis=1)
    scores = rng.choice([0.0, 0.1, 0.2], (hosts, policies))
    np.add.at(scores, vm_host, weights * scale[vm_host])
    available = rng.random(hosts) < 0.85
    share = rng.random(policies) + 0.1
    packs = draw(st.booleans())
    arriving = rng.integers(0, hosts, rng.integers(0, 2))
    return Problem(
        hosts=tuple(f'h{n}' for n in range(hosts)), vms=tuple(f'v{n:02}' for n in range(vms)),
        policies=tuple(f'p{n}' for n in range(policies)),
        policy_weights=share / share.sum(), thresholds=rng.choice([0.0, 0.1, 0.2], policies),
        scores=scores, weights=weights, host_scale=scale, capacity_scores=scores.copy(),
        capacity_thresholds=np.full(policies, 0.9 if packs else np.inf),
        vm_host=vm_host, memory_mb=rng.choice([512, 1024], vms),
        movable=(rng.random(vms) < 0.9) & available[vm_host], available=available,
        groups=tuple(_groups(rng, vms, hosts, arriving, most_groups, share_of_members)),
        arriving=arriving, **_room(rng, vm_host, hosts),
        left_out=_left_out(rng, np.count_nonzero(available), policies))


def _left_out(rng, hosts, policies):
    """Hosts at each end that do not count, in one cloud of three."""
    return rng.integers(0, 1 + hosts // 2, policies) if rng.random() < 0.35 else None


def _room(rng, vm_host, hosts):
    """VCPU on every host, and now and then DISK_GB on a provider that some hosts share."""
    classes = 1 + int(rng.random() < 0.4)
    demands = rng.integers(1, 4, (len(vm_host), classes)).astype(float)
    provider = np.repeat(np.arange(hosts)[:, None], classes, axis=1)
    shared = classes - 1
    if shared:
        provider[rng.random(hosts) < 0.5, 1] = hosts
    used = np.zeros((hosts + shared, classes))
    np.add.at(used, (provider[vm_host], np.arange(classes)), demands)
    limits = used.max() + rng.integers(0, 3, used.shape).astype(float)
    used += rng.choice([0.0, 0.0, 1.0], used.shape)  # what others hold
    if shared:
        elsewhere = provider[:, 1] == hosts
        used[:hosts, 1][elsewhere] = limits[:hosts, 1][elsewhere] = 0.0
    units = {}
    if rng.random() < 0.4:
        units = {'min_unit': np.full(used.shape, rng.integers(1, 3)),
                 'max_unit': rng.choice([2.0, 3.0, 9.0], used.shape),
                 'step_size': rng.choice([1.0, 1.0, 2.0], used.shape)}
    return {'resource_classes': ('VCPU', 'DISK_GB')[:classes], 'demands': demands, 'used': used,
            'limits': limits, 'provider': provider if shared else None, **units}


def _groups(rng, vms, hosts, arriving, most, share):
    domains = rng.integers(0, max(1, hosts // 2), hosts)
    for number in range(rng.integers(0, most + 1)):
        members = np.flatnonzero(rng.random(vms) < share)
        if len(members) > 1:
            yield Group(uuid=f'g{number}', name=f'g{number}', members=members,
                        anti=bool(rng.random() < 0.6), hard=bool(rng.random() < 0.5),
                        max_per_host=int(rng.integers(1, 3)),
                        places=domains if rng.random() < 0.3 else None,
                        most_places=int(rng.choice([1, 1, 1, 2])),
                        arriving=arriving[rng.random(len(arriving)) < 0.5])


@st.composite
def strained(draw, **sizes):
    """(problem, snapshot, rules) with everything that constraints go by: above that, aggregates
    that are kept for projects and flavors, cells, zones, a reserve, returns and refusals."""
    problem = draw(problems(most_groups=8, share_of_members=0.5, **sizes))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    problem = dataclasses.replace(problem, capacity_thresholds=np.full(
        len(problem.policies), rng.choice([0.3, 0.5, np.inf])))
    half = problem.hosts[:len(problem.hosts) // 2]
    aggregates = [_aggregate('a', half, zone='z1', filter_tenant_id='p0', ssd='true'),
                  _aggregate('b', problem.hosts[1:], ssd='false, maybe')]
    specs = rng.choice(['', '', 'true', '<or> true <or> maybe'], len(problem.vms))
    snapshot = snapshot_of(
        problem, aggregates if rng.random() < 0.5 else (),
        specs=[{'aggregate_instance_extra_specs:ssd': str(word)} if word else {}
               for word in specs] if rng.random() < 0.3 else (),
        cells=['c1', *['c2'] * (len(problem.hosts) - 1)] if rng.random() < 0.2 else ())

    def pairs():
        return [(str(rng.choice(problem.vms)), str(rng.choice(problem.hosts)))
                for _ in range(rng.integers(0, 3))]

    return problem, snapshot, ConstraintRules(
        restrict_to_az=bool(rng.random() < 0.5), reserve_hosts=int(rng.choice([0, 0, 0, 1, 2])),
        soft_group_cost=None if rng.random() < 0.5 else 0.0, vetoes=dict.fromkeys(pairs(), 'no'),
        returns=frozenset(pairs()))


def _aggregate(name, hosts, zone=None, **metadata):
    return objects.Aggregate(name=name, uuid=name, hosts=tuple(hosts), availability_zone=zone,
                             metadata=metadata)


def snapshot_of(problem, aggregates=(), specs=(), cells=()):
    """A snapshot with the problem's hosts and instances; projects p0 and p1 take turns."""
    return objects.Snapshot(
        taken_at='2026-11-20T12:00:00+00:00', aggregates=tuple(aggregates),
        hosts=tuple(objects.Host(
            name=name, uuid=name, service=UP if problem.available[n] else DOWN, inventory={},
            cell=cells[n] if cells else 'cell1') for n, name in enumerate(problem.hosts)),
        instances=tuple(objects.Instance(
            uuid=uuid, name=uuid, display_name=uuid, host=problem.hosts[problem.vm_host[n]],
            project_id=f'p{n % 2}', status='ACTIVE', vcpus=1, memory_mb=512, disk_gb=0,
            flavor_extra_specs=specs[n] if specs else {})
            for n, uuid in enumerate(problem.vms)))


def model(problem, rules=None, prices=None, snapshot=None):
    """The problem's model, compiled with every installed constraint."""
    return compile_model(problem, snapshot or snapshot_of(problem),
                         rules or ConstraintRules(), prices or Prices())


def start(problem, **compiled):
    """The state before any move."""
    return State(model(problem, **compiled))


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


def crowded(seed, hosts, free, threshold):
    """Hosts of 16 GiB with instances of 1 to 8 GiB, nearly full and unevenly loaded.

    :param free: GiB that a host has free at most
    """
    rng = np.random.default_rng(seed)
    place, gib = [], []
    for host in range(hosts):
        left = 16 - rng.integers(0, free + 1)
        while left:
            size = min(1 << int(left).bit_length() - 1, rng.choice([1, 2, 4, 8]))
            place.append(host)
            gib.append(size)
            left -= size
    demands = np.array(gib, dtype=float)[:, None]
    loads = rng.choice([.1, .3, .6, .9], hosts)[place] * rng.uniform(.5, 1, len(place))
    weights, scores, used = loads[:, None] * demands / 16, np.zeros((hosts, 1)), np.zeros(
        (hosts, 1))
    np.add.at(scores, place, weights)
    np.add.at(used, place, demands)
    return dataclasses.replace(
        idle(place, hosts=hosts), weights=weights, scores=scores, used=used, demands=demands,
        limits=np.full((hosts, 1), 16.0), memory_mb=np.array(gib) * 1024,
        thresholds=np.array([threshold]))


def step(state, vm, destination):
    """Make a move, as a planner would."""
    source = state.move(vm, destination)
    return Step(vm=vm, source=source, destination=destination, reason='',
                combined_after=state.combined())


def replayed(test, problem, steps, **limits):
    """Each step of a plan with the state after it, when the test has seen that every rule held
    and that the step says what the state shows. Each is counted in ``judged`` of the test.

    :param limits: as Referee takes them
    """
    referee, state = Referee(problem, **limits), start(problem)
    for made in steps:
        test.assertTrue(problem.movable[made.vm])
        test.assertTrue(referee.allows(state.vm_host, made.vm, made.destination))
        test.assertEqual(made.source, state.move(made.vm, made.destination))
        test.assertAlmostEqual(made.combined_after, state.combined(), places=9)
        test.judged = getattr(test, 'judged', 0) + 1
        yield made, state
