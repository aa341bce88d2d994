"""``kronos-manage host``: empty hosts, know that they are, and open them again."""

import dataclasses
import json
import math
import time

from cliff import command
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.cli import arguments
from kronos_nova.cli import columns
from kronos_nova.cmd import cloud
from kronos_nova.cmd import database as databases
from kronos_nova.db.drains import Drains
from kronos_nova.db.error_text import error_text
from kronos_nova.executor import outages
from kronos_nova.objects import drain as drains
from kronos_nova.operations import draining

# Exit codes, documented in maintenance.rst.
EMPTY, NOT_YET, BLOCKED, DOWN = 0, 3, 4, 5

LOOK_SECONDS = 2.0
"""Whoever waits for hours goes on when Nova or a database did not answer once."""

UNSETTLED = 'it was migrated or resized off the host, which is neither confirmed nor reverted'

PATIENCE_SECONDS = 30
"""For how long a host that gets empty may be blocked or down before whoever waits for it is told
so: three looks of whoever plans drains. A tenant may reboot what is left, and a compute is down for
some seconds after a database was."""

RELEASE_SECONDS = 60
"""How long a release is waited for: some looks of a worker that has much to do."""


class Checker(draining.Checker):
    """Whether hosts can be emptied, for a command."""

    def __init__(self, app):
        self.cloud = cloud.open_cloud(app)
        super().__init__(app.conf, databases.control_database(app.conf), self.cloud.read,
                         lambda: cloud.planner_ports(app.conf))


def lines(snapshot, checked, seconds):
    """What a check found, for people."""
    names = {server.uuid: server.display_name for server in snapshot.instances}
    for _aggregate, found, plan in checked:
        for each in found:
            leaving = draining.leaving(plan, each.host)
            yield (f'{each.host}: {columns.count(plan.left[each.host], "server")}, '
                   f'{len(leaving)} can leave'
                   f'{_cold(leaving, plan.cold)}, '
                   f'{sum(move.memory_mb for move in leaving) / 1024:.1f} GiB')
            for destination, count in draining.destinations(leaving).items():
                yield f'    {count} to {destination}'
            for uuid, why in sorted(plan.blocked.get(each.host, {}).items()):
                yield f'    blocked: {columns.server(uuid, names.get(uuid))}: {why}'
    hosts = sum(len(found) for _name, found, _plan in checked)
    blocked = any(plan.blocked for _name, _found, plan in checked)
    together = ' together' if hosts > 1 else ''
    yield (f'Not everything can leave{together}.' if blocked
           else f'Everything can leave{together}.')
    if any(plan.report.moves for _name, _found, plan in checked):
        yield f'Expected: about {columns.duration(seconds)}.'


def _cold(leaving, cold):
    count = sum(move.instance_uuid in cold for move in leaving)
    return f' ({count} cold)' if count else ''


def add_wish(parser):
    """Which hosts are to be emptied, and how."""
    parser.add_argument('hosts', nargs='+', metavar='HOST')
    parser.add_argument('--check', action='store_true', help='Change nothing.')
    parser.add_argument('--force', action='store_true',
                        help='Drain hosts that no server can leave, and the last hosts of an '
                             'aggregate.')
    parser.add_argument('--with-stopped', action='store_true',
                        help='Migrate stopped servers too, cold.')
    parser.add_argument('--parallel', type=arguments.POSITIVE, metavar='N',
                        help='Moves at once off each host; default: max_concurrent_per_source.')
    parser.add_argument('--deadline', metavar='TIME', type=arguments.later,
                        help='Give up then: minutes from now, or a local time such as '
                             '2026-11-22T18:00.')
    parser.add_argument('--keep-spare', type=arguments.COUNT, default=0, metavar='N',
                        help="Hosts' worth of room that has to stay free; default: 0.")
    parser.add_argument('--reason', type=arguments.remark, default='', metavar='TEXT',
                        help='Kept, and shown by Nova as the reason why the host is disabled.')


class Drain(command.Command):
    """Empty hosts: say whether and where everything fits, disable them, and move what is there.

    What runs is migrated live; with --with-stopped what is stopped is migrated cold and confirmed.
    It is done at every level of automation and outside maintenance windows, and goes on until
    "host release", whatever dies meanwhile.

    Hosts that no server can leave, and the last hosts of an aggregate, are drained with --force
    only.

    Exit codes: 0 begun, or with --wait empty, or with --check everything fits; 1 refused; 3 with
    --wait: not empty by the deadline; 4 something is blocked (--check, --wait), or nothing can
    leave; 5 a host is down.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        add_wish(parser)
        parser.add_argument('--wait', action='store_true', help='Return when it is over.')
        return parser

    def take_action(self, parsed_args):
        checker = Checker(self.app)
        if parsed_args.deadline:
            checker.database.utcnow.check()
        wanted = [request(host, parsed_args) for host in dict.fromkeys(parsed_args.hosts)]
        snapshot, checked = checker.check(wanted)
        moves = [move for _name, _found, plan in checked for move in plan.report.moves]
        for line in lines(snapshot, checked, checker.seconds(moves, parsed_args.parallel)):
            self.app.stdout.write(f'{line}\n')
        down = draining.down(snapshot, parsed_args.hosts)
        if down:
            self.app.stdout.write(f'{exception.HostDown(host=", ".join(down))}\n')
            return DOWN
        if parsed_args.check:
            return BLOCKED if any(plan.blocked for _n, _f, plan in checked) else EMPTY
        try:
            placed = draining.begin(checker.database, snapshot, checked, parsed_args.force)
        except exception.DrainRefused as refused:
            self.app.stdout.write(f'{refused}\n')
            return BLOCKED
        until = parsed_args.deadline and f' until {columns.local(parsed_args.deadline)}'
        self.app.stdout.write(f'Draining{until or ""}; "kronos-manage host status" tells how far '
                              'it is.\n')
        if not parsed_args.wait:
            return EMPTY
        states = wait(self.app, checker.cloud, placed, self.app.stdout)
        # One that was given up, or released, is not closed.
        opened = any(state.drain.state in drains.OPENED for state in states)
        return max(worst(states), NOT_YET if opened else EMPTY)


def request(host, parsed_args):
    """The Drain that a command asks for, without its aggregate."""
    return draining.Wish(
        who=databases.operator(), reason=parsed_args.reason, with_stopped=parsed_args.with_stopped,
        parallel=parsed_args.parallel, deadline=parsed_args.deadline,
        keep_spare=parsed_args.keep_spare).to_drain(host)


def avoiding(drain, hosts):
    """The Drain with hosts that take servers only if nothing else can be done."""
    return dataclasses.replace(drain, avoid=tuple(hosts))


@dataclasses.dataclass(frozen=True, slots=True)
class HostState:
    """A host as Nova has it, and its drain if there is one."""

    host: str
    service: object
    servers: tuple
    drain: drains.Drain | None

    @property
    def code(self):
        """The exit code that tells of it. A host is not taken for empty before its drain is over:
        it may not be closed yet, or something is still on its way to it."""
        if not self.servers:
            return EMPTY if self.drain is None or self.drain.state not in drains.ACTIVE else NOT_YET
        if self.service is None or self.service.state != 'up':
            return DOWN
        if self.drain is not None and (self.drain.state == drains.BLOCKED or (
                self.drain.state == drains.EMPTY
                and all(server.is_unsettled for server in self.servers))):
            return BLOCKED
        return NOT_YET

    @property
    def is_over(self):
        """Whether waiting changes nothing any more."""
        return self.code == EMPTY or self.drain is None or self.drain.state not in drains.ACTIVE


def state_of(app, host_api, host):
    """:raises ConfigurationError: Nova knows no such host"""
    service = host_api.service(host)
    if service is None:
        raise exception.ConfigurationError(
            what=f'Host {host}', problem='Nova has no nova-compute of that name',
            remedy='"openstack compute service list" has the names.')
    return HostState(host, service, tuple(host_api.servers_on(host)),
                     Drains(databases.control_database(app.conf)).latest(host))


def wait(app, opened, wanted, out):
    """Tell how hosts get empty, until all are or nothing changes any more.

    :param out: a stream for that
    :returns: the HostStates then
    """
    said = {}
    moving_at = {}      # {host: when it was last seen to be neither blocked nor down}

    def is_settled(state, now):
        return state.is_over or (
            state.code != NOT_YET
            and now - moving_at.get(state.host, -math.inf) >= PATIENCE_SECONDS)

    def say(about, line):
        if said.get(about) != line:
            out.write(f'{line}\n')
            out.flush()
            said[about] = line

    while True:
        try:
            states = [state_of(app, opened.hosts, each.host) for each in wanted]
        except (exception.KronosException, db_exc.DBError) as error:
            if not is_unanswered(error):
                raise
            say(None, f'Asked again soon: {error_text(error)}')
            time.sleep(LOOK_SECONDS)
            continue
        for state in states:
            say(state.host, describe(state))
            if state.code == NOT_YET:
                moving_at[state.host] = time.monotonic()
        now = time.monotonic()
        if all(is_settled(state, now) for state in states):
            return states
        time.sleep(LOOK_SECONDS)


def is_unanswered(error: Exception) -> bool:
    """Return whether the question is asked again: Nova or a database did not answer."""
    return isinstance(error, exception.NovaClientError) or outages.is_outage(error)


def worst(states):
    """The exit code that tells of some hosts."""
    return max(state.code for state in states)


def describe(state):
    """A line for people."""
    service, drain = state.service, state.drain
    status = f'{service.status}, {"forced down" if service.forced_down else service.state}'
    left = columns.count(len(state.servers), 'server') if state.servers else 'empty'
    text = f'{state.host}: {left}'
    text = f'{text} ({status}'
    if service.disabled_reason:
        text = f'{text}: {service.disabled_reason}'
    text = f'{text})'
    if drain is None or drain.state == drains.RELEASED:
        return text
    text = f'{text}; drain of {drain.requested_by}: {drain.state}'
    return f'{text}, {len(drain.blocked)} blocked' if drain.blocked else text


class Status(command.Command):
    """Show whether hosts are empty, and what stays on them and why.

    Exit codes: 0 empty; 1 it could not be told; 3 not yet; 4 blocked: what is left has nowhere to
    go; 5 nova-compute is down with servers on the host. Of several hosts, the highest.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='+', metavar='HOST')
        parser.add_argument('--wait', action='store_true',
                            help='Return when they are empty, or nothing changes any more.')
        columns.add_text_or_json(parser)
        return parser

    def take_action(self, parsed_args):
        opened = cloud.open_cloud(self.app)
        is_for_programs = parsed_args.format == 'json'
        states = [state_of(self.app, opened.hosts, host) for host in parsed_args.hosts]
        if parsed_args.wait:
            states = wait(self.app, opened, states,
                          self.app.stderr if is_for_programs else self.app.stdout)
        if is_for_programs:
            self.app.stdout.write(f'{json.dumps([_json(state) for state in states], indent=1)}\n')
        else:
            for state in states:
                self._show(state)
        return worst(states)

    def _show(self, state):
        self.app.stdout.write(f'{describe(state)}\n')
        blocked = state.drain.blocked if state.drain else {}
        if state.drain and state.drain.waits_for:
            self.app.stdout.write(f'    waits for: {state.drain.waits_for}\n')
        for server in sorted(state.servers, key=lambda server: server.name):
            busy = f', {server.task_state}' if server.task_state else ''
            why = UNSETTLED if server.is_unsettled else blocked.get(server.uuid)
            why = f': {why}' if why else ''
            self.app.stdout.write(f'    {server.name} ({server.uuid}) {server.status}{busy}'
                                  f'{why}\n')


def _json(state):
    drain = state.drain
    return {
        'host': state.host, 'code': state.code, 'service': dataclasses.asdict(state.service),
        'servers': [dataclasses.asdict(server) for server in state.servers],
        'drain': None if drain is None else {
            'uuid': drain.uuid, 'state': drain.state, 'requested_by': drain.requested_by,
            'requested_at': drain.requested_at.isoformat(timespec='seconds'),
            'reason': drain.reason, 'servers': drain.servers, 'left': drain.left,
            'blocked': dict(drain.blocked), 'waits_for': drain.waits_for,
            'problem': drain.problem}}


class Release(command.Command):
    """Enable hosts that a drain disabled; a drain that is under way ends.

    A host that was disabled before the drain, or by somebody else since, stays disabled. Moves that
    have begun are carried to their end. One that a maintenance is servicing is not released.

    Exit codes: 0 released, 1 refused, 3 no worker has done it yet.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='+', metavar='HOST')
        return parser

    def take_action(self, parsed_args):
        database = databases.control_database(self.app.conf)
        known = Drains(database)
        found = [draining.releasable(database, host) for host in dict.fromkeys(parsed_args.hosts)]
        for drain in found:
            draining.release(known, drain, databases.operator())
        deadline_at = time.monotonic() + RELEASE_SECONDS
        return max(self._wait(known, drain, deadline_at) for drain in found)

    def _wait(self, known, drain, deadline_at):
        """Wait until a worker has released a host; the exit code."""
        while not _is_released(known, drain):
            if time.monotonic() > deadline_at:
                self.app.stdout.write(f'{drain.host}: no worker has released it yet; it will be by '
                                      'the first one that runs.\n')
                return NOT_YET
            time.sleep(LOOK_SECONDS / 4)
        self.app.stdout.write(f'{drain.host}: released\n')
        return EMPTY


def _is_released(known, drain):
    try:
        return known.get(drain.uuid).state == drains.RELEASED
    except db_exc.DBError:
        return False    # The wish is written down; whether it was done is asked again.
