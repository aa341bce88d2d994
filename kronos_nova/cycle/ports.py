"""The databases and services that an evaluation uses (its ports), and the rules for its plans."""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.cycle import levels
from kronos_nova.cycle import options as engine_options
from kronos_nova.cycle.forecast_columns import ForecastCache
from kronos_nova.cycle.losses import LossJudge
from kronos_nova.cycle.requests import Requester
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import cycles as db_cycles
from kronos_nova.db import scores as db_scores
from kronos_nova.db.engine import Database
from kronos_nova.db.evaluations import Evaluations
from kronos_nova.db.holds import Holds
from kronos_nova.db.journal import Journal
from kronos_nova.db.load_stats import LoadStatsStore
from kronos_nova.db.refusals import Refusals
from kronos_nova.db.schedulers import Schedulers
from kronos_nova.db.server_names import ServerNames
from kronos_nova.db.switches import SwitchBoard
from kronos_nova.inventory.base import InventorySource
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects.automation import Defaults
from kronos_nova.objects.dry_run import DryRun
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.placement.room_allocations import RoomAllocations

MakeRequester = Callable[..., Requester]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CyclePorts:
    """The databases and services that a cycle uses.

    history : function that returns the live migrations of the cloud that ended successfully since a
        time
    dry_run : function that asks Nova or placement whether moves would be permitted
    forecast_cache : histories of loads that earlier cycles read for their forecasts
    loss_judge : checker of whether servers of lost hosts could restart; stores its results for
        later cycles
    schedulers : reports of nova-scheduler's workers on whether they have KronosFilter
    room_allocations : the allocations in placement that keep room; None without access to
        placement. Without these allocations, only KronosFilter keeps room
    requesters : functions that return Requesters, which plan requests of operators. Each function
        is called with CyclePorts, PolicySet, EngineOptions, CycleRules and the clock of an
        evaluation
    """

    inventory: InventorySource
    metrics: MetricsSource
    switches: SwitchBoard
    journal: Journal
    cooldowns: db_cooldowns.Cooldowns
    cycles: db_cycles.Cycles
    scores: db_scores.Scores
    evaluations: Evaluations
    load_stats: LoadStatsStore
    holds: Holds
    schedulers: Schedulers
    names: ServerNames
    refusals: Refusals
    history: Callable[[datetime.datetime], Iterable[PastMove]] = lambda since: ()
    dry_run: DryRun = not_asked
    forecast_cache: ForecastCache = dataclasses.field(default_factory=ForecastCache)
    loss_judge: LossJudge = dataclasses.field(default_factory=LossJudge)
    requesters: tuple[MakeRequester, ...] = ()
    room_allocations: RoomAllocations | None = None

    @classmethod
    def over(cls, database: Database, journal: Journal, **others: Any) -> 'CyclePorts':
        """Return CyclePorts with the stores of the control database.

        :param others: all other ports, by name
        """
        kept: dict[str, Any] = {
            'journal': journal, 'switches': SwitchBoard(database),
            'cooldowns': db_cooldowns.Cooldowns(database), 'cycles': db_cycles.Cycles(database),
            'scores': db_scores.Scores(database), 'evaluations': Evaluations(database),
            'load_stats': LoadStatsStore(database), 'holds': Holds(database),
            'schedulers': Schedulers(database),
            'names': ServerNames(database), 'refusals': Refusals(database)}
        return cls(**kept | others)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CycleRules:
    """Rules that apply once a plan is made, such as the lengths of cooldowns. All durations are in
    seconds.

    automation : automation levels that nova.conf sets
    in_scope : names of all aggregates that any process plans
    """

    automation: Defaults
    cooldown: float
    instance_cooldown: float
    instance_cooldown_factor: float
    instance_cooldown_max: float
    no_return_window: float
    experience_window: float
    stale_plan_age: float
    start_interval: float
    rejection_backoff: float = 0.0
    in_scope: tuple[str, ...] = ()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> 'CycleRules':
        group = conf.kronos
        return cls(automation=levels.defaults(conf), cooldown=group.cooldown,
                   instance_cooldown=group.instance_cooldown,
                   instance_cooldown_factor=group.instance_cooldown_factor,
                   instance_cooldown_max=group.instance_cooldown_max,
                   no_return_window=engine_options.no_return_window(conf),
                   experience_window=group.experience_window,
                   stale_plan_age=conf.kronos_executor.stale_plan_age,
                   start_interval=conf.kronos_executor.start_interval,
                   rejection_backoff=group.rejection_backoff_cycles * group.evaluation_interval,
                   in_scope=tuple(group.aggregates))
