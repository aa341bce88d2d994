"""``kronos-manage maintenance``: commands that service hosts one after the other."""

import argparse
import contextlib
import dataclasses
import os
import signal
import threading
import types
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.cli import hosts as host_commands
from kronos_nova import clock
from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.cmd import cloud
from kronos_nova.cmd import database as databases
from kronos_nova.cmd import maintenance_runner
from kronos_nova.db.drains import Drains
from kronos_nova.db.error_text import error_text
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.drain import orders
from kronos_nova.drain.states import Drain
from kronos_nova.executor import outages
from kronos_nova.objects import domains
from kronos_nova.objects import maintenance as m
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.services.maintenance import SILENT

DONE, STOPPED, FAILED = 0, 3, 4
"""Exit codes of ``kronos-manage maintenance``. DONE: all hosts were serviced. STOPPED: an operator
stopped or ended the maintenance, a signal ended the process, or hosts were left out. FAILED: a hook
failed. The codes are documented in maintenance.rst. Fixed: scripts depend on the codes."""

LOOK_SECONDS = 2.0
"""Seconds between two steps of a maintenance. Each step queries the control database. Raised, there
is a longer pause between two hosts; lowered, the database has more queries. Not measured."""

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end the process of a maintenance in an orderly way. The process first ends its
hooks. The maintenance may then be resumed at once."""

Check = Callable[[list[Drain]], list[orders.Checked]]
"""A function that plans drains."""


@contextlib.contextmanager
def _signals() -> Iterator[threading.Event]:
    """Yield an Event that is set when one of the signals in ENDING arrives. A second signal of the
    same kind is not caught, and usually ends the process at once. A signal that the process ignored
    before, such as SIGHUP under nohup, is still ignored."""
    ended = threading.Event()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in ENDING}

    def end(number: int, _frame: types.FrameType | None) -> None:
        signal.signal(number, before[number])
        ended.set()
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Running(command.Command):
    """The base class of the commands that run a maintenance."""

    def carry_on(self, uuid: str, checker: 'Checker') -> int:
        """Run a maintenance until it is done or stopped, a hook has failed, or a signal arrives.
        Return the exit code."""
        maintenances = Maintenances(databases.control_database(self.app.conf))
        work = maintenance_runner.MaintenanceRunner(
            self._dependencies(checker, maintenances, uuid), uuid)
        problem = None
        with _signals() as ended, self._running(maintenances, work, uuid):
            while not ended.is_set():
                try:
                    acquire(maintenances, uuid)
                    code, problem = self._advance(maintenances, work), None
                except (exception.KronosException, db_exc.DBError) as error:
                    if not (isinstance(error, (exception.NovaClientError,
                                               exception.PoliciesUnreadable))
                            or outages.is_outage(error)):
                        raise
                    code, before, problem = None, problem, error_text(error)
                    if problem != before:
                        self._say(f'The next step failed, and is tried again soon: {problem}')
                if code is not None:
                    return code
                ended.wait(LOOK_SECONDS)
        self._say('This process was ended by a signal; "kronos-manage maintenance resume" '
                  'continues the maintenance.')
        return STOPPED

    @staticmethod
    @contextlib.contextmanager
    def _running(maintenances: Maintenances, work: maintenance_runner.MaintenanceRunner,
                 uuid: str) -> Iterator[None]:
        try:
            yield
        finally:
            work.end()
            # Without the database, another process may run the maintenance once this one was silent
            # for a while.
            with contextlib.suppress(db_exc.DBError):
                maintenances.give_back(uuid, runner())

    def _advance(self, maintenances: Maintenances,
                 work: maintenance_runner.MaintenanceRunner) -> int | None:
        """Carry out the next step of the maintenance. Return the exit code of the command if the
        maintenance has ended or was stopped; None if the maintenance continues."""
        found = work.advance()
        if found.state == m.DONE:
            self._say('The maintenance was ended by "kronos-manage maintenance end".')
            return STOPPED
        if found.in_state(m.FAILED) and not found.in_state(*m.AT_WORK):
            return FAILED
        if not found.in_state(m.WAITING, *m.AT_WORK):
            maintenances.set_state(found.uuid, m.DONE)
            left_out = found.in_state(m.LEFT_OUT)
            self._say(f'The maintenance is done. Hosts that were left out, and not serviced: '
                      f'{", ".join(left_out)}.' if left_out else 'All hosts are serviced.')
            return STOPPED if left_out else DONE
        if found.state == m.STOPPED and not found.in_state(*m.AT_WORK):
            self._say('The maintenance is stopped; "kronos-manage maintenance resume" continues '
                      'it.')
            return STOPPED
        return None

    def _dependencies(self, checker: 'Checker', maintenances: Maintenances,
                      uuid: str) -> maintenance_runner.Dependencies:
        options = maintenances.get(uuid).options

        def check(wanted: list[Drain]) -> list[orders.Checked]:
            # The sign of life comes first, because reading a large cloud several times takes long.
            acquire(maintenances, uuid)
            snapshot, checked = checker.check(wanted)
            _refuse_losses(checker, options, snapshot, checked,
                           orders.drained(maintenances.database))
            return checked

        return maintenance_runner.Dependencies(
            maintenances=maintenances, drains=Drains(maintenances.database),
            hosts=checker.cloud.hosts, say=self._say, run_hook=maintenance_runner.start_hook,
            fits=lambda wanted, later: fitting(check, options, wanted, later),
            drain=lambda host, later: self._drain(check, options, host, later))

    @staticmethod
    def _drain(check: Check, options: m.MaintenanceOptions, host: str,
               later: Iterable[str]) -> Drain:
        [[_name, [drain], _plan]] = check([_request(options, host, later)])
        return drain

    def _say(self, line: str) -> None:
        self.app.stdout.write(f'{columns.local(clock.utcnow())} {line}\n')
        self.app.stdout.flush()


def fitting(check: Check, options: m.MaintenanceOptions, wanted: Sequence[str],
            later: Iterable[str]) -> list[str]:
    """Return the first hosts of ``wanted``, as many as can be empty at the same time. The first
    host is returned even if it cannot be emptied or is not in scope; its drain, or the refusal of
    its drain, then shows the reason.

    :param check: function that plans drains. Its argument is a list of Drains. It returns a list
        with a tuple for each aggregate: (name of the aggregate, Drains of its hosts, DrainPlan)
    :param wanted: names of hosts, in the order in which they are serviced
    :param later: hosts that are serviced later; drains avoid these hosts as destinations
    """
    for count in range(len(wanted), 1, -1):
        with contextlib.suppress(exception.DrainRefused, exception.NotInScope):
            checked = check([_request(options, host, later) for host in wanted[:count]])
            if not any(plan.blocked for _name, _drains, plan in checked):
                return list(wanted[:count])
    return list(wanted[:1])


def _keep_a_host(snapshot: Snapshot, checked: Iterable[orders.Checked],
                 drained: Collection[str]) -> None:
    """Check that planned drains leave a host that takes servers in each aggregate.

    :param checked: the planned drains, as :meth:`Checker.check` returns them
    :param drained: names of hosts that are drained already
    :raises DrainRefused: an aggregate would have no host left that takes servers
    """
    reason = orders.without_hosts(snapshot, checked, drained)
    if reason:
        raise exception.DrainRefused(reason=reason)


def _refuse_losses(checker: 'Checker', options: m.MaintenanceOptions, snapshot: Snapshot,
                   checked: Iterable[orders.Checked], drained: Collection[str]) -> None:
    """Check that planned drains leave a host that takes servers in each aggregate, and enough room
    for the loss of another host.

    :param checked: the planned drains, as :meth:`Checker.check` returns them
    :param drained: names of hosts that are drained already
    :raises DrainRefused: an aggregate would have no host left that takes servers; or there would be
        too little room to restart the servers of a host or failure domain that is lost. Room is not
        checked with the option ``force``
    """
    _keep_a_host(snapshot, checked, drained)
    reason = '' if options.force else checker.lowered_failover(snapshot, checked)
    if reason:
        raise exception.DrainRefused(reason=reason)


def _request(options: m.MaintenanceOptions, host: str, avoid: Iterable[str]) -> Drain:
    wish = orders.Wish(
        who=databases.operator(), reason=options.reason or 'maintenance',
        with_stopped=options.with_stopped, unmovable=options.unmovable, parallel=options.parallel,
        keep_spare=options.keep_spare)
    return dataclasses.replace(wish.to_drain(host), avoid=tuple(avoid))


class Checker(orders.Checker):
    """A checker that finds out whether hosts can be emptied. It has the access to the cloud that
    the commands of a maintenance need."""

    def __init__(self, app: Any):
        self.cloud = cloud.open_cloud(app)
        super().__init__(app.conf, databases.control_database(app.conf), self.cloud.read,
                         lambda: cloud.planner_ports(app.conf, self.cloud.dry_run))


class Run(_Running):
    """Service hosts one after the other. The command drains a host, runs the hook that services the
    host (--hook), waits until nova-compute of the host is up, and releases the host.

    The host with the fewest servers is serviced first. Hosts that are not yet serviced take servers
    only if no other host can take them, so that only few servers have to move twice. The command
    may be ended at any time. Moves in progress then continue, and "maintenance resume" continues
    the maintenance.

    Exit codes: 0 all hosts are serviced; 1 the request was refused; 3 the maintenance was stopped
    or ended, or hosts were left out; 4 a hook failed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='*', metavar='HOST',
                            help='Name of a host to service; may be repeated.')
        parser.add_argument('--aggregate', metavar='NAME',
                            help='Service all hosts of this aggregate, instead of single hosts.')
        host_commands.add_domain_argument(parser)
        parser.add_argument('--batch', type=arguments.POSITIVE, default=1, metavar='N',
                            help='Maximum number of hosts that are serviced at the same time; '
                                 'default: 1. Fewer are serviced while the other hosts have no '
                                 'room for the servers of N hosts.')
        parser.add_argument('--hook', metavar='CMD',
                            help='Shell command that services a host once it is empty; the '
                                 'variable KRONOS_HOST has the name of the host. Without --hook, '
                                 'the maintenance waits at each empty host until "maintenance done '
                                 'HOST" reports that it was serviced.')
        host_commands.add_drain_arguments(parser)
        parser.add_argument('--force', action='store_true',
                            help='Drain hosts even if too little room remains to restart all '
                                 'servers of another host or failure domain after its failure. '
                                 'Without this argument, [kronos] failover_hosts and '
                                 'failover_domains forbid such drains.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        checker = Checker(self.app)
        options = m.MaintenanceOptions(**{name: getattr(parsed_args, name) for name in (
            'batch', 'hook', 'keep_spare', 'with_stopped', 'unmovable', 'parallel', 'reason',
            'force')})
        snapshot = checker.cloud.read()
        hosts = self._in_order(checker, options, snapshot, hosts_of(parsed_args, snapshot))
        uuid = uuidutils.generate_uuid()
        Maintenances(databases.control_database(self.app.conf)).begin(m.Maintenance(
            uuid=uuid, state=m.RUNNING, requested_by=databases.operator(),
            requested_at=checker.database.utcnow(), options=options,
            hosts=dict.fromkeys(hosts, m.WAITING)))
        return self.carry_on(uuid, checker)

    def _in_order(self, checker: Checker, options: m.MaintenanceOptions, snapshot: Snapshot,
                  hosts: Iterable[str]) -> list[str]:
        """Return the hosts in the order of service, the host with the fewest servers first. Print
        the number of hosts, the number of servers to move, and the expected duration.

        :raises ConfigurationError: a host is in no aggregate that Kronos balances
        :raises DrainRefused: the drain of a host would leave its aggregate without a host that
            takes servers; or the drain of the first host would leave too little room to restart the
            servers of a host or failure domain that is lost. Room is not checked with the option
            ``force``
        """
        sizes = {host: sum(server.host == host for server in snapshot.instances)
                 for host in hosts}
        hosts = sorted(hosts, key=lambda host: (sizes[host], host))
        moving, seconds = 0, 0.0
        drained = orders.drained(checker.database)
        for host in hosts:
            _snapshot, checked = checker.check([_request(options, host, ())])
            if host not in drained and host == hosts[0]:
                _refuse_losses(checker, options, snapshot, checked, drained)
            elif host not in drained:
                _keep_a_host(snapshot, checked, drained)
            for _name, _drains, plan in checked:
                moving += len(plan.report.moves)
                seconds += checker.seconds(plan.report.moves, options.parallel) or 0.0
        expected = f', about {columns.duration(seconds)} without the hooks' if seconds else ''
        self._say(f'{plural.count(len(hosts), "host")}, {plural.count(moving, "server")} to move '
                  f'at least once{expected}')
        return hosts


def hosts_of(parsed_args: argparse.Namespace, snapshot: Snapshot) -> list[str]:
    """Return the hosts to service: the hosts that the command line names, or all hosts of the named
    aggregate or failure domain.

    :raises ConfigurationError: the command line does not name exactly one of hosts, an aggregate
        and a failure domain; or there is no such aggregate; or the aggregate has no hosts
    :raises RequestRefused: there is no such failure domain
    :raises InventoryError: hosts that may be in the aggregate or failure domain could not be read
    """
    if sum(map(bool, (parsed_args.hosts, parsed_args.aggregate, parsed_args.domain))) != 1:
        raise exception.ConfigurationError(
            what='the command line', problem='must name either hosts, or an aggregate, or a '
            'failure domain', remedy='Give HOST ..., --aggregate NAME or --domain LEVEL=NAME.')
    if not parsed_args.hosts:
        snapshot.refuse_unread(parsed_args.aggregate)
    if parsed_args.domain:
        return domains.needed_hosts_in(snapshot.hosts, parsed_args.domain)
    if not parsed_args.aggregate:
        return list(dict.fromkeys(parsed_args.hosts))
    what = f'Aggregate {parsed_args.aggregate}'
    try:
        found = sorted(snapshot.hosts_of(parsed_args.aggregate))
    except KeyError as error:
        raise exception.ConfigurationError(
            what=what, problem='does not exist',
            remedy='"openstack aggregate list" shows the names.') from error
    if not found:
        raise exception.ConfigurationError(
            what=what, problem='has no host with QEMU or KVM',
            remedy='"openstack aggregate show" shows the hosts of an aggregate.')
    return found


class Resume(_Running):
    """Continue a maintenance that was stopped, whose process ended, or in which a hook failed. A
    hook that failed runs again.

    Exit codes: 0 all hosts are serviced; 1 the request was refused; 3 the maintenance was stopped
    or ended, or hosts were left out; 4 a hook failed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--serviced', action='store_true',
                            help='Count the hosts whose hook failed as serviced, instead of '
                                 'running the hook again. Use it after these hosts were serviced '
                                 'by hand.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        maintenances = Maintenances(databases.control_database(self.app.conf))
        found = maintenances.open()
        acquire(maintenances, found.uuid)
        bring(maintenances, found.uuid, m.RUNNING)
        for host in found.in_state(m.FAILED):
            maintenances.set_host(found.uuid, host,
                                  m.RETURNING if parsed_args.serviced else m.HOOK, (m.FAILED,))
        return self.carry_on(found.uuid, Checker(self.app))


def runner() -> str:
    """Return the name by which this process is recorded as the runner of a maintenance."""
    return f'{databases.operator()}:{os.getpid()}'


def acquire(maintenances: Maintenances, uuid: str) -> None:
    """Record this process as the runner of a maintenance.

    :raises MaintenanceRunning: another process runs the maintenance, and has given a sign of life
        lately
    """
    now = maintenances.database.utcnow()
    if not maintenances.acquire(uuid, runner(), now, now - SILENT):
        raise exception.MaintenanceRunning(maintenance=uuid)


def bring(maintenances: Maintenances, uuid: str, state: str) -> None:
    """Change the state of a maintenance.

    :raises MaintenanceNotFound: the maintenance has ended in the meantime
    """
    if not maintenances.set_state(uuid, state):
        raise exception.MaintenanceNotFound
