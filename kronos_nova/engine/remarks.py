"""What an operator must know of an evaluation in addition to its moves: the warnings and the notes
of a report."""

import collections
import math

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.objects import plan
from kronos_nova.planners import level
from kronos_nova.planners import relieve

OTHERS = 3
"""Live migrations of others, of servers that Kronos has moved, within ``no_return_window`` that are
reported. Raised, a second balancer is reported later; lowered, an operator who moves two servers
back is taken for one."""


def below_noise(policies, noise):
    """The warnings about thresholds that cannot be kept to."""
    for policy in policies:
        if noise.get(policy.name, 0.0) > policy.threshold:
            yield (f'{policy.name}: the threshold {policy.threshold:g} is below what noise makes '
                   f'of the imbalance of these hosts, {noise[policy.name]:.3f}; nothing is moved '
                   'for differences up to that. Raise the threshold.')


def left_above(before, outlook):
    """The notes about policies above their thresholds for which nothing is moved.

    :param before: the state of the measured load
    """
    expected = State(Model(outlook.problem))
    columns = zip(before.problem.policies, before.problem.thresholds, before.imbalances(),
                  expected.imbalances(), outlook.problem.thresholds, outlook.least, strict=True)
    for name, threshold, measured, likely, target, least in columns:
        if measured <= threshold + TOLERANCE:
            continue
        if likely <= target + TOLERANCE and least > threshold:
            yield (f'{name}: no placement goes below {least:.3f}, because of one instance or of '
                   f'what cannot be moved. Up to {target:.3f} nothing is moved: the other hosts '
                   'are then as close together as the threshold asks.')
        elif likely <= target + TOLERANCE:
            yield (f'{name}: of {measured:.3f} only {likely:.3f} is likely to last, and up to '
                   f'{target:.3f} nothing is moved.')
        else:
            yield (f'{name}: no permitted plan was found that brings {likely:.3f} closer to '
                   f'{target:.3f}. That none exists is not proved.')


def more_plans(before, timely, cooldown):
    """The note about a plan that is the first of several to the targets.

    :param before: the state of the expected load before any move
    :param cooldown: seconds between two plans
    """
    steps, after = timely.chosen.steps, timely.chosen.state
    if after.is_balanced or not any(phase in plan.BY_LOAD for phase, _step in steps):
        return
    band = level.band_of(before)
    left = level.excess(after, band)
    gained = level.excess(before, band) - left
    if gained <= TOLERANCE:
        return
    plans = 1 + math.ceil(left / gained)
    lasts = max((move.begins_after or 0.0) + (move.expected_seconds or 0.0)
                for move in timely.moves)
    together = _hours(plans * lasts + (plans - 1) * cooldown)
    yield (f'This plan is the first of about {plans}, which take about {together} together, '
           'cooldown included.')


def _hours(seconds):
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    return f'{hours} h {minutes:02} min' if hours else f'{minutes} min'


def about(timely, budget, options):
    """The note about a plan that has not the time for all the moves that it might have."""
    if timely.is_short:
        yield (f'{len(timely.moves)} moves of {budget} (max_migrations_per_cycle) can begin within '
               f'{options.stale_plan_age:.0f} s (stale_plan_age); more are left to later plans, '
               'because the load that they would be chosen for would not be the load there is.')


def other_balancer(history, scope):
    """The warning about live migrations, of servers that Kronos has moved, that Kronos has not
    made: two that balance one cloud undo each other's work.

    :param history: a :class:`kronos_nova.cooldown.PlanningHistory`
    """
    names = {instance.uuid: instance.display_name for instance in scope.instances}
    own = {(each.instance_uuid, each.source, each.destination)
           for each in (*history.tries, *(move for move in history.moves if move.is_own))}
    moved = {uuid for uuid, _source, _destination in own}
    made = collections.Counter(
        (move.instance_uuid, move.source, move.destination) for move in history.moves
        if move.instance_uuid in moved and move.instance_uuid in names)
    others = collections.Counter({move: made[move] for move in made.keys() - own})
    if others.total() >= OTHERS:
        uuid, source, destination = min(others, key=lambda each: (-others[each], each))
        yield (f'{others.total()} live migrations of servers that Kronos has moved were made by '
               f'others, such as that of {names[uuid]} ({uuid}) from {source} to {destination}. '
               'Is another balancer at work? Stop one of the two, or take its servers or hosts '
               'out of scope.')


def own_heat(state, marks, policies):
    """The warnings about hot hosts that moving servers cannot relieve.

    :param marks: what hurts, by :class:`kronos_nova.planners.relieve.Marks`
    :param policies: how many of the problem's are measured now
    """
    problem, hot = state.problem, marks.hot(state)[:, :policies]
    shares = problem.weights * problem.host_scale[state.vm_host]
    for host, policy in np.argwhere(hot).tolist():
        score, target = state.scores[host, policy], marks.target[policy]
        servers = shares[state.vm_host == host, policy].sum()
        if servers < relieve.LEAST_TOGETHER * (score - target):
            yield (f'{problem.hosts[host]}: {problem.policies[policy]} is {score:.3g}, of which '
                   f'its servers use {servers:.3g}: it is load of the host, not of its servers. '
                   'Nothing is moved off it.')


def stopped(seconds):
    """The warning about a search that the deadline stopped."""
    return (f'The search was stopped by planning_time_limit ({seconds:g} s); the plan is the best '
            'found by then.')


def stranded(scope):
    """What an operator must know of servers on hosts that nothing can be migrated off."""
    on_host = collections.Counter(instance.host for instance in scope.instances)
    for host in scope.hosts:
        service = host.service
        if on_host[host.name] and (service.state != 'up' or service.forced_down):
            how = 'forced down' if service.forced_down else 'down'
            yield (f'{host.name} is {how} ({service.status}) with {on_host[host.name]} servers on '
                   'it; nothing can be migrated off it')
