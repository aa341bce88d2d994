"""Hosts that are hot by load of their own, where a policy leaves out the hosts at both ends."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.model import State
from kronos_nova.planners import hot_hosts
from tests.unit.planners import clouds


class HotByItselfTest(testtools.TestCase):
    """The policy leaves out the lowest and the highest of five hosts. The load of the last two is
    their own; each host has one server with a load of 0.04."""

    def state(self, *scores: float, left_out: int = 1) -> State:
        hosts = len(scores)
        return clouds.start(dataclasses.replace(
            clouds.idle(list(range(hosts)), hosts=hosts), scores=np.array(scores)[:, None],
            weights=np.full((hosts, 1), 0.04), left_out=np.array([left_out])))

    def is_even(self, state: State) -> bool:
        return hot_hosts.is_even_but_for(
            state, hot_hosts.own_heat(state, hot_hosts.uneven_excess(state)))

    def test_the_excess_is_that_above_the_lowest_host_that_counts(self):
        state = self.state(0.0, 0.4, 0.45, 0.9, 0.95)
        self.assertEqual([0.0, 0.0, 0.0, 0.4, 0.45],
                         np.round(hot_hosts.uneven_excess(state)[:, 0], 9).tolist())

    def test_servers_stay_only_where_they_cause_too_little_of_it(self):
        state = self.state(0.0, 0.5, 0.55, 0.8, 1.1)
        self.assertEqual([False, False, False, False, True],
                         hot_hosts.instances_to_keep(state).tolist())

    def test_the_lowest_host_does_not_make_the_others_uneven(self):
        self.assertTrue(self.is_even(self.state(0.0, 0.4, 0.45, 0.9, 0.95)))

    def test_the_lowest_host_does_if_all_hosts_count(self):
        self.assertFalse(self.is_even(self.state(0.0, 0.4, 0.45, 0.9, 0.95, left_out=0)))

    def test_a_host_that_is_hot_by_itself_is_one_of_those_left_out(self):
        self.assertFalse(self.is_even(self.state(0.3, 0.3, 0.6, 0.9, 0.95, left_out=1)))
