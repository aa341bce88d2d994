"""Plans that make room for new servers of a shape (the resources of one server).

The planner works as if the new servers were on an imaginary host that has to be emptied. If other
servers have to move to make room, the planner prefers moves that copy little memory.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from types import MappingProxyType

from kronos_nova import exception
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.objects import eligibility
from kronos_nova.objects.eligibility import OptOut
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import NoPlace
from kronos_nova.planners.base import Step
from kronos_nova.planners.make_room import RoomMaker
from kronos_nova.room import shapes
from kronos_nova.room import whole

MOVES = 100_000
"""Maximum number of moves of a plan that makes room for new servers. Fixed: a search finds fewer
moves within its time limit, so this maximum limits no plan."""
CUT = 'the time limit of a plan was over before a place was found; there may be one'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RoomMove:
    """A move that makes room. ``depends_on`` are the positions, from 0, of the moves that have to
    succeed before this move begins."""

    instance_uuid: str
    source: str
    destination: str
    memory_mb: int
    depends_on: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RoomPlan:
    """A plan that makes room for new servers.

    moves : the moves, in an order in which they are possible
    hosts : the host of each new server that finds room
    missing : reasons why other new servers find no room; each reason is listed once
    is_proven : True if it is proven that no plan makes room for more of the new servers
    """

    moves: tuple[RoomMove, ...]
    hosts: tuple[str, ...]
    missing: tuple[str, ...]
    is_proven: bool

    @property
    def memory_mb(self) -> int:
        """The memory to copy in MiB."""
        return sum(move.memory_mb for move in self.moves)


def plan(snapshot: Snapshot, rules: ConstraintRules, shape: Shape, count: int, limits: Limits,
         pinned: Collection[str] = (), project_id: str = '',
         loads: Mapping[str, float] = MappingProxyType({})) -> RoomPlan:
    """Return a plan that makes room for new servers in one Nova cell. The cell is the one in which
    most of the new servers find room. Of equal cells, the cell with the least memory to copy is
    chosen.

    :param snapshot: the hosts that may take the new servers, and whose own servers may move
    :param pinned: uuids of servers that do not move
    :param loads: {host: its load}; servers move to the hosts with the least load
    """
    found = [_plan(snapshot, cell, rules, shape, count, dataclasses.replace(limits, unplaced={}),
                   pinned, project_id, loads)
             for cell in sorted({host.cell for host in snapshot.hosts})]
    return min(found, key=lambda each: (-len(each.hosts), each.memory_mb, len(each.moves)),
               default=RoomPlan(moves=(), hosts=(), missing=('there is no host',), is_proven=True))


def _plan(snapshot: Snapshot, cell: str, rules: ConstraintRules, shape: Shape, count: int,
          limits: Limits, pinned: Iterable[str], project_id: str,
          loads: Mapping[str, float]) -> RoomPlan:
    here = dataclasses.replace(snapshot, hosts=tuple(
        host for host in snapshot.hosts if host.cell == cell))
    cloud, emptied, _new = shapes.with_new(here, [shape], count, project_id)
    state = State(whole.model_of(cloud, rules, emptied, tuple(pinned), loads))
    problem = state.problem
    steps = RoomMaker().plan(state, limits)
    moves = moves_of(problem, steps)
    hosts = tuple(problem.hosts[step.destination] for step in steps
                  if shapes.is_new(problem.vms[step.vm]))
    return RoomPlan(moves=moves, hosts=hosts, **_missing(limits.unplaced.values(),
                                                         count - len(hosts)))


def within(snapshot: Snapshot, aggregate: str) -> Snapshot:
    """Return the snapshot with only the hosts of an aggregate.

    :raises NotInScope: there is no such aggregate
    """
    try:
        names = set(snapshot.hosts_of(aggregate))
    except KeyError as error:
        raise exception.NotInScope(
            what=f'Aggregate {aggregate}', problem='there is no aggregate of that name',
            remedy='"openstack aggregate list" shows the names.') from error
    return dataclasses.replace(snapshot, hosts=tuple(
        host for host in snapshot.hosts if host.name in names))


def pinned(snapshot: Snapshot, rules: ConstraintRules, opt_out: OptOut) -> list[str]:
    """Return the uuids of the servers that do not move to make room."""
    # A rule that waits for a window or counts moves delays a move, and does not forbid it.
    held = {uuid for each in rules.selections if each.rule.never_move for uuid in each.servers}
    return [each.uuid for each in snapshot.instances if each.uuid in held
            or eligibility.obstacle(each, opt_out, eligibility.TO_BALANCE)]


def moves_of(problem: Problem, steps: Iterable[Step],
             only_thought_of: Collection[str] = ()) -> tuple[RoomMove, ...]:
    """Return the moves of existing servers in a plan. Steps of imaginary servers, which only take
    room, are left out.

    :param only_thought_of: uuids of existing servers whose moves are only assumed and not made;
        these moves are left out as well
    """
    steps = tuple(steps)
    real = [number for number, step in enumerate(steps)
            if not shapes.is_new(problem.vms[step.vm])
            and problem.vms[step.vm] not in only_thought_of]
    position = {number: n for n, number in enumerate(real)}
    return tuple(RoomMove(
        instance_uuid=problem.vms[step.vm], source=problem.hosts[step.source],
        destination=problem.hosts[step.destination], memory_mb=int(problem.memory_mb[step.vm]),
        depends_on=tuple(position[earlier] for earlier in step.depends_on if earlier in position))
        for step in (steps[number] for number in real))


def _missing(unplaced: Iterable[NoPlace], count: int) -> dict:
    reasons = list(unplaced)
    if not count:
        return {'missing': (), 'is_proven': True}
    if not reasons:
        return {'missing': (CUT,), 'is_proven': False}
    return {'missing': tuple(dict.fromkeys(each.why for each in reasons)),
            'is_proven': bool(reasons) and all(each.is_proven for each in reasons)}
