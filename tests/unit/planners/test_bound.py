"""Imbalances that no plan can go below."""

import itertools

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings

from kronos_nova.planners.bound import least_imbalances
from tests.unit.planners import clouds


def has_room(problem, vms, place):
    """Return whether each host to which an instance has gone has room for all of its own."""
    rows = np.arange(len(problem.hosts))[:, None] if problem.provider is None else problem.provider
    rows, used, reached = np.broadcast_to(
        rows, (len(problem.hosts), problem.limits.shape[1])), problem.used.copy(), set()
    for vm, host in zip(vms.tolist(), place.tolist(), strict=True):
        old = int(problem.vm_host[vm])
        for number, amount in enumerate(problem.demands[vm]):
            used[rows[old, number], number] -= amount
            used[rows[host, number], number] += amount
        reached |= {host} - {old}
    return all((used[rows[host], range(used.shape[1])]
                <= problem.limits[rows[host], range(used.shape[1])] + 1e-9).all()
               for host in reached)


class LeastImbalancesTest(testtools.TestCase):
    @clouds.judges(4)
    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(clouds.problems(max_hosts=3, max_vms=5))
    def test_no_placement_is_below_it(self, problem):
        bound, state = least_imbalances(problem), clouds.start(problem)
        vms, hosts = np.flatnonzero(problem.movable), np.flatnonzero(problem.available)
        for place in itertools.product(hosts, repeat=len(vms)):
            after = state.after(zip(vms.tolist(), map(int, place), strict=True))
            if not has_room(problem, vms, np.array(place, dtype=np.intp)):
                continue
            self.judged += 1
            self.assertTrue((after.imbalances() >= bound - 1e-9).all())

    def test_one_large_instance_keeps_its_host_above_the_others(self):
        problem = clouds.idle([0, 1, 2], hosts=3)
        scores = np.array([[.8], [.2], [.1]])
        problem = clouds.dataclasses.replace(problem, weights=scores.copy(), scores=scores)
        self.assertAlmostEqual(.8 - .15, least_imbalances(problem)[0])

    def test_a_host_without_room_stays_below_the_others(self):
        """The third host is empty, and a buffer keeps all of it."""
        problem = clouds.idle([0, 0, 1, 1], hosts=3)
        problem = clouds.dataclasses.replace(
            problem, weights=np.full((4, 1), .2), scores=np.array([[.5], [.3], [.0]]),
            demands=np.ones((4, 1)), used=np.array([[2.], [2.], [8.]]), limits=np.full((3, 1), 8.))
        self.assertAlmostEqual(.4, least_imbalances(problem)[0])
        free = clouds.dataclasses.replace(problem, used=np.array([[2.], [2.], [0.]]))
        self.assertAlmostEqual(0, least_imbalances(free)[0])
