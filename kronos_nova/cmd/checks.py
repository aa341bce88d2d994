"""The checks of ``kronos-test-config``. All checks run, even if one of them fails."""

import dataclasses
import datetime
import os
import ssl
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import kombu
import kombu.exceptions
import oslo_messaging
from oslo_config import cfg
from oslo_db import exception as db_exception

from kronos_nova import exception
from kronos_nova import plural
from kronos_nova import policies
from kronos_nova.cmd import api_checks
from kronos_nova.cmd import exporter_checks
from kronos_nova.cmd import library_options
from kronos_nova.cmd import policy_table
from kronos_nova.cmd import query_checks
from kronos_nova.cmd import roles
from kronos_nova.cmd import rule_table
from kronos_nova.conf import invalid_values
from kronos_nova.conf import unknown_options
from kronos_nova.cycle import aggregates
from kronos_nova.cycle import options as engine_options
from kronos_nova.cycle import steps
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.db.cycles import Cycles
from kronos_nova.metrics import prometheus
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.operations import overview
from kronos_nova.placement.client import PlacementClient
from kronos_nova.planners import base
from kronos_nova.policies import PolicySet
from kronos_nova.policies import windows as engine_windows
from kronos_nova.room import shapes

OK, NOT_CHECKED, WARNING, FAILED = 'ok', 'not checked', 'warning', 'failed'
_WORST_LAST = (OK, NOT_CHECKED, WARNING, FAILED)

RPC_URL = '[DEFAULT] transport_url'
NOTIFICATION_URL = '[oslo_messaging_notifications] transport_url'

_BROKER_SECONDS = 5
"""Maximum seconds for which ``kronos-test-config`` waits until a message broker accepts a
connection. Raised, the check of a broker that is down takes longer; lowered, a slow broker counts
as down. Not measured."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``state`` is ``ok``, ``not checked``, ``warning`` or ``failed``."""

    check: str
    state: str
    detail: str


class CheckWarning(Exception):  # noqa: N818 - no error
    """The exception that a check raises to pass with a warning. Its message is the warning.

    :param value: result of the check, for other checks that need it
    """

    def __init__(self, detail: str, value: Any = None):
        super().__init__(detail)
        self.value = value


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The result of all checks of a host.

    role : name of the role for which the host was checked
    """

    role: str
    findings: tuple[Finding, ...]
    queries: tuple[query_checks.QueryFinding, ...]
    policies: tuple[policy_table.PolicyRow, ...] = ()
    rules: tuple[rule_table.RuleRow, ...] = ()

    @property
    def state(self) -> str:
        """Return the worst state of all findings; ``ok`` if there are none. Findings with the state
        "not checked" do not count. These checks were not made, because the host does not need the
        check or because an earlier check failed."""
        states = [*(row.state for row in self.findings), *(row.state for row in self.queries)]
        found = [state for state in states if state != NOT_CHECKED]
        return max(found, key=_WORST_LAST.index, default=OK)


class _Checks:
    """A runner of checks that collects their findings.

    :param skips: {name of a check: reason for skipping it}
    """

    def __init__(self, skips: Mapping[str, str]):
        self.rows: list[Finding] = []
        self._skips = skips

    def check(self, name: str, function: Callable[[], tuple[str, Any]],
              *needed: tuple[str, Any]) -> Any:
        """Run a check and record its finding. ``function`` returns (text of the finding, value that
        other checks need).

        :param needed: pairs (text that names an input, value) for the inputs of this check, such as
            results of earlier checks. If a value is None, the check is not made
        :returns: the value that ``function`` returned; None if the check failed or was not made
        """
        missing = [what for what, value in needed if value is None]
        if name in self._skips or missing:
            why = self._skips.get(name) or f'{missing[0]} could not be read, see above'
            self._add(name, NOT_CHECKED, why)
            return None
        try:
            detail, value = function()
        except CheckWarning as warning:
            self._add(name, WARNING, str(warning))
            return warning.value
        except Exception as error:  # libraries raise errors of many kinds
            self._add(name, FAILED, sentence(error))
        else:
            self._add(name, OK, detail)
            return value
        return None

    def _add(self, name: str, state: str, detail: str) -> None:
        lines = [' '.join(line.split()) for line in detail.splitlines()]
        self.rows.append(Finding(name, state, '\n'.join(filter(None, lines))))


def examine(conf: cfg.ConfigOpts, role: roles.Role, reach: 'Reach') -> Report:
    """Run all checks that a host of this role needs.

    :param reach: access to Nova and placement for the role
    """
    checks = _Checks(api_checks.skips(conf) | role.skips)
    check = checks.check
    check('options', lambda: _options(conf, role))
    check('typos', lambda: _typos(conf, role))
    check('plugin', lambda: _plugin(role))
    windows = check('windows', lambda: _windows(conf, time.time()))
    policy_set = check('policies', lambda: _policies(conf))
    client = check('prometheus', lambda: _prometheus(conf), _readable(conf, prometheus.GROUP))
    check('placement', lambda: _placement(reach))
    snapshot = check('nova', lambda: _nova(reach))
    check('scope', lambda: _scope(conf, snapshot), ('Nova', snapshot))
    check('names', lambda: _names(conf, snapshot, windows), ('Nova', snapshot),
          ('maintenance_window', windows))
    database = check('database', lambda: _database(conf))
    check('noise', lambda: _noise(conf, policy_set, database),
          ('The control database', database), ('The policies', policy_set))
    answers = client and query_checks.Answers(client)
    check('loads', lambda: _loads(conf, policy_set, answers, snapshot), ('Nova', snapshot),
          ('The policies', policy_set), ('Prometheus', client))
    check('exporters', lambda: _exporters(answers, snapshot), ('Nova', snapshot),
          ('Prometheus', client))
    rules = check('rules', lambda: _rules(conf, policy_set, snapshot), ('Nova', snapshot),
                  ('The policies', policy_set))
    check('buffers', lambda: _buffers(conf, policy_set, reach), ('Nova', snapshot),
          ('The policies', policy_set))
    check('claims', lambda: _claims(conf))
    check('broker', lambda: _broker(conf))
    check('api', lambda: api_checks.check(conf))
    queries = _queries(conf, policy_set, answers, snapshot)
    rows = (policy_table.rows(answers, policy_set.active, snapshot, queries, time.time())
            if queries and snapshot is not None else ())
    return Report(role.name, tuple(checks.rows), queries, tuple(rows), tuple(rules or ()))


def _queries(conf: cfg.ConfigOpts, policy_set: PolicySet | None,
             answers: query_checks.Answers | None, snapshot: Snapshot | None
             ) -> tuple[query_checks.QueryFinding, ...]:
    if policy_set is None or answers is None:
        return ()
    try:
        options = engine_options.from_conf(conf)
    except (exception.ConfigurationError, cfg.Error, ValueError):
        return ()   # reported by another check
    return tuple(query_checks.examine(answers, policy_set, snapshot, options, time.time()))


def sentence(error: Exception) -> str:
    """Return the message of an error. If the error comes from another library, its message is
    preceded by the name of the error's class in most cases."""
    if isinstance(error, exception.KronosException | cfg.Error | ValueError):
        return str(error)
    if isinstance(error, db_exception.DBError):
        return db_engine.first_line(error)
    return f'{error.__class__.__name__}: {error}'


class Reach:
    """Access to Nova and placement. The access is prepared when it is first used. If that fails,
    each later use has the same error, because Nova's configuration can be read only once."""

    def __init__(self, role: roles.Role):
        self._role = role
        self._found: roles.Access | None = None
        self._error: Exception | None = None

    def read(self) -> Snapshot:
        return self._parts()[0]()

    def placement(self) -> PlacementClient:
        return self._parts()[1]()

    def flavors(self) -> tuple[Shape, ...]:
        return self._parts()[2]()

    def _parts(self) -> roles.Access:
        if self._error is not None:
            raise self._error
        if self._found is None:
            try:
                if self._role.connect is None:
                    raise TypeError(f'a {self._role.name} host has no access to Nova')
                self._found = self._role.connect()
            except Exception as error:
                self._error = error
                raise
        return self._found


def _options(conf: cfg.ConfigOpts, role: roles.Role) -> tuple[str, None]:
    wrong = library_options.invalid_values_of(conf)
    if wrong:
        raise ValueError(invalid_values.described(wrong))
    if not role.plans:
        return f'run_in = {conf.kronos.run_in}', None
    if not (conf.kronos.aggregates or conf.kronos.include_unassigned_hosts):
        raise exception.ConfigurationError(
            what='[kronos]', problem='no aggregate is in scope',
            remedy='Set aggregates, or include_unassigned_hosts = true.')
    base.check(conf.kronos.spread_planner, conf.kronos.pack_planner)
    return f'automation = {conf.kronos.automation}', None


def _typos(conf: cfg.ConfigOpts, role: roles.Role) -> tuple[str, None]:
    problems = unknown_options.unknown_keys(conf)
    if role.name != roles.DAEMON and unknown_options.lacks_driver(conf):
        problems.append('Nova does not load Kronos, because "kronos" is not among the notification '
                        'drivers: add the line "driver = kronos" to '
                        '[oslo_messaging_notifications], in which each driver has its own line')
    if problems:
        raise exception.ConfigurationError(
            what='configuration files', problem='; '.join(problems),
            remedy='Correct the files. oslo.config ignores options that it does not know.')
    return f'{plural.count(len(unknown_options.files(conf)), "file")}, every key is known', None


def _plugin(role: roles.Role) -> tuple[str, None]:
    problems = roles.fits(role.managers)
    if problems:
        raise exception.ConfigurationError(
            what='Kronos does not fit this Nova', problem='; '.join(problems),
            remedy='Until this is corrected, the services run as plain Nova.')
    return f'it fits Nova\'s {" and ".join(role.managers)}', None


def _windows(conf: cfg.ConfigOpts, now: float) -> tuple[str, tuple[engine_windows.Window, ...]]:
    found = engine_windows.parse(conf.kronos.maintenance_window).windows
    changed = [sentence for window in found for sentence in _clock_changes(window, now)]
    if changed:
        raise CheckWarning(
            '; '.join(changed) + '. To avoid this, let the window end before the hour of the clock '
            'change or begin after it, or give it the time zone UTC.', found)
    return plural.count(len(found), 'window'), found


def _clock_changes(window: engine_windows.Window, now: float) -> Iterator[str]:
    """Yield at most two sentences about a window and the changes between summer and winter time.
    One sentence lists the days on which the clock changes while the window is open. The other
    sentence lists the days on which the clock skips the time at which the window opens. On these
    days, the window opens later."""
    days = [_day(window, change) for change in window.clock_changes(now)]
    if days:
        yield (f'"{window.cron}" of {window.aggregate} lasts {window.minutes} minutes also while '
               f'the clock of {window.zone} is changed: {", ".join(days)}')
    late = [f'on {after.date()} it opens {_minutes(after - before)} minutes later by the clock'
            for before, after in map(window.clock_around, window.late_openings(now))]
    if late:
        yield (f'the clock of {window.zone} leaves out the time at which "{window.cron}" of '
               f'{window.aggregate} opens: {", ".join(late)}')


def _day(window: engine_windows.Window, change: datetime.datetime) -> str:
    """Return a text about a clock change while a window is open. The text has the date, and the
    number of minutes by which the window ends later or earlier on that day."""
    before, after = window.clock_around(change)
    return (f'on {after.date()} it ends {_minutes(abs(after - before))} minutes '
            f'{"later" if after > before else "earlier"} by the clock')


def _minutes(duration: datetime.timedelta) -> int:
    return round(duration.total_seconds() / 60)


def _names(conf: cfg.ConfigOpts, snapshot: Snapshot,
           windows: Iterable[engine_windows.Window]) -> tuple[str, None]:
    known = {each.name for each in snapshot.aggregates} | {UNASSIGNED}
    named = {'aggregate_automation': set(conf.kronos.aggregate_automation),
             'maintenance_window': {window.aggregate for window in windows}
             - {engine_windows.EVERY}}
    missing = [f'{option}, {name}' for option, names in named.items()
               for name in sorted(names - known)]
    if missing:
        raise _no_aggregate(missing)
    return 'every aggregate that is named exists', None


def _policies(conf: cfg.ConfigOpts) -> tuple[str, PolicySet]:
    found = policies.load(conf.kronos.policies_file)
    return (f'{len(found.active)} enabled of {len(found.policies)} in '
            f'{conf.kronos.policies_file}, mode {found.mode}'), found


def _readable(conf: cfg.ConfigOpts, group: str) -> tuple[str, str | None]:
    """Return a pair for the argument ``needed`` of a check: (``[group]``, ``group``) if all options
    of the group have valid values. Otherwise return (``[group]``, None), so that the check is not
    made."""
    is_wrong = any(each == group for each, _option in invalid_values.values(conf))
    return f'[{group}]', None if is_wrong else group


def _prometheus(conf: cfg.ConfigOpts) -> tuple[str, prometheus.PrometheusClient]:
    client = prometheus.from_conf(conf)
    client.instant('vector(1)')
    try:
        retention = client.runtime_info().get('storageRetention', 'not reported')
    except exception.MetricsError:  # Thanos, Mimir and others have no such page
        retention = 'not reported'
    return f'{conf.kronos_prometheus.url} answers; retention: {retention}', client


def _placement(reach: Reach) -> tuple[str, None]:
    client = reach.placement()
    return (f'microversion {client.negotiate()}, '
            f'{len(client.resource_classes())} resource classes'), None


def _nova(reach: Reach) -> tuple[str, Snapshot]:
    snapshot = reach.read()
    available = sum(host.service.is_available for host in snapshot.hosts)
    return (f'{plural.count(len(snapshot.hosts), "host")} with QEMU/KVM, {available} of them '
            f'available, {plural.count(len(snapshot.instances), "instance")}, '
            f'{plural.count(len(snapshot.aggregates), "aggregate")}, '
            f'{plural.count(len(snapshot.server_groups), "server group")}'), snapshot


def _scope(conf: cfg.ConfigOpts, snapshot: Snapshot) -> tuple[str, None]:
    counts: dict[str, int] = {}
    missing = []
    for name in aggregates.aggregates_in_scope(conf):
        try:
            counts[name] = len(snapshot.hosts_of(name))
        except KeyError:
            missing.append(f'aggregates, {name}')
    if missing:
        raise _no_aggregate(missing)
    small = [f'aggregate {name} has {plural.count(count, "host")}'
             for name, count in counts.items() if count < 2 and name != UNASSIGNED]
    if small:
        raise CheckWarning('; '.join(small) + '; with fewer than two hosts, there is nothing to '
                           'balance')
    return '; '.join(f'{"unassigned" if name == UNASSIGNED else name}: '
                     f'{plural.count(count, "host")}' for name, count in counts.items()), None


def _no_aggregate(places: list[str]) -> exception.ConfigurationError:
    """Return an error about names of aggregates that do not exist.

    :param places: for each name, a text with the option of ``[kronos]`` and the name
    """
    return exception.ConfigurationError(
        what='; '.join(f'[kronos] {place}' for place in places),
        problem='there is no aggregate of that name',
        remedy='Correct the name; "openstack aggregate list" shows the names.')


def _database(conf: cfg.ConfigOpts) -> tuple[str, db_engine.Database]:
    file = db_engine.control_url(conf).partition('sqlite:///')[2]
    if file and not os.path.exists(file):  # opening it would create it, with the wrong owner
        raise exception.ConfigurationError(
            what='The control database', problem=f'{file} does not exist',
            remedy='Run "kronos-manage db sync" as the user of nova-conductor.')
    engine = db_engine.control_engine(conf)
    try:
        migrate.check(engine, migrate.CONTROL)
    except (db_exception.DBError, ValueError) as error:
        raise exception.ConfigurationError(
            what='[kronos_database] connection', problem=db_engine.first_line(error),
            remedy='Compare user, password, host and database of the option with those that were '
                   'created for Kronos') from error
    return ('the control database is at the revision that this code needs',
            db_engine.Database(engine))


def _noise(conf: cfg.ConfigOpts, policy_set: PolicySet,
           database: db_engine.Database) -> tuple[str, None]:
    """Check that the threshold of each policy is above its noise. The noise is the imbalance that
    remains by chance among hosts with equal expected loads. The last evaluations of the aggregates
    in scope have computed the noise. The thresholds are those of the policies file, which may have
    changed since."""
    in_scope = set(aggregates.aggregates_in_scope(conf))
    thresholds = {policy.name: policy.threshold for policy in policy_set.active}
    last = [row for row in Cycles(database).last() if row.aggregate in in_scope]
    found = [(name, policy.name, thresholds[policy.name], policy.noise)
             for name, report in overview.reports(last).items() for policy in report.policies
             if policy.noise is not None and policy.name in thresholds]
    below = [f'{policy} in {name}: the threshold {threshold:g} is below what noise makes there, '
             f'{noise:.3f}; raise it'
             for name, policy, threshold, noise in found if threshold < noise]
    if below:
        raise CheckWarning('; '.join(below))
    if not found:
        return 'not known yet: it takes some evaluations with restraint', None
    return f'{plural.count(len(found), "threshold")} above what noise makes', None


def _loads(conf: cfg.ConfigOpts, policy_set: PolicySet, answers: query_checks.Answers,
           snapshot: Snapshot) -> tuple[str, None]:
    """Check that the answers to all queries agree with Nova and with each other. An evaluation
    makes the same checks."""
    planner_ports = PlannerPorts(source=answers, clock=time.monotonic, now=time.time())
    found = list(steps.measured(snapshot, policy_set, engine_options.from_conf(conf),
                                planner_ports))
    void = [f'{policy} in {name}: {why}' for name, load in found
            for policy, why in sorted(load.no_data.items())]
    if void:
        raise ValueError('; '.join(void))
    doubted = [f'{each.policy} in {name}: {each.host} is not believed: {each.reason}'
               for name, load in found for each in load.unbelieved]
    doubted += [f'{doubt} ({name})' for name, load in found for doubt in load.doubts]
    if doubted:
        raise CheckWarning('; '.join(doubted))
    return f'answers for {plural.count(len(found), "aggregate")} fit Nova and each other', None


def _exporters(answers: query_checks.Answers, snapshot: Snapshot) -> tuple[str, None]:
    """Check the series of the exporters, and warn if they show that an exporter leaves out data."""
    wrong = list(exporter_checks.problems(answers.instant, snapshot))
    if wrong:
        raise CheckWarning('; '.join(wrong))
    return 'none says that it leaves something out', None


def _rules(conf: cfg.ConfigOpts, policy_set: PolicySet,
           snapshot: Snapshot) -> tuple[str, list[rule_table.RuleRow]]:
    """Check the rules in the policies file, and check that no host is in several failure domains of
    one level."""
    levels = conf.kronos.failure_domain_key
    found = list(rule_table.rows(policy_set, snapshot, levels))
    wrong = [*rule_table.problems(found), *rule_table.contradictory_domains(snapshot, levels)]
    if wrong:
        raise CheckWarning('; '.join(wrong), found)
    return rule_table.summary(found), found


def _buffers(conf: cfg.ConfigOpts, policy_set: PolicySet, reach: Reach) -> tuple[str, None]:
    """Check the buffers of the policies file. The check warns about a buffer whose aggregate Kronos
    does not balance, or whose flavor does not exist in Nova."""
    in_scope = set(aggregates.aggregates_in_scope(conf))
    wrong = [f'buffer {each.name}: Kronos does not look after aggregate {each.aggregate}; nothing '
             'is kept' for each in policy_set.buffers if each.aggregate not in in_scope]
    named = [each for each in policy_set.buffers if not shapes.TEXT.fullmatch(each.flavor)]
    known = {each.name for each in reach.flavors()} if named else set()
    wrong += [f'buffer {each.name}: Nova has no flavor {each.flavor}; nothing is kept'
              for each in named if each.flavor not in known]
    if wrong:
        raise CheckWarning('; '.join(wrong))
    return plural.count(len(policy_set.buffers), 'buffer'), None


def _broker(conf: cfg.ConfigOpts) -> tuple[str, None]:
    """Check every broker of the two options ``transport_url`` separately. oslo.messaging itself
    would hide a broker that is down, because it continues with the next broker."""
    rpc = _transport_url(conf, RPC_URL, oslo_messaging.get_rpc_transport, lambda: None)
    notifications = _transport_url(conf, NOTIFICATION_URL,
                                   oslo_messaging.get_notification_transport,
                                   lambda: conf.oslo_messaging_notifications.transport_url)
    urls = {RPC_URL: rpc} if notifications == rpc else {RPC_URL: rpc,
                                                        NOTIFICATION_URL: notifications}
    doubts = [doubt for option, url in urls.items() for doubt in _doubts(conf, option, url)]
    if doubts:
        raise CheckWarning('; '.join(doubts))
    count = sum(len(url.hosts) for url in urls.values())
    return plural.count(count, 'broker', 'answer'), None


def _transport_url(conf: cfg.ConfigOpts, option: str, get_transport: Callable[..., object],
                   given: Callable[[], str | None]) -> oslo_messaging.TransportURL:
    """Return a TransportURL, with which oslo.messaging can make a transport.

    :param given: returns the value of the option; None for the value of ``[DEFAULT]``. Called after
        ``get_transport``, which registers the option
    :raises ConfigurationError: the services could not make the transport
    """
    try:
        get_transport(conf)
        return oslo_messaging.TransportURL.parse(conf, given())
    except ValueError as error:
        # The text of the error may have a part of the password.
        raise exception.ConfigurationError(
            what=option, problem='its port is no number, or its user or password has a character '
            'that has a meaning in URLs',
            remedy='Write such characters as %XX, for example / as %2F.') from error
    except oslo_messaging.MessagingException as error:
        raise exception.ConfigurationError(
            what=option, problem=f'cannot be used: {error}',
            remedy='Compare the option with that of the other services of Nova.') from error


def _doubts(conf: cfg.ConfigOpts, option: str, url: oslo_messaging.TransportURL) -> list[str]:
    """Return sentences about the brokers of a URL that do not answer, or that cannot be checked.

    :raises ConfigurationError: none of the brokers answers
    """
    if url.transport.partition('+')[0] not in ('rabbit', 'kombu'):
        return [f'{option} is of the kind {url.transport}, for which there is no check']
    wrong = [problem for host in url.hosts if (problem := _unreachable(conf, url, host))]
    if not url.hosts or len(wrong) == len(url.hosts):
        raise exception.ConfigurationError(
            what=option, problem='; '.join(wrong) or 'it names no host',
            remedy='Compare the option with that of the other services of Nova.')
    return wrong


def _unreachable(conf: cfg.ConfigOpts, url: oslo_messaging.TransportURL,
                 host: oslo_messaging.TransportHost) -> str | None:
    """Return the reason why a broker cannot be used; None if it can be used."""
    group = conf.oslo_messaging_rabbit
    connection = kombu.Connection(
        hostname=host.hostname, port=host.port or 5672, userid=host.username,
        password=host.password, virtual_host=url.virtual_host or '/',
        login_method=group.rabbit_login_method, ssl=_tls(group, url),
        connect_timeout=_BROKER_SECONDS)
    try:
        with connection:
            connection.connect()
    except (kombu.exceptions.KombuError, OSError, *connection.connection_errors,
            *connection.channel_errors) as error:
        return f'{host.hostname}:{host.port or 5672}: {error}'
    return None


def _tls(group: cfg.ConfigOpts.GroupAttr,
         url: oslo_messaging.TransportURL) -> dict[str, Any] | bool:
    """Return the argument ``ssl`` of a kombu connection, as oslo.messaging makes it from its
    options: false for a connection without TLS, else the files and checks of TLS."""
    files = {'keyfile': group.ssl_key_file, 'certfile': group.ssl_cert_file,
             'ca_certs': group.ssl_ca_file}
    found: dict[str, Any] = {name: path for name, path in files.items() if path}
    if group.ssl_ca_file:
        found['cert_reqs'] = ssl.CERT_REQUIRED
        found['server_hostname'] = url.hosts[0].hostname if len(url.hosts) == 1 else None
    return group.ssl and (found or True)


def _claims(conf: cfg.ConfigOpts) -> tuple[str, None]:
    """Check that the folder of the claims database of this host exists. The database itself does
    not have to exist, because nova-compute makes the database when it starts."""
    if conf.kronos_claims.store != 'sqlite':
        raise CheckWarning(f'[kronos_claims] store is "{conf.kronos_claims.store}", for which '
                           'there is no check: nova-compute uses it through nova-conductor')
    path = db_engine.state_file(conf, conf.kronos_claims.claim_db)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise exception.ConfigurationError(
            what='[kronos_claims] claim_db', problem=f'the directory {folder} does not exist',
            remedy='Correct claim_db. If claim_db is a relative path, check [DEFAULT] state_path '
                   'first: the path begins there, and state_path has to be the directory of '
                   'Nova\'s state.')
    return f'{path}{"" if os.path.exists(path) else " will be made by nova-compute"}', None
