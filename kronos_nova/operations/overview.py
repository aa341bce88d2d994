"""The overview of the present state of Kronos, for commands, the API and metrics."""

import collections
import dataclasses
import datetime
import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_config import cfg

from kronos_client.contract import automation as contract_automation
from kronos_client.contract import status
from kronos_nova import plural
from kronos_nova.cycle import aggregates
from kronos_nova.cycle import levels
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import migrate
from kronos_nova.db import models
from kronos_nova.db import shared_clock
from kronos_nova.db import stopping
from kronos_nova.db import switches as db_switches
from kronos_nova.db.drains import Drains
from kronos_nova.db.engine import Database
from kronos_nova.db.journal import Journal
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.drain import states as drains
from kronos_nova.executor import pending_stops
from kronos_nova.executor import progress
from kronos_nova.executor.executor import FORGOTTEN_AFTER
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.operations import approving
from kronos_nova.operations import switching
from kronos_nova.policies import windows

OVERDUE_INTERVALS = 3
"""Number of evaluation intervals without an evaluation after which the status reports an aggregate
as overdue. A plan that has waited for approval for the same time is reported as a warning if the
imbalance is large (more than :data:`FAR_ABOVE` times the threshold). Raised, a stopped engine and a
missing approval are reported later; lowered, a single slow evaluation is reported. Not measured."""

FAR_ABOVE = 2.0
"""Ratio of imbalance to threshold above which a plan that has waited long for approval causes a
warning. At a lower ratio, the status reports the plan as a notice only. Raised, fewer plans that
wait cause warnings; lowered, every plan that has waited long causes a warning. Chosen as in the
health score, in which an imbalance of twice the threshold takes all points for imbalance."""

LEVEL_OFF = 'the level is off: nothing is planned'
"""Reason that is shown for an aggregate with the level ``off``. The reason of its last evaluation
would be out of date."""

MOST_PARSED = 100
"""Maximum number of parsed reports of evaluations that are kept in memory. Raised, a process takes
more memory, half a MiB for a report with 3,000 servers; lowered, the reports of a large cloud are
parsed again for each request. Chosen as the number of aggregates of a large cloud."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The state of Kronos. ``problems`` are sorted, the worst first. ``duration_error`` is the
    median of the relative errors of predicted durations of moves (0.2 is 20 %)."""

    at: datetime.datetime
    database_revision: str | None
    aggregates: list[status.Aggregate]
    workers: list[status.Worker]
    drains: list[status.DrainState]
    maintenance: status.MaintenanceState | None
    quarantined: int
    duration_error: float | None
    problems: list[status.Problem]
    pauses: list[contract_automation.Pause]

    @property
    def severity(self) -> str | None:
        """Return the severity of the worst problem; None if there is no problem."""
        return self.problems[0].severity if self.problems else None


class Observer:
    """A reader of the overview from the control database and nova.conf."""

    def __init__(self, conf: cfg.ConfigOpts, database: Database,
                 utcnow: Callable[[], datetime.datetime]):
        self.conf = conf
        self.database = database
        self.utcnow = utcnow
        self.journal = Journal(database, 'observer')
        self.cycles = cycles.Cycles(database)

    def read(self, last: Sequence[models.CycleRow]) -> Overview:
        """Read the whole overview.

        :param last: rows of the last evaluation of each aggregate
        :raises ConfigurationError: nova.conf names a level or a window that does not exist
        """
        now = self.utcnow()
        switches = db_switches.SwitchBoard(self.database).read()
        drained, workers = self.drains(now), self._workers(now)
        aggregates = self._aggregates(last, switches, drained, now)
        intended = {name: report.intended for name, report in reports(last).items()}
        return Overview(
            at=now, database_revision=migrate.current(self.database.engine, migrate.CONTROL),
            aggregates=aggregates, workers=workers, drains=drained,
            maintenance=self._maintenance(),
            pauses=[contract_automation.Pause.made_from(each) for each in switches.all_pauses()],
            quarantined=len(cooldowns.Cooldowns(self.database).quarantines(now)),
            duration_error=progress.error(self.journal.predictions()),
            problems=sorted(self._problems(aggregates, intended, workers, drained, switches, now),
                            key=lambda each: status.SEVERITIES.index(each.severity)))

    def aggregates(self, last: Sequence[models.CycleRow], drained: Sequence[status.DrainState],
                   now: datetime.datetime) -> list[status.Aggregate]:
        """Return only the aggregates of the overview. The other data of the overview is not read.

        :param last: rows of the last evaluation of each aggregate
        :param drained: the result of :meth:`drains`
        :raises ConfigurationError: nova.conf names a level or a window that does not exist
        """
        return self._aggregates(last, db_switches.SwitchBoard(self.database).read(), drained, now)

    def _aggregates(self, last: Sequence[models.CycleRow], switches: automation.Switches,
                    drained: Sequence[status.DrainState],
                    now: datetime.datetime) -> list[status.Aggregate]:
        rows = {row.aggregate: row for row in last}
        observed = functools.cache(self.journal.durations)
        open_plans = {plan.aggregate: self._open_plan(approving.with_pause(plan, switches),
                                                      observed, now)
                      for plan in self.journal.open_plans()}
        busy = draining(drained)
        return [self._aggregate(name, rows.get(name), switches, open_plans.get(name),
                                name in busy, now)
                for name in aggregates.aggregates_in_scope(self.conf)]

    def _aggregate(self, name: str, last: models.CycleRow | None, switches: automation.Switches,
                   plan: status.OpenPlan | None, is_draining: bool,
                   now: datetime.datetime) -> status.Aggregate:
        defaults = levels.defaults(self.conf)
        level = switches.level(name, defaults)
        own = switching.own_level(switches, name, level)
        report = report_of(last)
        # An aggregate with the level off is evaluated while it has drains, and its last evaluation
        # is then up to date.
        is_off = level == automation.OFF and not (
            is_draining and last is not None and last.outcome == plans.DRAINING)
        return status.Aggregate(
            name=name, level=level, paused=switches.paused_by(name),
            repairs=switches.level(name, defaults, automation.REPAIR),
            set_by=None if own is None else own.set_by,
            evaluated_at=None if last is None else last.finished_at,
            outcome=None if last is None else last.outcome,
            reason=LEVEL_OFF if is_off else reason(report),
            next_at=None if is_off else self._next(last), plan=plan,
            window_opens_at=self._opens_at(name, now),
            policies=[_policy(each) for each in (report.policies if report else ())],
            warnings=list(report.warnings) if report else [],
            domains=dict(report.domains) if report else {},
            losses=[_losses(each) for each in (report.losses if report else ())])

    def _next(self, last: models.CycleRow | None) -> datetime.datetime | None:
        if last is None:
            return None
        # The start is set back if the next evaluation has to begin at once.
        due = last.started_at + _seconds(self.conf.kronos.evaluation_interval)
        return max(each for each in (due, last.finished_at, last.not_before) if each is not None)

    def _opens_at(self, name: str, now: datetime.datetime) -> datetime.datetime | None:
        known = windows.parse(self.conf.kronos.maintenance_window)
        moment = now.timestamp()
        if known.is_open(name, moment):
            return None
        return datetime.datetime.fromtimestamp(known.opens_at(name, moment), datetime.UTC)

    def _open_plan(self, plan: plans.PlanRecord, observed: progress.Observed,
                   now: datetime.datetime) -> status.OpenPlan:
        options = ExecutorOptions.from_conf(self.conf)
        done = self.journal.moves(plan.uuid)
        planned = plans.AggregateReport.from_json(plan.report).moves if plan.report else ()
        return status.OpenPlan(
            uuid=plan.uuid, state=plan.state, purpose=plan.purpose, created_at=plan.created_at,
            expires_at=plan.expires_at, approved_by=plan.approved_by,
            moves=len(done) or len(planned), waits_for=plan.detail,
            states=dict(sorted(collections.Counter(move.state for move in done).items())),
            remaining_seconds=progress.remaining_seconds(
                [move for move in done if move.state not in moves.TERMINAL] or planned,
                observed, options.caps, now,
                between=self.conf.kronos_executor.poll_interval))

    def _workers(self, now: datetime.datetime) -> list[status.Worker]:
        dead_before = now - _seconds(self.conf.kronos_executor.worker_timeout)
        return [status.Worker(name=name, role=role, heard_at=heard_at,
                              # A report far in the future comes from a wrong clock, so such a
                              # worker does not count as alive.
                              is_alive=dead_before <= heard_at <= now + (now - dead_before))
                for name, role, heard_at in self.journal.workers(now - FORGOTTEN_AFTER)]

    def drains(self, now: datetime.datetime) -> list[status.DrainState]:
        """Return the drains in progress, and the drains whose host waits to be released."""
        found = Drains(self.database).in_states(
            (*drains.ACTIVE, drains.EMPTY, drains.OVERDUE, drains.RELEASING))
        leaving, observed = collections.defaultdict(list), functools.cache(self.journal.durations)
        if any(each.state in drains.ACTIVE for each in found):
            for move in self.journal.moves(states=(moves.PLANNED, *moves.IN_FLIGHT)):
                leaving[move.source].append(move)
        return [status.DrainState(
            host=each.host, aggregate=each.aggregate, state=each.state, left=each.left,
            requested_by=each.requested_by, blocked=len(each.blocked),
            remaining_seconds=self._remaining(leaving.get(each.host), observed, now),
            waits_for=each.waits_for, waits_in_vain=each.waits_in_vain)
            for each in found]

    def _remaining(self, waiting: Sequence[moves.MoveRecord] | None,
                   observed: progress.Observed, now: datetime.datetime) -> float | None:
        if not waiting:
            return None
        return progress.remaining_seconds(
            waiting, observed, ExecutorOptions.from_conf(self.conf).caps, now,
            between=self.conf.kronos_executor.poll_interval)

    def _maintenance(self) -> status.MaintenanceState | None:
        found = Maintenances(self.database).current()
        return None if found is None else status.MaintenanceState(
            state=found.state, requested_by=found.requested_by, hosts=[
                status.MaintainedHost(host=host, state=state)
                for host, state in found.hosts.items()])

    # -- problems

    def _problems(self, aggregates: Sequence[status.Aggregate], intended: Mapping[str, int],
                  workers: Sequence[status.Worker], drained: Sequence[status.DrainState],
                  switches: automation.Switches,
                  now: datetime.datetime) -> Iterator[status.Problem]:
        yield from self._silence(workers)
        yield from self._clocks(now)
        yield from map(_pause, switches.all_pauses())
        yield from self._pending_stops()
        busy = draining(drained)
        for found in drained:
            if found.state in (drains.BLOCKED, drains.OVERDUE):
                said = '' if found.left is None else (
                    f': {plural.count(found.left, "server")} left, {found.blocked} blocked')
                yield status.Problem(
                    severity=status.WARNING,
                    what=f'The drain of {found.host} is {found.state}{said}.',
                    remedy=f'"host status {found.host}" names them, "host release" ends it.')
            if found.waits_in_vain:
                yield status.Problem(
                    severity=status.WARNING,
                    what=f'The drain of {found.host} waits for {found.waits_for}.',
                    remedy=f'Until it ends, aggregate {found.aggregate} is not balanced.')
        for aggregate in aggregates:
            is_on = aggregate.level != automation.OFF
            if is_on:
                yield from self._of_aggregate(aggregate, now)
            # Drains are planned at the level "off" too.
            if is_on or (aggregate.outcome in (plans.DRAINING, plans.FAILED)
                         and aggregate.name in busy):
                for warning in aggregate.warnings[intended.get(aggregate.name, 0):]:
                    yield status.Problem(
                        severity=status.WARNING, what=f'{aggregate.name}: {warning}',
                        remedy='See "Troubleshooting" in the documentation.')

    def _clocks(self, now: datetime.datetime) -> Iterator[status.Problem]:
        since = now - _seconds(self.conf.kronos_executor.worker_timeout)
        for name, skew in self.journal.skewed_workers(since, shared_clock.MOST_SKEW_SECONDS):
            where = 'ahead of' if skew > 0 else 'behind'
            yield status.Problem(
                severity=status.CRITICAL,
                what=f'The clock of {name} is {abs(skew):.0f} s {where} that of the control '
                     'database: that process plans nothing and adopts no moves.',
                remedy='Synchronise the clock of that host (chrony, ntpd).')

    def _waiting_plan(self, aggregate: status.Aggregate,
                      now: datetime.datetime) -> Iterator[status.Problem]:
        """Yield a problem if the plan of an aggregate waits for approval.

        The severity of the problem is WARNING if the plan has waited long and an imbalance of the
        aggregate is far above the threshold. Otherwise the severity is NOTICE.
        """
        plan = aggregate.plan
        if plan is None or plan.state != plans.PROPOSED:
            return
        above = [(each.name, each.imbalance, each.threshold) for each in aggregate.policies
                 if each.imbalance is not None and each.imbalance > each.threshold]
        patience = _seconds(OVERDUE_INTERVALS * self.conf.kronos.evaluation_interval)
        is_urgent = now - plan.created_at > patience and any(
            imbalance > FAR_ABOVE * threshold for _name, imbalance, threshold in above)
        figures = '; '.join(f'{name}: imbalance {imbalance:.3f}, threshold {threshold:.3f}'
                            for name, imbalance, threshold in above)
        yield status.Problem(
            severity=status.WARNING if is_urgent else status.NOTICE, since=plan.created_at,
            what=f'{aggregate.name}: plan {plan.uuid} waits for approval'
                 f'{f" ({figures})" if figures else ""}.',
            remedy='"plan approve" or "plan reject" decides; it expires by itself.')

    def _pending_stops(self) -> Iterator[status.Problem]:
        stops = pending_stops.for_conf(self.conf)
        written = stopping.Stopping(self.database, 'status')
        for stop in stops.read().values():
            # On a host without a worker, nothing removes the file once the stop is in the database.
            if written.knows(stop.switch):
                continue
            yield status.Problem(
                severity=status.CRITICAL, since=stop.switch.set_at,
                what=f'{stop.sentence}. It is in force on this host by the file {stops.path}; the '
                     'control database does not have it yet.',
                remedy='A worker of this host writes it into the database as soon as that can be '
                       'written. "kronos-manage resume" takes it back.')

    def _silence(self, workers: Sequence[status.Worker]) -> Iterator[status.Problem]:
        alive = {worker.role for worker in workers if worker.is_alive}
        is_apart = self.conf.kronos.run_in == 'daemons'
        if 'executor' not in alive:
            yield status.Problem(
                severity=status.CRITICAL, what='No process that carries out moves is alive.',
                remedy='Check that kronos-executor runs, and its log.' if is_apart else
                'Check that nova-conductor runs with "driver = kronos", and its log.')
        if is_apart and 'engine' not in alive:
            yield status.Problem(severity=status.CRITICAL, what='No kronos-engine is alive.',
                                 remedy='Check that it runs, and its log.')
        if not is_apart and 'engine' in alive:
            yield status.Problem(
                severity=status.WARNING,
                what='A kronos-engine is alive, and nova-conductor plans too: [kronos] run_in '
                     'differs between their files.',
                remedy='Stop kronos-engine, or set run_in to "daemons" in the nova.conf of every '
                       'conductor and restart those.')

    def _of_aggregate(self, aggregate: status.Aggregate,
                      now: datetime.datetime) -> Iterator[status.Problem]:
        name = aggregate.name
        if self._is_overdue(aggregate, now):
            yield status.Problem(
                severity=status.CRITICAL,
                what=f'{name} is not evaluated any more.' if aggregate.evaluated_at
                else f'{name} was never evaluated.',
                remedy='The log of the process that plans says why; "kronos-test-config" looks at '
                       'what it needs.')
        yield from self._waiting_plan(aggregate, now)
        for policy in aggregate.policies:
            if policy.imbalance is None:
                yield status.Problem(
                    severity=status.WARNING,
                    what=f'{name}: policy {policy.name} has no data: {policy.detail}',
                    remedy='"kronos-test-config" shows what its queries answer.')
        for each in aggregate.losses:
            yield from _lost(name, each)

    def _is_overdue(self, aggregate: status.Aggregate, now: datetime.datetime) -> bool:
        allowed = _seconds(OVERDUE_INTERVALS * self.conf.kronos.evaluation_interval)
        return aggregate.evaluated_at is None or now - aggregate.evaluated_at > allowed


def draining(drained: Iterable[status.DrainState]) -> set[str]:
    """Return the names of the aggregates with a drain in progress. These aggregates are evaluated
    at the level "off" too."""
    return {each.aggregate for each in drained if each.state in drains.ACTIVE}


def _lost(name: str, losses: status.Losses) -> Iterator[status.Problem]:
    """Yield a problem if an aggregate has hosts, or failure domains of one level, after whose loss
    some servers could not restart elsewhere."""
    if not losses.does_not_fit:
        return
    many = 'hosts' if losses.level is None else f'domains of level {losses.level}'
    total = losses.fits + losses.does_not_fit + losses.not_found + losses.not_judged
    yield status.Problem(
        severity=status.NOTICE,
        what=f'{name}: {losses.does_not_fit} of {total} {many} cannot be lost with all servers '
             f'restarting on hosts evaluated with it; worst is {losses.worst}: {losses.why}.',
        remedy='"failover" judges the whole cloud, and names the servers of each host; free room, '
               'or add a host.')


def _losses(found: plans.LossReport) -> status.Losses:
    return status.Losses.made_from(
        found, level=found.level or None,
        judged_at=datetime.datetime.fromtimestamp(found.judged_at, datetime.UTC))


def _pause(switch: automation.Switch) -> status.Problem:
    whose = '' if switch.aggregate == automation.EVERY else f' for aggregate {switch.aggregate}'
    what = 'Stopped' if switch.value == 'stop' else 'Paused'
    return status.Problem(
        severity=status.NOTICE, since=switch.set_at,
        what=f'{what}{whose} by {switch.set_by}{switch.why}: no move is started.',
        remedy='"resume" ends it.')


def reports(last: Iterable[models.CycleRow]) -> dict[str, plans.AggregateReport]:
    """Return {aggregate: AggregateReport of its last evaluation}. Aggregates without a report are
    left out."""
    return {row.aggregate: _parsed(row.report)[0] for row in last if row.report}


def hosts_measured(last: Iterable[models.CycleRow]) -> dict[str, dict[str, int]]:
    """Return {aggregate: counts from the aggregate's last evaluation}. Aggregates without a report
    are left out.

    The counts are a dict with five keys: ``hosts`` (number of measured hosts), ``hot_hosts``
    (number of hot hosts), ``broken_groups`` (number of violated server groups), ``unbelieved``
    (number of hosts with a score that failed a check) and ``immovable`` (number of servers that
    Nova cannot migrate live).
    """
    return {row.aggregate: _parsed(row.report)[1] for row in last if row.report}


@functools.lru_cache(maxsize=MOST_PARSED)
def _parsed(text: str) -> tuple[plans.AggregateReport, dict[str, int]]:
    """Return (AggregateReport, counts) from the JSON of a report; for the counts, see
    :func:`hosts_measured`. The result is cached, because a report is large and does not change."""
    return plans.AggregateReport.from_json(text), plans.counts_in(text)


def report_of(last: models.CycleRow | None) -> plans.AggregateReport | None:
    """Return the report of an aggregate's last evaluation; None before the first evaluation.

    If the process of the last evaluation died, the result is the report of the evaluation before,
    with the outcome ``failed`` and a warning.
    """
    if last is None or not (last.report or last.outcome == plans.FAILED):
        return None
    report = (_parsed(last.report)[0] if last.report else
              plans.AggregateReport(name=last.aggregate, outcome=plans.FAILED, mode='', planner=''))
    if last.outcome != plans.FAILED or (report.outcome == plans.FAILED and report.warnings):
        return report
    return dataclasses.replace(report, outcome=plans.FAILED, warnings=(
        'its planning process ended in the middle of it; the log of the process that plans says '
        'why',))


def reason(report: plans.AggregateReport | None) -> str:
    """Return a text that explains the outcome of an evaluation.

    :param report: report of the evaluation; None if there was no evaluation
    """
    if report is None:
        return 'not evaluated yet'
    return _REASONS[report.outcome](report)


def _balanced(_report: plans.AggregateReport) -> str:
    return 'every policy is at or below its threshold, and nothing is to be repaired'


def _planned(report: plans.AggregateReport) -> str:
    planned = f'{plural.count(len(report.moves), "move")} planned'
    return f'{planned}. {" ".join(report.notes)}' if report.notes else planned


def _first_warning(report: plans.AggregateReport) -> str:
    return next(iter(report.warnings), 'it is left alone for a while')


def _all_warnings(report: plans.AggregateReport) -> str:
    return '; '.join(report.warnings)


def _no_data(report: plans.AggregateReport) -> str:
    return '; '.join(f'{policy.name}: {policy.detail}' for policy in report.policies
                     if policy.state != 'ok') or 'nothing is known of it'


def _no_move(report: plans.AggregateReport) -> str:
    counts = ', '.join(f'{count} {word}' for word, count in stayed(report))
    return ' '.join([f'no move is permitted and of use; servers that stay: {counts or "none"}',
                     *report.notes])


_REASONS = collections.defaultdict(lambda: lambda report: report.outcome, {
    plans.BALANCED: _balanced, plans.DRAINING: _all_warnings, plans.PLANNED: _planned,
    plans.COOLING: _first_warning, plans.NO_DATA: _no_data, plans.NO_MOVE: _no_move,
    plans.FAILED: _first_warning})


def stayed(report: plans.AggregateReport) -> list[tuple[str, int]]:
    """Return [(reason, number of servers that stayed for this reason)], the most frequent reason
    first."""
    counts = [(skip.reason, skip.count or 0) for skip in report.not_moved]
    return sorted(counts, key=lambda pair: (-pair[1], pair[0]))


def _policy(found: plans.PolicyReport) -> status.Policy:
    return status.Policy(name=found.name, imbalance=found.imbalance_before,
                         threshold=found.threshold, detail=found.detail,
                         forecast=_forecast(found.forecast))


def _forecast(found: plans.ForecastReport | None) -> str:
    if found is None:
        return ''
    if found.state != plans.FORECAST_USED:
        return f'not used: {found.detail}'
    return (f'imbalance up to {found.imbalance:.3f}; off by {found.error:.3f} during the last day, '
            f'the present by {found.present_error:.3f}')


def _seconds(value: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=value)
