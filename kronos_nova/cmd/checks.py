"""What ``kronos-test-config`` looks at. Everything is looked at, whatever was found before."""

import dataclasses
import os
import time
from collections.abc import Callable

import kombu
import kombu.exceptions
import openstack
import oslo_messaging
from keystoneauth1 import exceptions as keystone_exceptions
from oslo_config import cfg
from oslo_db import exception as db_exception

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cmd import query_checks
from kronos_nova.conf import strict
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.engine import options as engine_options
from kronos_nova.engine import windows as engine_windows
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.metrics import prometheus
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.placement.client import PlacementClient

OK, WARNING, FAILED = 'ok', 'warning', 'failed'
_WORST_LAST = (OK, WARNING, FAILED)

_EXPECTED = (exception.KronosException, cfg.Error, ValueError, db_exception.DBError,
             openstack.exceptions.SDKException, keystone_exceptions.ClientException)
_BROKER_SECONDS = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What came of one check; ``state`` is ok, warning or failed."""

    check: str
    state: str
    detail: str


class CheckWarning(Exception):  # noqa: N818 - no error
    """A check that passes, with something to know."""


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Finding, ...]
    queries: tuple[query_checks.QueryFinding, ...]

    @property
    def state(self) -> str:
        """The worst of all."""
        found = [row.state for row in (*self.findings, *self.queries)]
        return max(found, key=_WORST_LAST.index, default=OK)


def examine(conf) -> Report:
    """Check everything that ``conf`` names."""
    rows = []

    def check(name: str, function: Callable):
        """The function's second result, or None when it failed; its first is for people."""
        try:
            detail, value = function()
            rows.append(Finding(name, OK, detail))
            return value
        except CheckWarning as warning:
            rows.append(Finding(name, WARNING, str(warning)))
        except _EXPECTED as error:
            rows.append(Finding(name, FAILED, ' '.join(str(error).split())))
        return None

    check('options', lambda: _options(conf))
    check('typos', lambda: _typos(conf))
    check('windows', lambda: _windows(conf, time.time()))
    policy_set = check('policies', lambda: _policies(conf))
    client = check('prometheus', lambda: _prometheus(conf))
    check('placement', lambda: _placement(conf))
    snapshot = check('nova', lambda: _nova(conf))
    if snapshot is not None:
        check('scope', lambda: _scope(conf, snapshot))
        check('names', lambda: _names(conf, snapshot))
    check('database', lambda: _database(conf))
    check('broker', lambda: _broker(conf))
    queries = ()
    if policy_set is not None and client is not None:
        options = engine_options.from_conf(conf)
        queries = tuple(query_checks.examine(client, policy_set, snapshot, options, time.time()))
    return Report(tuple(rows), queries)


def _options(conf):
    """oslo.config looks at a value when it is read."""
    wrong = []
    for module in kronos_conf.GROUPS:
        group = module.GROUP.name
        for option in conf[group]:
            try:
                conf[group][option]
            except (cfg.Error, ValueError) as error:
                wrong.append(f'[{group}] {option}: {error}')
    if wrong:
        raise ValueError('; '.join(wrong))
    if not conf.kronos.aggregates and not conf.kronos.include_unassigned_hosts:
        raise exception.ConfigurationError(
            what='[kronos]', problem='no aggregate is in scope',
            remedy='Set aggregates, or include_unassigned_hosts = true.')
    return f'automation = {conf.kronos.automation}', None


def _typos(conf):
    problems = strict.unknown_keys(conf)
    if conf.kronos.run_in == 'conductor' and strict.lacks_driver(conf):
        problems.append('[oslo_messaging_notifications] driver: "kronos" is not among the drivers, '
                        'so Nova does not load Kronos')
    if problems:
        raise exception.ConfigurationError(
            what='configuration files', problem='; '.join(problems),
            remedy='Correct the names; oslo.config passes over what it does not know.')
    return f'{len(strict.files(conf))} files, every key is known', None


def _windows(conf, now):
    found = engine_windows.parse(conf.kronos.maintenance_window).windows
    for window in found:
        changes = list(window.clock_changes(now))
        if changes:
            raise exception.ConfigurationError(
                what='[kronos] maintenance_window', remedy='Let it end before, begin after, or '
                'give it the time zone UTC.',
                problem=f'"{window.cron}" of {window.aggregate} is open while clocks in '
                        f'{window.zone} are changed, next at {changes[0].isoformat()}')
    return f'{len(found)} windows', None


def _names(conf, snapshot):
    known = {each.name for each in snapshot.aggregates} | {UNASSIGNED}
    named = {'aggregate_automation': set(conf.kronos.aggregate_automation),
             'maintenance_window': {
                 window.aggregate
                 for window in engine_windows.parse(conf.kronos.maintenance_window).windows
                 } - {engine_windows.EVERY}}
    for option, names in named.items():
        if names - known:
            raise exception.ConfigurationError(
                what=f'[kronos] {option}, {min(names - known)}',
                problem='there is no such aggregate',
                remedy='Correct the name; "openstack aggregate list" has them.')
    return 'every aggregate that is named exists', None


def _policies(conf):
    found = policies.load(conf.kronos.policies_file)
    return (f'{len(found.active)} enabled of {len(found.policies)} in '
            f'{conf.kronos.policies_file}, mode {found.mode}'), found


def _prometheus(conf):
    client = prometheus.from_conf(conf)
    client.instant('vector(1)')
    try:
        retention = client.runtime_info().get('storageRetention', 'not told')
    except exception.MetricsError:  # Thanos, Mimir and others have no such page
        retention = 'not told'
    return f'{conf.kronos_prometheus.url} answers; retention: {retention}', client


def _placement(conf):
    client = PlacementClient(connect(conf).placement)
    return (f'microversion {client.negotiate()}, '
            f'{len(client.resource_classes())} resource classes'), None


def _nova(conf):
    snapshot = OpenStackInventory(connect(conf)).read()
    available = sum(host.service.is_available for host in snapshot.hosts)
    return (f'{len(snapshot.hosts)} hosts with QEMU/KVM, {available} of them available, '
            f'{len(snapshot.instances)} instances, {len(snapshot.aggregates)} aggregates, '
            f'{len(snapshot.server_groups)} server groups'), snapshot


def _scope(conf, snapshot):
    parts = []
    for name in engine_options.from_conf(conf).scopes(()):
        try:
            hosts = snapshot.hosts_of(name)
        except KeyError as error:
            raise exception.ConfigurationError(
                what=f'[kronos] aggregates, {name}', problem='there is no such aggregate',
                remedy='Correct the name; "openstack aggregate list" has them.') from error
        parts.append(f'{"unassigned" if name == UNASSIGNED else name}: {len(hosts)} hosts')
        if len(hosts) < 2 and name != UNASSIGNED:
            raise CheckWarning(f'{name} has {len(hosts)} hosts; nothing can be balanced there')
    return '; '.join(parts), None


def _database(conf):
    file = db_engine.control_url(conf).partition('sqlite:///')[2]
    if file and not os.path.exists(file):  # opening it would create it, with the wrong owner
        raise exception.ConfigurationError(
            what='The control database', problem=f'{file} does not exist',
            remedy='Run "kronos-manage db sync" as the user of nova-conductor.')
    conf.set_override('max_retries', 0, group='kronos_database')
    migrate.check(db_engine.control_engine(conf), migrate.CONTROL)
    return 'the control database is at the revision that this code needs', None


def _broker(conf):
    """Every host of ``transport_url`` by itself: oslo.messaging would go on to the next."""
    url = oslo_messaging.TransportURL.parse(conf)
    if url.transport.partition('+')[0] not in ('rabbit', 'kombu'):
        raise CheckWarning(f'transport_url is of the kind {url.transport}, which is not checked')
    oslo_messaging.get_rpc_transport(conf)  # registers [oslo_messaging_rabbit]
    wrong = [problem for host in url.hosts if (problem := _unreachable(conf, url, host))]
    if not url.hosts or len(wrong) == len(url.hosts):
        raise exception.ConfigurationError(
            what='[DEFAULT] transport_url', problem='; '.join(wrong) or 'it names no host',
            remedy='Compare it with the other services\'.')
    if wrong:
        raise CheckWarning('; '.join(wrong))
    return f'{len(url.hosts)} brokers answer', None


def _unreachable(conf, url, host):
    """Why a broker cannot be used, or None."""
    connection = kombu.Connection(
        hostname=host.hostname, port=host.port or 5672, userid=host.username,
        password=host.password, virtual_host=url.virtual_host or '/',
        ssl=conf.oslo_messaging_rabbit.ssl, connect_timeout=_BROKER_SECONDS)
    try:
        with connection:
            connection.connect()
    except (kombu.exceptions.KombuError, OSError, *connection.connection_errors) as error:
        return f'{host.hostname}:{host.port or 5672}: {error}'
    return None
