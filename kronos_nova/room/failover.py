"""Failover: the check of whether the servers of lost hosts can all restart on the other hosts.

A restart takes room on its destination and frees no room. So the check is a packing problem: the
order of the restarts does not matter if the hosts of all instances are chosen together. The order
matters if a scheduler chooses the hosts one after the other (:mod:`kronos_nova.room.nova_order`).

In most cases, a simple method finds a solution (Panigrahy et al. 2011). The method places the
instances in the order of their sizes, the largest first. Each instance is placed on the host that
has the least free room after the placement. If this method fails, the integer program of
:mod:`kronos_nova.model.program` decides.
"""

import collections
import dataclasses
import functools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova import exception
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.model.assignment import Assignment
from kronos_nova.model.numa import CellUse
from kronos_nova.model.problem import TOLERANCE
from kronos_nova.model.program import Program
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.model.rules import CallbackRule
from kronos_nova.model.rules import CellRoom
from kronos_nova.model.rules import GroupPolicy
from kronos_nova.model.rules import ReservedRoom
from kronos_nova.model.rules import Room
from kronos_nova.model.rules import Rule
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.room import nova_order
from kronos_nova.room import whole

FITS, DOES_NOT, NOT_FOUND = VERDICTS = ('fits', 'does_not_fit', 'not_found')
"""Verdicts on a loss of hosts. ``FITS``: a placement of all lost servers was found. ``DOES_NOT``:
it is proven that there is no such placement. ``NOT_FOUND``: no placement was found, but there may
be one."""

EVACUATED = frozenset(('ACTIVE', 'SHUTOFF', 'ERROR'))
"""Statuses of the servers that Nova evacuates (``nova.compute.api.API.evacuate``)."""

NODES = 2_000
"""Maximum number of branch-and-bound nodes of the integer program that checks restarts of servers.
The check finds out whether all servers of a lost host can restart elsewhere. Raised, the check of a
full cloud takes longer; lowered, more checks end without a result. Not measured."""
SECONDS = 10.0
"""Maximum seconds for one integer program that checks restarts of a lost host's servers. Most
programs end earlier, because the number of branch-and-bound nodes is limited as well
(:data:`NODES`). Raised, fewer checks end without a result; lowered, more checks end without a
result. Not measured."""


CUTS = 8
"""Maximum number of times that one check solves its integer program. The check finds out whether
all servers of a lost host can restart on other hosts. A solution gives each server a new host. If a
server does not fit into the NUMA cells that Nova would choose on its new host, the program is
solved again with a cut: the server and all equal servers may not go to that host. Raised, a check
takes longer if NUMA cells are nearly full; lowered, more of these checks end without a result. Not
measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LossVerdict:
    """The result of checking whether all servers of lost hosts restart on other hosts.

    lost : names of the hosts that fail
    verdict : one of :data:`VERDICTS`
    placement : {uuid of an instance: name of the host on which it restarts}; empty if some
        instances do not fit
    left : {uuid of an instance that finds no host: reason}
    """

    lost: tuple[str, ...]
    verdict: str
    placement: Mapping[str, str]
    left: Mapping[str, str]


class Failover:
    """A checker of whether the servers of lost hosts can restart elsewhere.

    Two kinds of rules are ignored, because Nova's scheduler does not apply them when it chooses the
    hosts: rules that keep room in reserve, and rules that may be broken to empty a host.
    """

    def __init__(self, model: Model, instances: Iterable[Instance]):
        """:param instances: instances of the model; all other instances are ignored"""
        rules = [rule for rule in model.for_emptying.rules if not isinstance(rule, ReservedRoom)]
        groups = [rule for rule in rules if isinstance(rule, GroupPolicy)]
        anti = model.memberships.anti
        self._is_together = functools.reduce(
            np.logical_or, (rule.forbids & ~anti for rule in groups), np.zeros(len(anti), bool))
        self._apart = [dataclasses.replace(rule, forbids=rule.forbids & anti)
                       for rule in groups]
        self._others = [rule for rule in rules if not isinstance(rule, GroupPolicy)]
        self.model = _with(model, (*self._apart, *self._others))
        self.state, self.problem = State(self.model), model.problem
        self._free = self.problem.limits - self.state.used
        self._instances = {instance.uuid: instance for instance in instances}
        self._host = {name: host for host, name in enumerate(self.problem.hosts)}
        self._vm = {uuid: vm for vm, uuid in enumerate(self.problem.vms)}
        self._is_grouped = np.zeros(len(self.problem.vms), dtype=bool)
        self._is_grouped[model.memberships.members] = True
        self._on_host = _members(self.problem.vm_host, len(self.problem.hosts))
        self._is_by_host = self.problem.provider is None and all(
            rule.is_additive or isinstance(rule, CellRoom) for rule in self._others)
        # True if counting room and group members is enough, without evaluating rules one by one.
        self._is_simple = self.problem.provider is None and all(
            rule.is_additive and not isinstance(rule, CallbackRule) for rule in self._others)

    def hosts_with_servers(self) -> list[int]:
        """Return the indexes of the hosts that have servers, in the order of their names."""
        return [host for host, vms in enumerate(self._on_host) if len(vms)]

    def servers(self, host: int) -> int:
        """Return the number of servers on a host."""
        return len(self._on_host[host])

    def index(self, name: str) -> int:
        """Return the index of a host.

        :raises HostNotFound: there is no such host
        """
        if name not in self._host:
            raise exception.HostNotFound(
                what=f'Host {name}', problem='Nova has no host of that name with QEMU/KVM',
                remedy='"openstack hypervisor list" shows the names of hosts.')
        return self._host[name]

    def is_local(self, uuid: str) -> bool:
        """Return True if a move of the server can affect only the verdicts on the following losses.
        A loss is the failure of hosts.

        * the loss of the source of the move
        * the loss of the destination of the move
        * losses whose servers restart on the destination

        Return False if the move may affect the verdicts on other losses as well. This is so if
        hosts share providers, or if a rule for a host depends on other hosts. It is also so if the
        server is in a server group, unless this group only keeps its servers on different hosts.
        """
        vm, members = self._vm.get(uuid), self.model.memberships
        if not self._is_by_host or vm is None:
            return False
        return all(members.anti[group] and members.groups[group].places is None
                   for group in members.groups_of(vm).tolist())

    def judge(self, lost: Sequence[int], known: Mapping[str, str] | None = None,
              seconds: float = SECONDS) -> LossVerdict:
        """Check whether the servers of lost hosts can restart elsewhere.

        :param lost: indexes of the hosts that fail together
        :param known: an earlier placement for the same loss, {uuid of an instance: name of its
            host}. If this placement is still valid, no other placement is searched
        :param seconds: time limit of one integer program; 0 for no integer program
        """
        vms, hosts, permitted = self._question(lost)
        refused = self._refused(vms)
        if refused:
            return self._verdict(lost, DOES_NOT, {}, refused)
        placed = self._place_again(vms, hosts, permitted, known) if known else None
        if placed is None:
            placed = self._pack(vms, hosts, permitted)
        if placed is not None:
            return self._verdict(lost, FITS, placed, {})
        left = self._bounds(vms, hosts, permitted)
        return (self._verdict(lost, DOES_NOT, {}, left) if left
                else self._proved(lost, vms, hosts, permitted, min(seconds, SECONDS)))

    def _refused(self, vms: np.ndarray) -> dict[int, str]:
        """Return {instance: reason} for the instances that Nova cannot evacuate to any host, even
        if there is room."""
        statuses = ((vm, self._instances[self.problem.vms[vm]].status) for vm in vms.tolist())
        return {vm: f'Nova evacuates no server that is {status}' for vm, status in statuses
                if status not in EVACUATED}

    def place_most(self, lost: Sequence[int]) -> dict[str, str]:
        """Place the servers of lost hosts on other hosts, the largest servers first. Return {uuid
        of a server: name of its new host}, without the servers that find no host."""
        vms, hosts, permitted = self._question(lost)
        permitted[np.isin(vms, list(self._refused(vms)))] = False
        placed = self._pack(vms, hosts, permitted, is_partial=True) or {}
        return dict(self._verdict(lost, NOT_FOUND, placed, {}).placement)

    def _question(self, lost: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays: the instances of the lost hosts; the hosts that may take these
        instances; and bool (instances, hosts), True if the rules permit the instance on the
        host."""
        vms = np.concatenate([self._on_host[host] for host in lost])
        hosts = np.flatnonzero(self.problem.available)
        hosts = hosts[~np.isin(hosts, lost)]
        return vms, hosts, self._permitted(vms, hosts, self._together(vms, lost))

    def fits_in_novas_order(self, lost: Sequence[int]) -> bool:
        """Return True if all servers of the lost hosts find a host when Nova's scheduler places
        them one after the other; False otherwise."""
        vms, hosts, permitted = self._question(lost)
        for group, inside in self._kept_together(vms):
            if not self.state.groups.on(np.full(len(hosts), group), hosts).any():
                permitted[inside] = False

        def may(position: int, placed: Mapping[int, int]) -> np.ndarray:
            allowed, vm = permitted[position], vms[position:position + 1]
            if self._is_grouped[vm].any():
                rooms = _GroupRooms(self, hosts)
                mates = set(rooms.groups_of(vm))
                for other, host in placed.items():
                    if mates & set(rooms.groups_of(vms[other:other + 1])):
                        rooms.occupy(vms[other:other + 1], host)
                allowed = allowed & rooms.allow(vm)
            use = self._cell_use()
            if use is not None:
                for other, host in placed.items():
                    use.add(int(vms[other]), int(hosts[host]), 1)
                allowed = allowed & self._fit_cells(use, vm, hosts)
            return allowed

        order = nova_order.in_order([self._instances[self.problem.vms[vm]] for vm in vms.tolist()])
        return nova_order.restarts(order, self.problem.demands[vms], self._free[hosts],
                                   self.problem.resource_classes, may) is not None

    def _verdict(self, lost: Sequence[int], verdict: str, placed: Mapping[int, int],
                 left: Mapping[int, str]) -> LossVerdict:
        problem = self.problem
        return LossVerdict(
            lost=tuple(problem.hosts[host] for host in lost), verdict=verdict,
            placement={problem.vms[vm]: problem.hosts[host] for vm, host in sorted(placed.items())},
            left={problem.vms[vm]: why for vm, why in sorted(left.items())})

    def _together(self, vms: np.ndarray, lost: Sequence[int]) -> list[AllowedHosts]:
        """Return the rules that keep affinity groups together, as AllowedHosts.

        A group may have members on the hosts that remain. A rule then restricts the members on lost
        hosts to the host or failure domain with most of the remaining members. For a group without
        remaining members, there is no rule.
        """
        found = []
        every = np.arange(len(self.problem.hosts))
        for group, inside in self._kept_together(vms):
            there = self.state.groups.on(np.full(len(every), group), every)
            there[list(lost)] = 0
            if there.any():
                kind = np.zeros(len(self.problem.vms), dtype=np.intp)
                kind[vms[inside]] = 1
                found.append(AllowedHosts(
                    reason='group', why=self._why_together, kind=kind,
                    allowed=np.stack([there >= 0, there == there.max()])))
        return found

    def _why_together(self, _state: State, vm: int, host: int) -> str:
        return (f'other members of an affinity group of {self.problem.vms[vm]} are not on '
                f'{self.problem.hosts[host]}')

    def _kept_together(self, vms: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (group, positions of its members in ``vms``) of each server group that is kept
        together."""
        position, groups = self.model.memberships.expand(vms)
        for group in np.unique(groups[self._is_together[groups]]).tolist():
            yield group, position[groups == group]

    def _permitted(self, vms: np.ndarray, hosts: np.ndarray,
                   together: Iterable[Rule]) -> np.ndarray:
        """Return bool (instances, hosts): true if the rules permit the instance on the host. Rules
        about room, and rules that keep groups apart, are ignored."""
        permitted = np.ones((len(vms), len(hosts)), dtype=bool)
        for rule in (*self._others, *together):
            if not isinstance(rule, Room):
                permitted &= rule.allows(self.state, vms[:, None], hosts)
        return permitted

    def _pack(self, vms: np.ndarray, hosts: np.ndarray,
              permitted: np.ndarray, is_partial: bool = False) -> dict[int, int] | None:
        """Place instances, the largest first. Each instance is placed on the host that then has the
        least free room. Return {instance: host}; None if these placements violate a rule.

        :param is_partial: True to leave out instances that find no host; False to return None if an
            instance finds no host
        """
        free, rooms = self._free[hosts].copy(), _GroupRooms(self, hosts)
        use = self._cell_use()
        scale = np.maximum(free.max(axis=0, initial=1.0), 1.0)
        placed: dict[int, int] = {}
        for item in self._items(vms, scale):
            demand = self.problem.demands[vms[item]].sum(axis=0)
            fits = permitted[item].all(axis=0) & ((demand <= free + TOLERANCE) | (demand == 0)).all(
                axis=1) & rooms.allow(vms[item])
            if use is not None:
                fits &= self._fit_cells(use, vms[item], hosts)
            if not fits.any():
                if is_partial:
                    continue
                return None
            left = ((free - demand) / scale).sum(axis=1)
            host = int(np.where(fits, left, np.inf).argmin())
            free[host] -= demand
            rooms.occupy(vms[item], host)
            if use is not None:
                for vm in vms[item].tolist():
                    use.add(vm, int(hosts[host]), 1)
            placed |= dict.fromkeys(vms[item].tolist(), int(hosts[host]))
        return placed if self._is_simple or self._is_possible(placed) else None

    def _cell_use(self) -> CellUse | None:
        """Return a copy of the use of NUMA cells; None if NUMA cells restrict no placement."""
        counts = any(isinstance(rule, CellRoom) for rule in self._others)
        return self.state.cells.copy() if counts and self.state.cells is not None else None

    def _fit_cells(self, use: CellUse, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return bool, one value for each of ``hosts``: True if the NUMA cells of the host have
        room for any one of the instances ``vms`` alone."""
        fits = use.fits(np.unique(use.cells.kind[vms]))
        return np.asarray(fits[:, hosts].all(axis=0))

    def _items(self, vms: np.ndarray, scale: np.ndarray) -> Iterator[np.ndarray]:
        """Divide the instances into sets, so that the instances of each set have to go to the same
        host. Yield the sets, the largest one first. The members of an affinity group form a set.
        Every other instance is a set of its own. A set is an intp array: the positions of its
        instances in ``vms``.

        :param scale: float64 (resource classes,), amount of each class that counts as size 1
        """
        item = np.arange(len(vms))
        for _group, inside in self._kept_together(vms):
            item[np.isin(item, item[inside])] = item[inside].min()
        size = (self.problem.demands[vms] / scale).max(axis=1, initial=0.0)
        total = np.bincount(item, size, minlength=len(vms))
        alone = np.bincount(item, minlength=len(vms)) == 1
        for first in np.lexsort((np.arange(len(vms)), -total)).tolist():
            if item[first] == first:
                yield np.array([first]) if alone[first] else np.flatnonzero(item == first)

    def _is_possible(self, placed: Mapping[int, int]) -> bool:
        """Return True if the placements in ``placed``, made in this order, violate no rule; False
        otherwise. Rules about server groups are ignored.

        :param placed: {instance: host}
        """
        trial = self.state.under(_with(self.model, tuple(self._others)))
        for vm, host in placed.items():
            if not trial.delta((vm, host)).feasible:
                return False
            trial.move(vm, host)
        return True

    def _place_again(self, vms: np.ndarray, hosts: np.ndarray, permitted: np.ndarray,
              known: Mapping[str, str]) -> dict[int, int] | None:
        """Return an earlier placement as {instance: host}; None if the earlier placement lacks one
        of the instances or is no longer valid.

        :param known: the earlier placement, {uuid of an instance: name of its host}
        """
        at = np.full(len(self.problem.hosts) + 1, -1)
        at[hosts] = np.arange(len(hosts))
        places = at[[self._host.get(known.get(self.problem.vms[vm], ''), -1)
                     for vm in vms.tolist()]]
        if (places < 0).any():
            return None
        free, rooms = self._free[hosts].copy(), _GroupRooms(self, hosts)
        np.subtract.at(free, places, self.problem.demands[vms])
        taken = np.unique(places)
        if ((free[taken] < -TOLERANCE).any()
                or not permitted[np.arange(len(vms)), places].all()):
            return None
        grouped = np.flatnonzero(self._is_grouped[vms])
        for some in self._items(vms[grouped], np.ones(free.shape[1])):
            item = grouped[some]
            if len(set(places[item].tolist())) > 1 or not rooms.allow(vms[item])[places[item[0]]]:
                return None
            rooms.occupy(vms[item], int(places[item[0]]))
        placed = dict(zip(vms.tolist(), hosts[places].tolist(), strict=True))
        return placed if self._is_simple or self._is_possible(placed) else None

    def _bounds(self, vms: np.ndarray, hosts: np.ndarray,
                permitted: np.ndarray) -> dict[int, str]:
        """Return {instance: reason} if it can be proven that some instances find no host; an empty
        dict otherwise.

        There are two proofs. If some instances would find no host even if they were alone, the
        result has these instances. Otherwise, if all instances together need more of a resource
        class than is free, the result has all instances.
        """
        if self.problem.provider is not None:
            return {}
        problem, free = self.problem, np.maximum(self._free[hosts], 0.0)
        rooms, left = _GroupRooms(self, hosts), {}
        for row, vm in enumerate(vms.tolist()):
            may = permitted[row] & rooms.allow(vms[row:row + 1])
            short = (problem.demands[vm] > free + TOLERANCE) & (problem.demands[vm] > 0)
            if not may.any():
                left[vm] = 'no other host may take it'
            elif short[may].any(axis=1).all():
                c = int(short[may].sum(axis=0).argmax())
                left[vm] = (f'it needs {problem.demands[vm, c]:g} {problem.resource_classes[c]}, '
                            f'and of {int(may.sum())} hosts that may take it none has more than '
                            f'{free[may, c].max():g} free with room for the rest of it')
        if left:
            return left
        needed, there = problem.demands[vms].sum(axis=0), free[permitted.any(axis=0)].sum(axis=0)
        for c in np.flatnonzero(needed > there + TOLERANCE).tolist():
            return dict.fromkeys(vms.tolist(), (
                f'{len(vms)} servers need {needed[c]:g} {problem.resource_classes[c]} together, '
                f'and {int(permitted.any(axis=0).sum())} hosts have {there[c]:g} free'))
        return {}

    def _proved(self, lost: Sequence[int], vms: np.ndarray, hosts: np.ndarray,
                permitted: np.ndarray, seconds: float) -> LossVerdict:
        """Solve an integer program that places the instances of lost hosts, and return the verdict
        that follows. Instances that have to go to the same host are merged into one."""
        items = list(self._items(vms, np.ones(self._free.shape[1])))
        first = np.sort(vms[[item[0] for item in items]])
        state = self._merged(vms, hosts, permitted, items)
        every = Assignment(state, state.model, first, first[:0], hosts)
        ended = None
        for _cut in range(CUTS if seconds > 0 else 0):
            solution = Program(every).solve(seconds, 0.0, NODES)
            ended = None if solution is None else every.ended(solution)
            if ended is None or len(ended.stays):
                break
            places = dict(ended.moves)
            chosen = {vm: (int(vms[item[0]]), places[int(vms[item[0]])])
                      for item in items for vm in vms[item].tolist()}
            placed = self._place_again(vms, hosts, permitted, {
                self.problem.vms[vm]: self.problem.hosts[host]
                for vm, (_first, host) in chosen.items()})
            if placed is not None:
                return self._verdict(lost, FITS, placed, {})
            refused = self._first_refused({vm: chosen[vm] for vm in vms.tolist()})
            if refused is None:
                break
            every.forbid(*refused)
        if ended and len(ended.stays) and ended.is_proven and not every.forbidden:
            return self._verdict(lost, DOES_NOT, {}, dict.fromkeys(ended.stays.tolist(), (
                'of all ways to place the servers of the lost hosts on the others, none leaves '
                'fewer without a place')))
        return self._verdict(lost, NOT_FOUND, {}, dict.fromkeys(
            ended.stays.tolist() if ended and len(ended.stays) else vms.tolist(),
            'no place was found within the work of one check; there may be one'))

    def _first_refused(self, chosen: Mapping[int, tuple[int, int]]) -> tuple[int, int] | None:
        """Return the first placement of an integer program that does not fit into the NUMA cells
        that Nova would choose; None if all placements fit.

        :param chosen: the placements, {instance: (first, host)}. ``first`` is the instance that
            represents, in the program, all instances that have to go to the same host
        :returns: (``first``, host) of the placement that does not fit
        """
        use = self._cell_use()
        if use is None:
            return None
        for vm, (first, host) in chosen.items():
            if not self._fit_cells(use, np.array([vm]), np.array([host]))[0]:
                return first, host
            use.add(vm, host, 1)
        return None

    def _merged(self, vms: np.ndarray, hosts: np.ndarray, permitted: np.ndarray,
                items: Iterable[np.ndarray]) -> State:
        """Return a state in which instances that have to go to the same host are merged into one
        instance. The merged instance needs the sum of the resources of these instances. It is
        permitted on the hosts on which each of these instances is permitted."""
        demands = self.problem.demands.copy()
        kind = np.zeros(len(self.problem.vms), dtype=np.intp)
        allowed = [np.ones(len(self.problem.hosts), dtype=bool)]
        for item in items:
            demands[vms[item[0]]] = self.problem.demands[vms[item]].sum(axis=0)
            kind[vms[item[0]]] = len(allowed)
            allowed.append(np.isin(np.arange(len(allowed[0])), hosts[permitted[item].all(axis=0)]))
        together = AllowedHosts(reason='group', why=self._why_together, kind=kind,
                                allowed=np.array(allowed))
        problem = dataclasses.replace(self.problem, demands=demands)
        return State(Model(problem, (*self.model.rules, together), self.model.prices))


def failover_of(snapshot: Snapshot, rules: ConstraintRules) -> Failover:
    """Make a Failover for the hosts of a cloud."""
    return Failover(whole.model_of(snapshot, rules), snapshot.instances)


class _GroupRooms:
    """The number of further members that each host may take, for each anti-affinity group."""

    def __init__(self, failover: Failover, hosts: np.ndarray):
        self._failover, self._hosts = failover, hosts
        self._room: dict[int, np.ndarray] = {}

    def allow(self, vms: np.ndarray) -> np.ndarray:
        """Return bool, one value for each host: True if the host may take all of the instances
        ``vms`` together."""
        allowed = np.ones(len(self._hosts), dtype=bool)
        for group, count in self._groups(vms):
            allowed &= self._room[group] >= count
        return allowed

    def occupy(self, vms: np.ndarray, host: int) -> None:
        """Count instances as placed on a host.

        :param host: position of the host in the ``hosts`` with which the object was made
        """
        for group, count in self._groups(vms):
            self._room[group][host] -= count

    def groups_of(self, vms: np.ndarray) -> list[int]:
        """Return the anti-affinity groups that have one of the instances as a member."""
        return [group for group, _count in self._groups(vms)]

    def _groups(self, vms: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield (group, number of its members in ``vms``) of each anti-affinity group."""
        members, found = self._failover.model.memberships, self._failover
        if not found._is_grouped[vms].any():
            return
        counts = collections.Counter(group for vm in vms.tolist()
                                     for group in members.groups_of(vm).tolist())
        for group, count in counts.items():
            if group not in self._room:
                rooms = (rule.room(found.state, group, self._hosts) for rule in found._apart)
                room = next((each for each in rooms if each is not None), None)
                if room is None:
                    continue
                self._room[group] = room.copy()
            yield group, count


def _with(model: Model, rules: tuple[Rule, ...]) -> Model:
    """Return a copy of the model with ``rules`` in place of the model's own rules."""
    other = model.with_rules()
    other.rules = rules
    return other


def _members(vm_host: np.ndarray, hosts: int) -> list[np.ndarray]:
    """Return a list with the indexes of the instances on each host."""
    order = np.argsort(vm_host, kind='stable')
    return np.split(order, np.searchsorted(vm_host[order], np.arange(1, hosts)))
