"""The planner that makes hosts less likely to become full, by the best single move again and again
(steepest descent). The *risk* is the expected number of full hosts.

Loads change quickly. If the planner waited until a measured load is high, the host would often be
full before a move has ended. So the planner uses the likely load ``μ`` of each host and the
variance ``V`` of this load. Both are sums over the instances of the host. Whatever the distribution
of the load, the load is above a limit ``m`` for at most the fraction ``V / (V + (m - μ)²)`` of the
time (Cantelli's inequality). Real loads reach the limit less often than this bound. The planner
uses the square of the bound as the probability that a host is full. For loads measured on
PlanetLab, a research network, this probability differs from the real frequency by at most a factor
of two.

If ``μ`` is above the limit, the planner uses 1 plus the load above the limit in place of the
probability. So a plan that lowers the load of such a host is rated as better, even if the load
stays above the limit. No move makes its destination both full and fuller than its source. Without
this rule, a plan for hosts that are all nearly full would leave a few very full hosts.
"""

from collections.abc import Callable

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.model import rounded
from kronos_nova.objects.plan import HOT_SCORE
from kronos_nova.objects.plan import RELIEVE
from kronos_nova.planners.base import ENDS
from kronos_nova.planners.base import Choice
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.base import batches
from kronos_nova.planners.base import one_by_one

LEAST_VARIANCE = 1e-4
"""Lower bound of the variance of a host's predicted load, as the square of a fraction of the host.
Raised, more hosts count as likely to become full; lowered, predicted loads count as exact. Chosen
because loads are never known to better than a hundredth of a host; not measured."""


def chance(scores: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return float64 (...): an estimate of the probability that a host is full. A host is full if
    its load is above :data:`HOT_SCORE`. If the likely load is already above this limit, the result
    is 1 plus the load above the limit, so that a fuller host has a larger value.

    :param scores: likely loads
    :param variances: variances of the loads
    """
    room = HOT_SCORE - scores
    variances = np.maximum(variances, LEAST_VARIANCE)
    return np.where(room > 0, (variances / (variances + room ** 2)) ** 2, 1.0 - room)


def risk(state: State) -> float:
    """Return the expected number of full hosts, weighted by policy; 0 if the variances of loads are
    not known."""
    problem = state.problem
    if problem.variances is None:
        return 0.0
    each = chance(state.scores, _host_variances(state, problem.variances)) @ problem.policy_weights
    return float(each[problem.available].sum())


def _host_variances(state: State, of_instances: np.ndarray) -> np.ndarray:
    """Return float64 (H, P): the variance of each host's load.

    :param of_instances: float64 (V, P), variance of each instance's load
    """
    problem = state.problem
    variances = np.zeros(state.scores.shape)
    np.add.at(variances, state.vm_host,
              of_instances * problem.host_scale[state.vm_host] ** 2)
    return variances


class LowerRisk:
    """A planner that lowers the risk by one move after the other. The *risk* is the expected number
    of full hosts. The *price* of a move is the least decrease of the risk for which the move is
    made. The *net gain* of a move is the decrease of the risk minus the price.

    Each step makes the move with the largest ratio of net gain to price. If two instances relieve a
    host about equally, the smaller instance is moved. Each instance is moved at most once. The plan
    ends when no move has a net gain above 0.

    :param copy_prices: function that is called with an array of instances, and returns float64, the
        price of moving each of them. If the model has a higher price for a move, the price of the
        model is used
    """

    phase = RELIEVE

    def __init__(self, copy_prices: Callable[[np.ndarray], np.ndarray] | None = None):
        self._copy_prices = copy_prices or (lambda vms: np.zeros(len(vms)))

    def plan(self, state: State, limits: Limits) -> list[Step]:
        model = state.model.with_ceiling(state, limits.overload_ceiling)

        return one_by_one(state, limits, lambda: self._choose(state, model))

    def _choose(self, state: State, model: Model) -> Choice | None:
        pair = _Round(state, model, self._copy_prices).best()
        return pair and (*pair, f'makes {state.problem.hosts[state.vm_host[pair[0]]]} less likely '
                         'to become full')


class _Round:
    """The search for the one move with the largest ratio of net gain to price. The price is the
    cost of the move in units of risk (expected number of full hosts). The net gain is the decrease
    of the risk minus the price."""

    def __init__(self, state: State, model: Model,
                 copy_prices: Callable[[np.ndarray], np.ndarray]):
        self.state, self.model, self.problem = state, model, state.problem
        if self.problem.variances is None:
            raise ValueError('it is not known how much loads vary')
        self.vm_variances = self.problem.variances
        self.variances = _host_variances(state, self.vm_variances)
        self.chances = chance(state.scores, self.variances)
        hosts = np.flatnonzero(self.problem.available)
        hosts = hosts[np.argsort(-self._weighed(self.chances[hosts]), kind='stable')]
        # Hosts that instances leave, and hosts that they go to.
        sources, self.destinations = hosts[:ENDS], hosts[-ENDS:]
        unmoved = state.vm_host == state.origin
        self.vms = np.flatnonzero(self.problem.movable & unmoved
                                  & np.isin(state.vm_host, sources))
        self.copy_prices = copy_prices(self.vms)

    def best(self) -> tuple[int, int] | None:
        """Return (instance, destination) of the best move; None if no move lowers the risk by more
        than the price of the move."""
        gains = np.where(self._makes_full(), -np.inf, self._gains())
        rows, columns = np.ogrid[:gains.shape[0], :gains.shape[1]]
        # Rounded, because a division by a price of nearly 0 would enlarge rounding errors.
        ratings = rounded(gains) / np.maximum(self._prices(rows, columns), TOLERANCE)
        ratings[gains <= TOLERANCE] = -np.inf
        # Ratings that differ by less than the tolerance are tied, and the order of names decides.
        order = np.argsort(-np.round(ratings / TOLERANCE), axis=None, kind='stable')
        order = order[:np.count_nonzero(gains > TOLERANCE)]
        for some in batches(len(order)):
            rows, columns = np.unravel_index(order[some], gains.shape)
            pairs = self.vms[rows], self.destinations[columns]
            delta = self.state.delta(pairs, model=self.model)
            least = np.maximum(delta.price, self.copy_prices[rows])
            pays = gains[rows, columns] + self._prices(rows, columns) > least + TOLERANCE
            feasible = np.flatnonzero(pays & delta.feasible)
            if len(feasible):
                return int(pairs[0][feasible[0]]), int(pairs[1][feasible[0]])
        return None

    def _makes_full(self) -> np.ndarray:
        """Return bool (instances, destinations): true where the destination would be full after the
        move, and fuller than the source is now. Such a move would make the loads less even."""
        vms, hosts, scores = self.vms[:, None], self.destinations, self.state.scores
        after = self._loads(vms, hosts, 1)
        most = np.maximum(scores[self.state.vm_host[vms]], HOT_SCORE)
        return ((after > scores[hosts]) & (after > most + TOLERANCE)).any(axis=-1)

    def _gains(self) -> np.ndarray:
        """Return float64 (instances, destinations): the net gain of the move of each instance to
        each destination. The net gain is the decrease of the risk minus the price of the move. The
        unit is one expected full host."""
        vms, hosts = self.vms, self.destinations
        sources = self.state.vm_host[vms]
        relieved = self._weighed(self.chances[sources] - self._with(vms, sources, -1))
        burdened = self._weighed(self._with(vms[:, None], hosts, 1) - self.chances[hosts])
        rows, columns = np.ogrid[:len(vms), :len(hosts)]
        return relieved[:, None] - burdened - self._prices(rows, columns)

    def _prices(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return float64 (...): the price of each move, in expected full hosts, without penalties
        for soft server groups.

        :param rows: positions of the instances in ``vms``
        :param columns: positions of the destinations in ``destinations``
        """
        vms, hosts = self.vms[rows], self.destinations[columns]
        return np.maximum(self.model.prices.of_moves(vms, self.state.origin[vms], hosts),
                          self.copy_prices[rows])

    def _with(self, vms: np.ndarray, hosts: np.ndarray, sign: int) -> np.ndarray:
        """Return float64 (..., P): the probability that a host is full after an instance has
        arrived or left, for each pair of an instance and a host.

        :param vms, hosts: intp, broadcast to (...)
        :param sign: 1 if the instances arrive, -1 if the instances leave
        """
        scale = self.problem.host_scale[hosts]
        return chance(
            self._loads(vms, hosts, sign),
            self.variances[hosts] + sign * self.vm_variances[vms] * scale ** 2)

    def _loads(self, vms: np.ndarray, hosts: np.ndarray, sign: int) -> np.ndarray:
        """Return float64 (..., P): the likely load of a host after an instance has arrived or left,
        for each pair of an instance and a host.

        :param vms, hosts: intp, broadcast to (...)
        :param sign: 1 if the instances arrive, -1 if the instances leave
        """
        return (self.state.scores[hosts]
                + sign * self.problem.weights[vms] * self.problem.host_scale[hosts])

    def _weighed(self, chances: np.ndarray) -> np.ndarray:
        return chances @ self.problem.policy_weights
