"""The model's one answer is what a brute force over every rule finds, for single moves, exchanges
and chains, after any moves."""

import collections
import itertools

import numpy as np
import testtools
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Prices
from kronos_nova.model import State
from kronos_nova.model.rules import CallbackRule
from tests.unit.model.referee import Referee
from tests.unit.planners import clouds

REASON = {'availability': 'capacity', 'cell': 'zone', 'zone': 'zone', 'project': 'isolation',
          'flavor': 'isolation', 'groups': 'group', 'units': 'capacity', 'room': 'capacity',
          'headroom': 'threshold', 'reserve': 'reserve', 'returns': 'returning',
          'vetoes': 'refused', 'overload': 'threshold'}


@st.composite
def cases(draw):
    """(state after some moves, referee, prices)"""
    problem, snapshot, rules = draw(clouds.strained(max_hosts=5, max_vms=9, max_policies=2))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    prices = Prices(vms=rng.choice([0.0, 0.1], len(problem.vms)), pairs={(0, 1): 0.05},
                    soft_group_cost=0.25)
    ceiling = 0.5 if rng.random() < 0.3 else None
    model = clouds.model(problem, rules, prices, snapshot)
    state = State(model)
    if ceiling:
        state = state.under(model.with_ceiling(state, ceiling))
    for _ in range(rng.integers(0, 4)):
        state.move(int(rng.integers(len(problem.vms))), int(rng.integers(len(problem.hosts))))
    return state, Referee(problem, snapshot, rules, ceiling), prices


def chains(state, count, length, rng):
    """Moves of different instances to hosts that are not their own: (count, length) each."""
    vms = np.array([rng.permutation(len(state.problem.vms))[:length] for _ in range(count)])
    hosts = rng.integers(0, len(state.problem.hosts) - 1, vms.shape)
    return vms, hosts + (hosts >= state.vm_host[vms])


class CasesTest(testtools.TestCase):
    def test_every_rule_is_against_something_in_many_of_them(self):
        """A rule that the cases of the other tests do not have would not be tested."""
        seen = collections.Counter()

        @settings(max_examples=150, derandomize=True, database=None, deadline=None)
        @given(cases())
        def look(case):
            state, referee, _prices = case
            problem = state.problem
            vms, hosts = np.nonzero(np.arange(len(problem.hosts)) != state.vm_host[:, None])
            seen.update({name for vm, host in zip(vms, hosts, strict=True)
                         for name in referee.against(state.vm_host, vm, host)})
            seen.update({(group.anti, group.hard) for group in problem.groups})
            seen.update(name for name, has in (
                ('several on a host', any(each.anti and each.max_per_host > 1
                                          for each in problem.groups)),
                ('soft groups cost', referee.rules.soft_group_cost == 0.0),
                ('shared', problem.provider is not None),
                ('of others', problem.used.sum() > problem.demands.sum()),
                ('in progress', any(len(each.arriving) for each in problem.groups)),
                ('by domains', any(each.places is not None for each in problem.groups)),
                ('on several places', any(not each.anti and each.most_places > 1
                                          for each in problem.groups)),
                ('left out', problem.left_out is not None and problem.left_out.any())) if has)

        look()
        self.assertEqual({}, {name: seen[name] for name in (
            *REASON, *itertools.product((True, False), repeat=2), 'several on a host',
            'soft groups cost', 'shared', 'of others', 'in progress', 'by domains',
            'on several places', 'left out') if seen[name] < 5})


class DeltaTest(testtools.TestCase):
    @clouds.judges(4)
    @settings(max_examples=120 * clouds.MANY, deadline=None)
    @given(cases())
    def test_single_moves(self, case):
        state, referee, prices = case
        vms, hosts = np.indices((len(state.problem.vms), len(state.problem.hosts)))
        delta = state.delta((vms[:, :1], hosts[:1]))
        before, price = referee.imbalances(state.vm_host), referee.price(prices, state.vm_host)
        for vm, host in zip(vms.flat, hosts.flat, strict=True):
            if host == state.vm_host[vm]:
                self.assertFalse(delta.feasible[vm, host])
                self.assertEqual(-2, delta.against[vm, host])
                continue
            wrong = referee.against(state.vm_host, vm, host)
            self.assertEqual(not wrong, delta.feasible[vm, host], wrong)
            self.judged += 1
            if wrong:
                rule = state.model.rules[delta.against[vm, host]]
                self.assertEqual(REASON[wrong[0]], rule.reason)
                self.assertTrue(rule.why(state, int(vm), int(host)).strip())
            else:
                self.assertEqual(-1, delta.against[vm, host])
            self.judge_figures(referee, prices, state, [(vm, host)], (before, price),
                               delta, (vm, host))

    def judge_figures(self, referee, prices, state, moves, start, delta, index):
        place = state.vm_host.copy()
        for vm, host in moves:
            place[vm] = host
        (before, price), after = start, referee.imbalances(place)
        share = state.problem.policy_weights
        self.assertTrue(np.allclose(after, delta.imbalances[index], atol=1e-9))
        self.assertAlmostEqual((before - after) @ share, delta.decrease[index], places=9)
        self.assertAlmostEqual(referee.price(prices, place) - price, delta.price[index], places=9)
        spoils = (after > before + 1e-9) & (after > state.problem.thresholds + 1e-9)
        self.assertEqual(not spoils.any(), delta.accepted[index])

    @clouds.judges(4)
    @settings(max_examples=80 * clouds.MANY, deadline=None)
    @given(cases(), st.integers(2, 4), st.integers(0, 1 << 30))
    def test_moves_together(self, case, length, seed):
        """Each is permitted if it is once all others are made."""
        state, referee, prices = case
        length = min(length, len(state.problem.vms))
        vms, hosts = chains(state, 12, length, np.random.default_rng(seed))
        delta = state.delta(*zip(vms.T, hosts.T, strict=True))
        start = referee.imbalances(state.vm_host), referee.price(prices, state.vm_host)
        for n, moves in enumerate(zip(vms, hosts, strict=True)):
            moves = list(zip(*(part.tolist() for part in moves), strict=True))
            self.judged += 1
            self.assertEqual(all(self.allows_last(referee, state, moves, move) for move in moves),
                             delta.feasible[n])
            self.judge_figures(referee, prices, state, moves, start, delta, n)

    def allows_last(self, referee, state, moves, last):
        place = state.vm_host.copy()
        for vm, host in moves:
            if vm != last[0]:
                place[vm] = host
        return referee.allows(place, *last)

    @settings(max_examples=60 * clouds.MANY, deadline=None)
    @given(cases(), st.integers(0, 1 << 30))
    def test_moving_back_restores_every_counter(self, case, seed):
        state, _referee, _prices = case
        rng, done = np.random.default_rng(seed), []
        vms, hosts = np.indices((len(state.problem.vms), len(state.problem.hosts)))
        before = state.delta((vms, hosts))
        kept = before.feasible, before.imbalances, before.price, before.repairs(
            np.ones(len(state.problem.groups), dtype=bool))
        for _ in range(5):
            vm = int(rng.integers(len(state.problem.vms)))
            done.append((vm, state.move(vm, int(rng.integers(len(state.problem.hosts))))))
        for vm, source in reversed(done):
            state.move(vm, source)
        after = state.delta((vms, hosts))
        self.assertTrue(np.array_equal(kept[0], after.feasible))
        self.assertTrue(np.allclose(kept[1], after.imbalances, atol=1e-9))
        self.assertTrue(np.allclose(kept[2], after.price, atol=1e-9))
        self.assertTrue(np.array_equal(kept[3], after.repairs(
            np.ones(len(state.problem.groups), dtype=bool))))

    @settings(max_examples=40 * clouds.MANY, deadline=None)
    @given(cases())
    def test_what_is_misplaced_and_what_repairs_it(self, case):
        state, referee, _prices = case
        self.assertEqual(referee.misplaced(state.vm_host), state.groups.misplaced.tolist())
        wanted = np.arange(len(state.problem.groups)) % 2 == 0
        vms, hosts = np.indices((len(state.problem.vms), len(state.problem.hosts)))
        repairs = state.delta((vms, hosts)).repairs(wanted)
        before = referee.misplaced(state.vm_host)
        for vm, host in zip(vms.flat, hosts.flat, strict=True):
            if host != state.vm_host[vm]:
                place = state.vm_host.copy()
                place[vm] = host
                self.assertEqual(repairs[vm, host], any(
                    now < then for n, (now, then) in enumerate(
                        zip(referee.misplaced(place), before, strict=True))
                    if wanted[n] and vm in state.problem.groups[n].members))


class CallbackRuleTest(testtools.TestCase):
    def test_it_is_asked_last_and_only_about_what_all_others_permit(self):
        asked = []

        def allows(state, vm, host):
            asked.append((vm, host))
            return host != 2

        problem = clouds.idle([0, 1], hosts=4)
        model = clouds.model(problem, ConstraintRules(returns=frozenset({('v0', 'h1')})))
        state = State(model.with_rules(CallbackRule(
            reason='rule', why=lambda state, vm, host: 'no', allows_one=allows)))
        delta = state.delta((0, np.arange(4)))
        self.assertEqual([False, False, False, True], delta.feasible.tolist())
        self.assertEqual([(0, 2), (0, 3)], asked)
        self.assertEqual('rule', state.model.rules[delta.against[2]].reason)
