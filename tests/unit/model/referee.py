"""Every rule once more, one move at a time and from scratch, without the model."""

import collections

import numpy as np

from kronos_nova.constraints.base import ConstraintRules

TOLERANCE = 1e-9


class Referee:
    """Permitted moves of a problem when every instance is at ``place`` (intp (V,)).

    Nothing is kept from one question to the next.
    """

    def __init__(self, problem, snapshot=None, rules=None, ceiling=None, start=None):
        """:param ceiling: no host's score may pass this, or what it has where ``start`` places the
            instances, if that is more
        """
        self.problem, self.snapshot = problem, snapshot
        self.rules = rules or ConstraintRules()
        self.ceiling = ceiling
        self.start = problem.vm_host if start is None else start

    def against(self, place, vm, host):
        """The reasons, in the order in which rules are asked."""
        names = ('availability', 'cell', 'zone', 'project', 'flavor', 'groups', 'units', 'room',
                 'headroom', 'reserve', 'returns', 'vetoes', 'overload')
        return [name for name in names if not getattr(self, name)(place, vm, host)]

    def allows(self, place, vm, host):
        return place[vm] != host and not self.against(place, vm, host)

    def availability(self, place, vm, host):
        return bool(self.problem.available[host])

    def cell(self, place, vm, host):
        if self.snapshot is None:
            return True
        home = self.problem.vm_host[vm]  # it is still in that cell, as no move may leave it
        return self.snapshot.hosts[host].cell == self.snapshot.hosts[home].cell

    def zone(self, place, vm, host):
        if not self.rules.restrict_to_az:
            return True
        return self._zone(host) == self._zone(self.problem.vm_host[vm])

    def _zone(self, host):
        zones = [aggregate.availability_zone for aggregate in self.snapshot.aggregates
                 if aggregate.availability_zone and self.problem.hosts[host] in aggregate.hosts]
        return zones[-1] if zones else 'nova'

    def _values(self, host, wanted):
        for aggregate in self.snapshot.aggregates if self.snapshot else ():
            if self.problem.hosts[host] in aggregate.hosts:
                for key, value in aggregate.metadata.items():
                    if wanted(key):
                        yield from (word.strip() for word in value.split(','))

    def project(self, place, vm, host):
        tenants = set(self._values(host, lambda key: key.startswith('filter_tenant_id')))
        return not tenants or self.snapshot.instances[vm].project_id in tenants

    def flavor(self, place, vm, host):
        prefix = 'aggregate_instance_extra_specs:'
        specs = self.snapshot.instances[vm].flavor_extra_specs if self.snapshot else {}
        for key, value in specs.items():
            if key.startswith(prefix):
                offered = set(self._values(host, lambda other, key=key: prefix + other == key))
                wanted = ({word.strip() for word in value.split('<or>') if word.strip()}
                          if value.startswith('<or>') else {value})
                if not offered & wanted:
                    return False
        return True

    def groups(self, place, vm, host):
        for group in self.problem.groups:
            if vm in group.members and (
                    group.hard or self.rules.soft_group_cost is None):
                at = _place_of(group)
                others = collections.Counter(at(place[m]) for m in group.members if m != vm)
                others.update(map(at, group.arriving))
                if at(host) == at(place[vm]):
                    continue
                if group.anti and others[at(host)] >= group.max_per_host:
                    return False
                most = sorted(others.values(), reverse=True)[:group.most_places]
                if not group.anti and len(most) == group.most_places and (
                        others[at(host)] < most[-1]):
                    return False
        return True

    def units(self, place, vm, host):
        problem = self.problem
        if problem.min_unit is None:
            return True
        for c, amount in enumerate(problem.demands[vm]):
            row = self._row(host, c)
            if amount and not (problem.min_unit[row, c] <= amount <= problem.max_unit[row, c]
                               and amount % problem.step_size[row, c] == 0):
                return False
        return True

    def _row(self, host, c):
        return host if self.problem.provider is None else self.problem.provider[host, c]

    def used(self, place):
        used = self.problem.used.copy()
        for vm in np.flatnonzero(place != self.problem.vm_host):
            for c, amount in enumerate(self.problem.demands[vm]):
                used[self._row(self.problem.vm_host[vm], c), c] -= amount
                used[self._row(place[vm], c), c] += amount
        return used

    def room(self, place, vm, host):
        used = self.used(place)
        for c, amount in enumerate(self.problem.demands[vm]):
            row = self._row(host, c)
            if amount and row != self._row(place[vm], c) and (
                    used[row, c] + amount > self.problem.limits[row, c] + TOLERANCE):
                return False
        return True

    def scores(self, place):
        return self._loads(self.problem.scores, place)

    def _loads(self, values, place):
        values, problem = values.copy(), self.problem
        for vm in np.flatnonzero(place != problem.vm_host):
            for host, sign in ((problem.vm_host[vm], -1), (place[vm], 1)):
                values[host] += sign * problem.weights[vm] * problem.host_scale[host]
        return values

    def headroom(self, place, vm, host):
        problem = self.problem
        load = np.fmax(self.scores(place)[host], self._loads(problem.capacity_scores, place)[host])
        load = load + problem.weights[vm] * problem.host_scale[host]
        return bool((load <= problem.capacity_thresholds + TOLERANCE).all())

    def overload(self, place, vm, host):
        if self.ceiling is None:
            return True
        most = np.maximum(self.ceiling, self.scores(self.start)[host])
        load = self.scores(place)[host] + (
            self.problem.weights[vm] * self.problem.host_scale[host])
        return bool((load <= most + TOLERANCE).all())

    def reserve(self, place, vm, host):
        count = self.rules.reserve_hosts
        if not count:
            return True
        hosts = len(self.problem.hosts)
        limits = self.problem.limits[:hosts][self.problem.available]
        needed = np.sort(limits, axis=0)[::-1][:count].sum(axis=0)
        after = place.copy()
        after[vm] = host
        now, then = self._free(place), self._free(after)
        return bool(((then >= needed - TOLERANCE) | (then >= now - TOLERANCE)).all())

    def _free(self, place):
        hosts = len(self.problem.hosts)
        guests = set(place.tolist()) | set(self.problem.arriving.tolist())
        in_use = [host for host in range(hosts) if host in guests and self.problem.available[host]]
        return (self.problem.limits - self.used(place))[in_use].sum(axis=0)

    def returns(self, place, vm, host):
        return (self.problem.vms[vm], self.problem.hosts[host]) not in self.rules.returns

    def vetoes(self, place, vm, host):
        return (self.problem.vms[vm], self.problem.hosts[host]) not in self.rules.vetoes

    def imbalances(self, place):
        columns = self.scores(place)[self.problem.available].T.tolist()
        left_out = self.problem.left_out
        left_out = [0] * len(columns) if left_out is None else left_out.tolist()
        return np.array([self._imbalance(sorted(column), count)
                         for column, count in zip(columns, left_out, strict=True)])

    @staticmethod
    def _imbalance(ascending, left_out):
        kept = ascending[left_out:len(ascending) - left_out]
        return kept[-1] - kept[0] if kept else 0.0

    def misplaced(self, place):
        """The number of misplaced members of each group."""
        found = []
        for group in self.problem.groups:
            at = _place_of(group)
            counts = collections.Counter(map(at, [*place[group.members], *group.arriving]))
            found.append(sum(max(0, n - group.max_per_host) for n in counts.values())
                         if group.anti else
                         sum(sorted(counts.values(), reverse=True)[group.most_places:]))
        return found

    def price(self, prices, place):
        """The price of all moves from home, that of soft groups that may be broken included."""
        home, price = self.problem.vm_host, 0.0
        for vm in np.flatnonzero(place != home):
            price += 0.0 if prices.vms is None else prices.vms[vm]
            price += prices.pairs.get((int(home[vm]), int(place[vm])), 0.0)
        if self.rules.soft_group_cost is not None:
            price += (prices.soft_group_cost or 0.0) * sum(
                max(0, now - before) for group, now, before in zip(
                    self.problem.groups, self.misplaced(place), self.misplaced(home), strict=True)
                if not group.hard)
        return price


def _place_of(group):
    """From a host to its place, as the group sees it."""
    return int if group.places is None else lambda host: int(group.places[host])
