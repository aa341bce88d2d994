"""Commands that empty hosts, show whether they are empty, and enable them again."""

import argparse
import contextlib
import json
import math
import time
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import TextIO

import msgspec

from kronos_client import plural
from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.contract import drains as contract
from kronos_client.contract import errors
from kronos_client.contract.base import OneHost

EMPTY, UNREAD, NOT_YET, BLOCKED, DOWN = 0, 1, 3, 4, 5
"""Exit codes of the commands that empty hosts. ``EMPTY``: the host is empty. ``UNREAD``: the state
of the host could not be read. ``NOT_YET``: the host is not empty yet. ``BLOCKED``: a server cannot
leave the host. ``DOWN``: the nova-compute of the host is down. The codes are documented in
maintenance.rst. Fixed: scripts depend on the codes."""
CODES = dict(zip(contract.OCCUPANCY, (EMPTY, NOT_YET, BLOCKED, DOWN), strict=True))
REFUSALS = {'kronos.drain_refused': BLOCKED, 'kronos.host_down': DOWN}
"""Exit codes of refused drains: {code of the error: exit code}."""

RELEASED = ('releasing', 'released')
"""States of a drain whose host is being enabled again, or is enabled."""

UNSETTLED = 'it was migrated or resized off the host, which is neither confirmed nor reverted'

LOOK_SECONDS = 2.0
"""Seconds between two queries of a command that waits until hosts are empty. Raised, the command
shows later that a host is empty; lowered, Nova has more requests. Not measured."""

PATIENCE_SECONDS = 30
"""Seconds for which a host may be blocked or down before a command gives up waiting for the host to
become empty. A host is blocked if one of its servers cannot leave. Raised, a drain that stays
blocked is reported later; lowered, the command gives up although a server is only unable to move
for a short time, for example during a reboot. Chosen as three times the 10 seconds between two
evaluations of an aggregate with a drain."""

RELEASE_SECONDS = 60
"""Maximum seconds for which the command ``host release`` waits until the host is enabled again. A
process of Kronos enables the host. Raised, the command takes longer if no such process runs;
lowered, the command ends before a busy process has enabled the host. Chosen as several times the
interval at which these processes read the requests to release hosts."""


def add_drain_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how hosts are emptied."""
    parser.add_argument('--with-stopped', action='store_true',
                        help='Migrate stopped servers too, by cold migrations; otherwise they '
                             'stay on the host.')
    parser.add_argument('--unmovable', choices=('leave', 'cold', 'stop'), default='leave',
                        help='What to do with running servers that Nova cannot migrate live: '
                             '"leave" them on the host (default), migrate them "cold" and start '
                             'them again, or "stop" them until the host is released. Locked '
                             'servers always stay. "cold" and "stop" take effect only within '
                             'maintenance windows.')
    parser.add_argument('--parallel', type=arguments.POSITIVE, metavar='<n>',
                        help='Maximum number of moves that leave a host at the same time; '
                             'default: [kronos_executor] max_concurrent_per_source.')
    parser.add_argument('--keep-spare', type=arguments.COUNT, default=0, metavar='<n>',
                        help='Room that has to stay free on the other hosts after the drain, as a '
                             'number <n> of hosts: their free room together is at least the total '
                             'capacity of the <n> largest of these hosts, so that <n> hosts may '
                             'fail; default: 0.')
    parser.add_argument('--reason', type=arguments.remark, default='', metavar='<text>',
                        help='Reason for the drain, which is recorded, and which Nova shows as '
                             'the reason why the host is disabled.')


def add_domain_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names hosts by failure domain."""
    parser.add_argument('--domain', metavar='<level=name>',
                        help='Choose all hosts of a failure domain, such as rack=r3, or '
                             'room=a,rack=r3 for rack r3 of room a.')


class _OfHosts(command.Command):
    """The base of commands that can wait until hosts are empty."""

    def occupancy(self, host: str) -> contract.Occupancy:
        return self.call(contract.OCCUPIED, OneHost(host=host))

    def wait(self, hosts: Iterable[str], out: TextIO) -> list[contract.Occupancy]:
        """Print the progress of hosts that are being emptied. Return when each host is empty, is no
        longer being drained, or was blocked or down for :data:`PATIENCE_SECONDS`.

        A host whose state cannot be read because of an outage is read again. A host whose state
        Kronos refuses to read is dropped, such as a host that was removed from Nova. Both are
        reported on stderr.

        :param out: text stream to print to
        :returns: list of the last Occupancy of each host that was not dropped
        """
        said: dict[str, str] = {}
        watched = list(hosts)
        unread: set[str] = set()
        # {host: when it was last seen to be neither blocked nor down}
        moving_at: dict[str, float] = {}

        def is_settled(found: contract.Occupancy, now: float) -> bool:
            return found.is_over or (
                found.state != contract.NOT_EMPTY
                and now - moving_at.get(found.host, -math.inf) >= PATIENCE_SECONDS)

        while True:
            states = self._look_at(watched, unread)
            now = time.monotonic()
            for found in states:
                if said.get(found.host) != _text(found):
                    said[found.host] = _text(found)
                    out.write(f'{_text(found)}\n')
                    out.flush()
                if found.state == contract.NOT_EMPTY:
                    moving_at[found.host] = now
            if not unread and all(is_settled(found, now) for found in states):
                return states
            time.sleep(LOOK_SECONDS)

    def _look_at(self, hosts: list[str], unread: set[str]) -> list[contract.Occupancy]:
        """Return the Occupancy of each host whose state can be read.

        :param hosts: names of hosts; the hosts to drop are removed from the list
        :param unread: hosts that could not be read because of an outage; the set is updated
        """
        states: list[contract.Occupancy] = []
        for host in [*hosts]:
            try:
                states.append(self.occupancy(host))
            except errors.Unreachable as error:
                # The text of an outage may differ each time, for example by the id of the request.
                if host not in unread:
                    unread.add(host)
                    self.report_unread(host, f'{error} The command asks again.')
                continue
            except errors.Refused as error:
                hosts.remove(host)
                self.report_unread(host, error)
            unread.discard(host)
        return states

    def report_unread(self, host: str, error: Exception | str) -> None:
        self.app.stderr.write(f'{host} could not be read: {error}\n')


class Drain(_OfHosts):
    """Empty hosts: check whether all of their servers fit on other hosts, disable the hosts, and
    move the servers.

    Running servers are migrated live. With --with-stopped, stopped servers are migrated cold, and
    the cold migrations are confirmed. A drain moves servers at every level of automation, also
    outside maintenance windows. A drain lasts until "host release", and survives restarts.

    Without --force, a drain is refused in three cases: none of the servers can leave; an aggregate
    would have no host left that takes servers; or too little room would remain to restart all
    servers of another host after its failure ([kronos] failover_hosts, failover_domains).

    Exit codes without --check and --wait: 0 the drain has begun; 1 the request is invalid; 4 the
    drain needs --force; 5 nova-compute of a host is down.

    Exit codes with --check: 0 every server can leave; 1 the request is invalid; 4 a server cannot
    leave, or the drain needs --force; 5 nova-compute of a host is down.

    Exit codes with --wait: 0 the hosts are empty; 1 the request is invalid, or a host was removed
    from Nova; 3 the drain ended, by its deadline or by "host release", before the hosts were empty;
    4 a server cannot leave, or the drain needs --force; 5 nova-compute of a host is down.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='*', metavar='<host>', help='Name of a host to drain; '
                                                                  'may be repeated.')
        add_domain_argument(parser)
        parser.add_argument('--check', action='store_true',
                            help='Only show whether and where the servers fit, and change '
                                 'nothing.')
        parser.add_argument('--force', action='store_true',
                            help='Drain the hosts even if a check refuses the drain (exit code '
                                 '4).')
        add_drain_arguments(parser)
        parser.add_argument('--deadline', metavar='<time>', type=arguments.later,
                            help='Time at which a drain that is not finished is given up, in '
                                 'minutes from now, or as a local time such as 2026-11-22T18:00. '
                                 'The host stays disabled then.')
        parser.add_argument('--wait', action='store_true',
                            help='Show the progress, and return when each host is either '
                                 'empty or has only servers left that cannot leave.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        request = contract.BeginDrains(
            hosts=list(dict.fromkeys(parsed_args.hosts)), domain=parsed_args.domain,
            check=parsed_args.check,
            reason=parsed_args.reason, force=parsed_args.force,
            with_stopped=parsed_args.with_stopped, unmovable=parsed_args.unmovable,
            parallel=parsed_args.parallel,
            deadline=parsed_args.deadline, keep_spare=parsed_args.keep_spare)
        try:
            found = self.call(contract.BEGIN, request)
        except errors.Refused as refused:
            if refused.code not in REFUSALS:
                raise
            with contextlib.suppress(errors.Refused, errors.Unreachable):
                self._show(self.call(contract.BEGIN, msgspec.structs.replace(request, check=True)))
            self.say(str(refused))
            return REFUSALS[refused.code]
        self._show(found)
        if parsed_args.check:
            for host in found.down:
                self.say(f'{host}: nova-compute is down; nothing can be migrated off it.')
            if found.refusal:
                self.say(f'{found.refusal} "--force" drains all the same.')
            return DOWN if found.down else BLOCKED if found.refusal or _is_blocked(found) else EMPTY
        until = parsed_args.deadline and f' until {columns.local(parsed_args.deadline)}'
        self.say(f'Draining{until or ""}; "host status" shows the progress.')
        if not parsed_args.wait:
            return EMPTY
        hosts = [each.host for each in found.drains]
        states = self.wait(hosts, self.app.stdout)
        # A host whose drain was given up or released is open: it may take servers again. The record
        # of a drain that was released may have been deleted since.
        opened = any(state.drain is None or state.drain.state in RELEASED for state in states)
        return max(_worst(states), NOT_YET if opened else EMPTY,
                   UNREAD if len(states) < len(hosts) else EMPTY)

    def _show(self, found: contract.DrainsBegun) -> None:
        for each in found.checked:
            cold = f' ({each.cold} cold)' if each.cold else ''
            under_way = each.servers - each.leaving - len(each.blocked) - len(each.stopped)
            already = (f', {under_way} migrate{"s" if under_way == 1 else ""} already'
                       if under_way > 0 else '')
            self.say(f'{each.host}: {plural.count(each.servers, "server")}, {each.leaving} can '
                     f'leave{cold}{already}, {each.memory_mb / 1024:.1f} GiB')
            for destination, count in each.destinations.items():
                self.say(f'    {count} to {destination}')
            for uuid, why in sorted(each.interrupted.items()):
                self.say(f'    migrated cold: {columns.server(uuid, each.names.get(uuid))}: {why}')
            for uuid, why in sorted(each.stopped.items()):
                self.say(f'    stopped until the release: '
                         f'{columns.server(uuid, each.names.get(uuid))}: {why}')
            for uuid, why in sorted(each.blocked.items()):
                self.say(f'    blocked: {columns.server(uuid, each.names.get(uuid))}: {why}')
        together = ' together' if len(found.checked) > 1 else ''
        if _is_blocked(found):
            self.say(f'Not everything can leave{together}.')
        elif not found.refusal:
            self.say(f'Everything can leave{together}.')
        if found.expected_seconds is not None:
            self.say(f'Expected: about {columns.duration(found.expected_seconds)}.')


def _is_blocked(found: contract.DrainsBegun) -> bool:
    return any(each.blocked for each in found.checked)


class Status(_OfHosts):
    """Show whether hosts are empty, which servers are still on them, and why. Without a name, all
    drained hosts are shown.

    Exit codes: 0 the host is empty; 1 the state of the host could not be read; 3 servers are still
    on the host, and some of them can leave; 4 none of the servers on the host can leave; 5 servers
    are on the host and its nova-compute is down. With several hosts, the code is the highest of all
    hosts.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='*', metavar='<host>',
                            help='Name of a host to show; may be repeated; default: all drained '
                                 'hosts.')
        parser.add_argument('--wait', action='store_true',
                            help='Show the progress, and return when each host is either '
                                 'empty or has only servers left that cannot leave.')
        columns.add_text_or_json(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        is_for_programs = parsed_args.format == 'json'
        hosts = list(dict.fromkeys(parsed_args.hosts)) or [
            each.host for each in self.call(contract.LIST, contract.ListDrains()).drains]
        if parsed_args.wait:
            states = self.wait(hosts, self.app.stderr if is_for_programs else self.app.stdout)
        else:
            states = list(self._readable(hosts))
        if is_for_programs:
            self.say(json.dumps([_as_json(state) for state in states], indent=1))
        elif not hosts:
            self.say('No host is drained.')
        else:
            for state in states:
                self._show(state)
        return max(_worst(states), UNREAD if len(states) < len(hosts) else EMPTY)

    def _readable(self, hosts: Iterable[str]) -> Iterator[contract.Occupancy]:
        """Yield the Occupancy of each host whose state can be read. Print an error on stderr for
        each other host, such as a host that was removed from Nova after its drain."""
        for host in hosts:
            try:
                yield self.occupancy(host)
            except (errors.Refused, errors.Unreachable) as error:
                self.report_unread(host, error)

    def _show(self, found: contract.Occupancy) -> None:
        self.say(_text(found))
        if found.drain and found.drain.waits_for:
            self.say(f'    waits for: {found.drain.waits_for}')
        blocked = found.drain.blocked if found.drain and found.drain.state != 'released' else {}
        for server in sorted(found.servers, key=lambda server: server.name):
            busy = f', {server.task_state}' if server.task_state else ''
            why = UNSETTLED if server.is_unsettled else blocked.get(server.uuid)
            why = f': {why}' if why else ''
            self.say(f'    {server.name} ({server.uuid}) {server.status}{busy}{why}')


def _as_json(found: contract.Occupancy) -> dict[str, Any]:
    return {**msgspec.to_builtins(found), 'code': CODES[found.state]}


def _worst(states: Iterable[contract.Occupancy]) -> int:
    """Return the exit code of a command for several hosts: the highest of any host."""
    return max((CODES[state.state] for state in states), default=EMPTY)


def _text(found: contract.Occupancy) -> str:
    """Return a line about a host: its servers, the state of its nova-compute, and its drain."""
    service, drain = found.service, found.drain
    left = plural.count(len(found.servers), 'server') if found.servers else 'empty'
    reason = f': {service.disabled_reason}' if service.disabled_reason else ''
    text = (f'{found.host}: {left} ({service.status}, '
            f'{"forced down" if service.forced_down else service.state}{reason})')
    if drain is None or drain.state == 'released':
        return text
    blocked = f', {len(drain.blocked)} blocked' if drain.blocked else ''
    return f'{text}; drain of {drain.requested_by}: {drain.state}{blocked}'


class Release(command.Command):
    """End the drains of hosts, and enable the hosts again. A drain in progress ends too.

    A host stays disabled if it was already disabled before its drain, or if a user has disabled it
    for another reason after the drain began. Moves that have begun continue to their end. The
    command is refused for a host that a maintenance is servicing.

    Exit codes: 0 the drains have ended; 1 the request was refused; 3 no worker has ended the drains
    yet, or it could not be read whether the drains have ended.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='+', metavar='<host>', help='Name of a host to '
                                                                  'release; may be repeated.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        asked: list[contract.Drain] = []
        for host in dict.fromkeys(parsed_args.hosts):
            try:
                asked.append(self.call(contract.RELEASE, OneHost(host=host)))
            except (errors.Refused, errors.Unreachable):
                # The error is about this host alone, and the command ends with it.
                for drain in asked:
                    self.say(f'{drain.host}: the release is requested; "host status {drain.host}" '
                             'shows the result.')
                raise
        deadline_at = time.monotonic() + RELEASE_SECONDS
        return max(self._result(drain, deadline_at) for drain in asked)

    def _result(self, drain: contract.Drain, deadline_at: float) -> int:
        """Wait until a worker has released a host, and return the exit code. The user may be
        permitted to release hosts, but not to read the result."""
        try:
            return self._wait(drain, deadline_at)
        except errors.Refused as refused:
            self.say(f'{drain.host}: the release is requested; its result could not be read: '
                     f'{refused}')
            return NOT_YET

    def _wait(self, drain: contract.Drain, deadline_at: float) -> int:
        """Wait until a worker has released a host, and return the exit code."""
        while not self._is_released(drain):
            if time.monotonic() > deadline_at:
                self.say(f'{drain.host}: no worker has released the host yet; the next worker that '
                         'runs releases it.')
                return NOT_YET
            time.sleep(LOOK_SECONDS / 4)
        self.say(f'{drain.host}: released{self._service_text(drain.host)}')
        return EMPTY

    def _service_text(self, host: str) -> str:
        """Return a text about the status of nova-compute after a release; an empty text if the
        status cannot be read."""
        try:
            service = self.call(contract.OCCUPIED, OneHost(host=host)).service
        except (errors.Refused, errors.Unreachable):
            return ''
        if service.status == 'enabled':
            return ', and enabled'
        reason = f': {service.disabled_reason}' if service.disabled_reason else ''
        return f'; nova-compute stays disabled{reason}'

    def _is_released(self, drain: contract.Drain) -> bool:
        try:
            return self.call(contract.SHOW, contract.OneDrain(drain=drain.uuid)).state == 'released'
        except errors.Unreachable:
            return False  # The release is recorded, and its result is queried again.
