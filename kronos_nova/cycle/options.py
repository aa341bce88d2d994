"""The options of an evaluation, as plain values."""

import dataclasses
from collections.abc import Collection
from collections.abc import Mapping

import numpy as np
from oslo_config import cfg

from kronos_nova.cycle.move_limits import MoveLimits
from kronos_nova.cycle.prices import MinGain
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.load.belief import BeliefRules
from kronos_nova.objects import eligibility
from kronos_nova.objects.eligibility import OptOut
from kronos_nova.objects.host_checks import ALL_CHECKS
from kronos_nova.objects.move import Caps
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.pacing.migration_history import Assumed
from kronos_nova.policies import windows
from kronos_nova.policies.windows import Windows
from kronos_nova.units import DAY


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PaceOptions:
    """Options about when moves begin and how long they take.

    caps : limits on concurrent moves that ``[kronos_executor]`` sets, and limits of drains
    link : MiB a second of each host's link; None if each link is as fast as one migration
    stream : maximum MiB a second of one migration; None if the maximum is learnt from past moves
    downtime : seconds for which a guest may be stopped
    copies_local_disks : True if instances have disks that are copied
    forces : True if migrations that take too long are completed by force
    stale_plan_age : seconds after which a move that has not begun is given up
    due : {host: seconds within which the host has to be empty}
    """

    caps: Caps = Caps(total=4, per_source=1, per_destination=2)
    link: float | None = None
    stream: float | None = None
    downtime: float = Assumed().downtime
    copies_local_disks: bool = False
    forces: bool = False
    stale_plan_age: float = np.inf
    due: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def assumed(self) -> Assumed:
        return Assumed(bandwidth=self.stream or self.link, downtime=self.downtime)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> 'PaceOptions':
        group = conf.kronos_executor
        return cls(
            caps=Caps(total=group.max_concurrent_migrations,
                      per_source=group.max_concurrent_per_source,
                      per_destination=group.max_concurrent_per_destination),
            link=_mib_per_second(group.link_mbps), stream=_mib_per_second(group.stream_mbps),
            downtime=group.downtime_ms / 1000, copies_local_disks=group.copies_local_disks,
            forces=group.timeout_action == 'force_complete', stale_plan_age=group.stale_plan_age)


def _mib_per_second(mbps: int) -> float | None:
    """Convert megabits a second to MiB a second; 0 gives None."""
    return mbps * 1e6 / 8 / 2**20 or None




@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """The options that affect a plan. The fields have the names and units of options of
    ``[kronos]``. The field ``pace`` has the options of ``[kronos_executor]`` that determine the
    duration of a plan.

    aggregates : names; None for all aggregates
    budget : maximum number of moves of a plan; None for the number in the policies file
    max_sample_age : seconds; None accepts samples of any age
    soft_groups_yield : True if moves may violate soft server groups to empty a host; set by drains,
        not by an option
    repair_order : {aggregate: time at which violated rules are repaired}. The time is TOGETHER
        (with other moves), FIRST, LAST or NEVER of :mod:`kronos_nova.objects.automation`. An
        aggregate that is not in the dictionary has TOGETHER
    automatic : (aggregate, purpose) of the plans that start without approval
    packs_numa_cells : ``[compute] packing_host_numa_cells_allocation_strategy`` of Nova
    """

    aggregates: tuple[str, ...] | None = None
    include_unassigned_hosts: bool = True
    spread_planner: str = 'spread'
    pack_planner: str = 'pack'
    budget: int | None = None
    evacuate_disabled_hosts: bool = False
    enforce_hard_affinity: bool = False
    enforce_soft_affinity: bool = False
    repair_rules: str = 'all'
    max_rule_repairs_per_cycle: int = 0
    repair_order: Mapping[str, str] = dataclasses.field(default_factory=dict)
    automatic: frozenset[tuple[str, str]] = frozenset()
    restrict_to_az: bool = False
    host_checks: frozenset[str] = frozenset(ALL_CHECKS)
    planning_time_limit: float = 10.0
    overload_ceiling: float = 0.95
    min_coverage: float = 1.0
    max_sample_age: float | None = None
    accept_partial_metrics: bool = False
    server_grace: float = 600.0
    belief: BeliefRules = BeliefRules()
    stabilization_cycles: int = 1
    cooldown: int = 0
    spread_interval: int = 0
    no_return_window: float = 0.0
    reserve_hosts: int = 0
    failover_check_percent: int = 5
    failover_hosts: int = 0
    failover_domains: int = 0
    slot_flavors: tuple[str, ...] = ()
    min_gain: MinGain = MinGain()
    soft_group_cost: float | None = None
    soft_groups_yield: bool = False
    packs_numa_cells: bool = False
    opt_out: OptOut = OptOut()
    windows: Windows = Windows()
    move_limits: MoveLimits = MoveLimits()
    restraint: Restraint = Restraint()
    pace: PaceOptions = PaceOptions()

    def moves(self, of_policies: int) -> int:
        """Return the maximum number of moves of a plan.

        :param of_policies: the maximum in the policies file, which is used if no option sets a
            maximum
        """
        return of_policies if self.budget is None else self.budget

    def planner(self, mode: str) -> str:
        """Return the name of the planner for policies of ``mode``."""
        return {'pack': self.pack_planner, 'spread': self.spread_planner}.get(mode, mode)

    def scopes(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the scopes to plan, in order. A scope is an aggregate or the pool of unassigned
        hosts. The result begins with the configured aggregates, or with ``names`` if no aggregates
        are configured. The pool comes last, if an option includes it."""
        wanted = sorted(names) if self.aggregates is None else sorted(set(self.aggregates))
        return (*wanted, *([UNASSIGNED] if self.include_unassigned_hosts else []))

    def existing(self, known: Collection[str]) -> 'EngineOptions':
        """Return the options without the aggregates that do not exist.

        :param known: names of the aggregates that exist
        """
        return dataclasses.replace(self, aggregates=self.aggregates and tuple(
            name for name in self.aggregates if name in known))

    def without(self, names: Collection[str]) -> 'EngineOptions':
        """Return a copy of the options without some aggregates."""
        return dataclasses.replace(
            self, aggregates=self.aggregates and tuple(
                name for name in self.aggregates if name not in names),
            include_unassigned_hosts=self.include_unassigned_hosts and UNASSIGNED not in names)


def no_return_window(conf: cfg.ConfigOpts) -> int:
    """Return the seconds after a move during which the instance is not moved back to its former
    host. With restraint, the result is at least a day."""
    group = conf.kronos
    return max(group.no_return_window, DAY) if group.restraint else group.no_return_window


def packs_numa_cells(conf: cfg.ConfigOpts) -> bool:
    """Return True if Nova fills the NUMA cells of a host one after the other; False if Nova spreads
    instances over the cells, or if Nova's options are not known."""
    compute = getattr(conf, 'compute', None)
    return bool(getattr(compute, 'packing_host_numa_cells_allocation_strategy', False))


def from_conf(conf: cfg.ConfigOpts) -> EngineOptions:
    """Return the EngineOptions from a ``ConfigOpts`` on which
    :func:`kronos_nova.conf.register_opts` was called.

    :raises ConfigurationError: a value is wrong in a way that oslo.config does not check
    """
    group = conf.kronos
    plain = {field.name: getattr(group, field.name) for field in dataclasses.fields(EngineOptions)
             if field.name in group}
    return EngineOptions(**plain | {
        'aggregates': tuple(group.aggregates), 'slot_flavors': tuple(group.slot_flavors),
        'host_checks': frozenset(group.host_checks),
        'min_gain': MinGain(per_move=group.min_gain, per_gib=group.min_gain_per_gib,
                            per_minute=group.min_gain_per_minute,
                            per_failure=group.min_gain_per_failure),
        'opt_out': OptOut(never_projects=frozenset(group.never_move_projects),
                          only_evacuate_projects=frozenset(group.only_evacuate_projects),
                          heeded=eligibility.heeded(group.move_hints)),
        'move_limits': MoveLimits(per_project=group.max_moves_per_project,
                                  per_project_and_day=group.max_moves_per_project_and_day,
                                  per_cause_and_day=group.max_moves_per_cause_and_day,
                                  per_instance_and_week=group.max_moves_per_instance_and_week,
                                  per_instance_and_day=group.max_moves_per_instance_and_day),
        'belief': BeliefRules(least_known=group.min_known_servers,
                              tolerance=group.profile_tolerance),
        'restraint': Restraint(group.restraint), 'pace': PaceOptions.from_conf(conf),
        'no_return_window': no_return_window(conf), 'packs_numa_cells': packs_numa_cells(conf),
        'windows': windows.parse(group.maintenance_window)})
