"""Prices in a search space are those that the model has, whichever rows are worked out."""

import collections

import numpy as np
import testtools
from hypothesis import assume
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from kronos_nova.model import Prices
from kronos_nova.model import State
from kronos_nova.model.prices import Preferences
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.model.rules import ForbiddenPairs
from kronos_nova.model.space import NEVER
from kronos_nova.model.space import SearchSpace
from tests.unit.planners import clouds


@st.composite
def spaces(draw):
    """A search space in which some instances have a price, or may not go to some hosts."""
    problem = draw(clouds.problems(max_hosts=5, max_vms=9, most_groups=1))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    vms, hosts = len(problem.vms), len(problem.hosts)
    prices = Prices(
        vms=rng.choice([0.0, 0.1], vms) if rng.random() < 0.3 else None,
        pairs={(0, 1): 0.05} if rng.random() < 0.2 else {},
        soft_group_cost=0.25 if rng.random() < 0.2 else None,
        preferences=Preferences(kind=rng.integers(0, 2, vms), names=lambda vm, host=None: 'rule r',
                                cost=np.array([np.zeros(hosts), rng.choice([0.0, 0.5], hosts)])))
    kind, few = rng.integers(0, 2, vms), rng.random(hosts) < 0.7
    more = (AllowedHosts(reason='rule', why=lambda state, vm, host: '', kind=kind,
                         allowed=np.array([np.ones(hosts, dtype=bool), few])),
            ForbiddenPairs(problem, [(problem.vms[0], problem.hosts[-1])], 'refused',
                           lambda state, vm, host: ''))
    model = clouds.model(problem, prices=prices).with_rules(*more)
    return SearchSpace(State(model), budget=5)


class PriceRowsTest(testtools.TestCase):
    def test_prices_of_moves_are_those_of_their_rows(self):
        seen = collections.Counter()

        @settings(max_examples=250, derandomize=True, database=None, deadline=None)
        @given(spaces(), st.integers(0, 1 << 30))
        def look(space, seed):
            count, hosts = len(space.vms), len(space.hosts)
            assume(space.price_rows is not None and count)
            table = np.minimum([space.row(vm)[:hosts] for vm in range(count)], NEVER)
            table = table.astype(np.float32)
            rng = np.random.default_rng(seed)
            vms, there = rng.integers(0, count, 4), rng.integers(0, hosts, 6)
            for items, at in ((vms, int(there[0])), (vms[:, None], np.arange(hosts)),
                              (vms[:, None], there)):
                total = np.ones(np.broadcast(items, at).shape)
                space.price_rows.add(total, items, at)
                np.testing.assert_array_equal(
                    np.ones(total.shape) + table[items, at], total)
            for vm, host in zip(vms, there[:4], strict=True):
                self.assertEqual(table[vm, host], space.price_rows.price_of(vm, host))
            seen['free'] += count - len(space.priced)
            seen['priced'] += int((table > 0).any(axis=1).sum())
            seen['never'] += int((table == NEVER).any(axis=1).sum())

        look()
        self.assertGreater(min(seen[what] for what in ('free', 'priced', 'never')), 50)

    def test_rows_behind_the_hosts_are_where_nothing_may_go(self):
        """A space has only the ends of hosts that are not touched, and no instance goes there."""
        judged = []

        @settings(max_examples=50, derandomize=True, database=None, deadline=None)
        @given(spaces())
        def look(space):
            problem = space.problem
            assume(len(space.hosts) > 2)
            part = SearchSpace(space.state, 5, space.hosts[:2])
            if part.prices_at is not None and part.untouched:
                beyond = part.prices_at[:len(part.vms), len(part.hosts):]
                self.assertTrue((beyond == NEVER).all())
                self.assertLess(len(part.hosts), problem.available.sum())
                judged.append(beyond.size)

        look()
        self.assertGreater(sum(judged), 10)
