"""The command that shows the state of Kronos on one screen."""

import argparse
import collections
import datetime
import json
from collections.abc import Iterator
from collections.abc import Sequence

import msgspec

from kronos_client import plural
from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.cli import watching
from kronos_client.contract import errors
from kronos_client.contract import moves
from kronos_client.contract import status as contract

UNREAD = 1
"""Exit code of the status command if the state could not be read (no unit). The code is documented
in operating.rst. Fixed: scripts depend on the code."""
EXIT = {None: 0, contract.NOTICE: 0, contract.WARNING: 3, contract.CRITICAL: 4}
"""Exit codes of the status command, by the severity of the worst problem. The codes are documented
in operating.rst. Fixed: scripts depend on the codes."""
FORMAT = 1
"""Version of the JSON output of the status command (no unit). Fixed: the version changes only when
a key of the output changes its meaning."""


class Status(command.Command):
    """Show what Kronos is doing: levels of automation, last evaluations, plans, workers, and
    conditions that need attention.

    A condition is a notice (an operator intended it, such as a pause), a warning (an operator
    should look into it) or critical (an operator has to repair it).

    Exit codes, for monitoring: 0 there is no condition, or only notices; 1 the state could not be
    read; 3 there is a warning; 4 there is a critical condition. The command sends no alerts. For
    alerts by Prometheus, share/kronos/prometheus has rules, and receivers for a chat and e-mail.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        columns.add_text_or_json(parser)
        parser.add_argument('--watch', action='store_true',
                            help='Refresh the output until Ctrl-C is pressed.')
        parser.add_argument('--interval', type=arguments.pause, default=2.0, metavar='<seconds>',
                            help='Seconds between two refreshes of --watch; default: 2.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        text = _as_json if parsed_args.format == 'json' else _as_text
        try:
            found: contract.Status | None = self._read()
        except errors.Unreachable:
            if not parsed_args.watch:
                raise
            found = None

        def read_page() -> tuple[str, bool]:
            nonlocal found
            found = self._read()
            return text(found), True

        if parsed_args.watch:
            watching.watch(self.app.stdout, read_page, parsed_args.interval,
                           self.app.stderr if parsed_args.format == 'json' else None)
        elif found is not None:
            self.say(text(found))
        return UNREAD if found is None else EXIT[found.severity]

    def _read(self) -> contract.Status:
        return self.call(contract.SHOW, contract.ShowStatus(aggregates=True))


def _as_json(found: contract.Status) -> str:
    maintained = found.maintenance
    body = {'format': FORMAT, 'severity': found.severity, 'at': found.at,
            **msgspec.structs.asdict(found)}
    if maintained:
        body['maintenance'] = msgspec.structs.asdict(maintained) | {
            'hosts': {each.host: each.state for each in maintained.hosts}}
    return json.dumps(msgspec.to_builtins(body, builtin_types=(datetime.datetime,)), indent=1,
                      default=lambda time: time.isoformat(timespec='seconds'))


def _as_text(found: contract.Status) -> str:
    return '\n'.join(_lines(found))


def _lines(found: contract.Status) -> Iterator[str]:
    cloud = f' of {found.cloud}' if found.cloud else ''
    yield f'Kronos{cloud} at {columns.local(found.at)}: {_verdict(found)}'
    for aggregate in found.aggregates or ():
        yield ''
        yield from _aggregate(aggregate, found.at)
    if found.drains:
        yield ''
    for drain in found.drains:
        left = '' if drain.left is None else f', {plural.count(drain.left, "server")} left'
        if drain.remaining_seconds is not None:
            left += f'; about {columns.duration(drain.remaining_seconds)} for the planned moves'
        yield f'Drain of {drain.host} by {drain.requested_by}: {drain.state}{left}'
    if found.maintenance:
        yield ''
        yield _maintenance(found.maintenance)
    yield ''
    yield f'Workers: {_workers(found.workers)}'
    if found.quarantined:
        yield (f'In quarantine: {plural.count(found.quarantined, "server")} '
               '("quarantine list" names them)')
    if found.duration_error is not None:
        yield f'Predicted durations of moves are off by {found.duration_error:.0%} (median)'
    yield f'Control database: revision {found.database_revision}'
    if found.problems:
        yield ''
    for problem in found.problems:
        yield f'{problem.severity.upper()}: {problem.what}{_age(problem, found.at)}'
        yield f'    {problem.remedy}'


def _maintenance(found: contract.MaintenanceState) -> str:
    hosts = collections.defaultdict(list)
    for each in found.hosts:
        hosts[each.state].append(each.host)
    return f'Maintenance by {found.requested_by}: {found.state}; ' + ', '.join(
        f'{state}: {" ".join(named)}' for state, named in hosts.items())


def _verdict(found: contract.Status) -> str:
    """Return a text with the number of conditions of each severity, such as "1 warning, 2 notices,
    see below"."""
    counts = collections.Counter(each.severity for each in found.problems)
    nouns = {contract.CRITICAL: 'critical condition'}
    return ', '.join([*(plural.count(counts[each], nouns.get(each, each))
                        for each in contract.SEVERITIES if counts[each]), 'see below']
                     ) if counts else 'all is well'


def _age(problem: contract.Problem, now: datetime.datetime) -> str:
    """Return a text such as " (for 3 min 20 s)", the time for which a condition has lasted. Return
    an empty text if the time is not known."""
    if problem.since is None:
        return ''
    return f' (for {columns.duration((now - problem.since).total_seconds())})'


def _aggregate(aggregate: contract.Aggregate, now: datetime.datetime) -> Iterator[str]:
    whose = f', set by {aggregate.set_by}' if aggregate.set_by else ''
    repairs = ('' if aggregate.repairs in ('', aggregate.level)
               else f'; rule repairs: {aggregate.repairs}')
    yield f'{aggregate.name}: {aggregate.level}{whose}{repairs}; {_times(aggregate, now)}'
    if aggregate.paused:
        yield f'    paused: {aggregate.paused}'
    if aggregate.window_opens_at:
        yield ('    outside its maintenance windows; the next opens at '
               f'{columns.local(aggregate.window_opens_at)}')
    if aggregate.level == 'off' and aggregate.next_at is None:
        yield f'    {aggregate.reason}'
    else:
        yield f'    {aggregate.outcome or "no outcome"}: {aggregate.reason}'
    for policy in aggregate.policies:
        yield f'    {_policy(policy)}'
    if aggregate.domains:
        found = ', '.join(f'{count} of {level}' for level, count in aggregate.domains.items())
        yield f'    failure domains: {found}'
    for each in aggregate.losses:
        yield f'    {_losses(each)}'
    if aggregate.immovable:
        yield (f'    {plural.count(aggregate.immovable, "server")} that Nova does not migrate '
               'live ("explain" has the reason)')
    if aggregate.plan:
        yield f'    plan {aggregate.plan.uuid}: {_plan(aggregate.plan)}'


def _losses(losses: contract.Losses) -> str:
    """Return a text with the number of hosts or failure domains that can fail without harm, because
    all of their servers can restart elsewhere. An example is "hosts whose servers can all restart
    elsewhere: 7 of 8, 6 in Nova's own order; 1 not judged"."""
    many = 'hosts' if losses.level is None else f'{losses.level} domains'
    total = losses.fits + losses.does_not_fit + losses.not_found + losses.not_judged
    in_order = (f', {losses.in_order} in Nova\'s own order'
                if losses.in_order + losses.not_in_order == losses.fits else '')
    unknown = [f'{count} {word}' for count, word in (
        (losses.not_found, 'not known'), (losses.not_judged, 'not judged')) if count]
    return '; '.join([f'{many} whose servers can all restart elsewhere: {losses.fits} of '
                      f'{total}{in_order}', *unknown])


def _times(aggregate: contract.Aggregate, now: datetime.datetime) -> str:
    if aggregate.evaluated_at is None:
        return 'not evaluated yet'
    ago = columns.duration((now - aggregate.evaluated_at).total_seconds())
    if aggregate.next_at is None:
        return f'evaluated {ago} ago'
    left = (aggregate.next_at - now).total_seconds()
    following = f'next in {columns.duration(left)}' if left > 0 else 'next as soon as possible'
    return f'evaluated {ago} ago, {following}'


def _policy(policy: contract.Policy) -> str:
    if policy.imbalance is None:
        return f'{policy.name}: no data: {policy.detail}'
    above = ', above it' if policy.imbalance > policy.threshold else ''
    ahead = f'; forecast: {policy.forecast}' if policy.forecast else ''
    return (f'{policy.name}: imbalance {policy.imbalance:.3f}, threshold '
            f'{policy.threshold:.3f}{above}{ahead}')


def _plan(plan: contract.OpenPlan) -> str:
    count = plural.count(plan.moves, 'move')
    if plan.state == 'proposed':
        return (f'{count}, waiting for "plan approve" until '
                f'{columns.local(plan.expires_at)}')
    if plan.state == 'approved':
        when = (f'waits: {plan.waits_for}' if plan.waits_for
                else 'to start with the next evaluation')
        return f'{count}, approved by {plan.approved_by}, {when}'
    ended = sum(plan.states.get(state, 0) for state in moves.ENDED)
    running = sum(plan.states.get(state, 0) for state in moves.LIVE if state != 'planned')
    bad = ', '.join(f'{plan.states[state]} {state}' for state in ('failed', 'abandoned')
                    if state in plan.states)
    left = ('' if plan.remaining_seconds is None
            else f'; about {columns.duration(plan.remaining_seconds)} left')
    return f'{ended} of {count} ended{f" ({bad})" if bad else ""}, {running} in progress{left}'


def _workers(workers: Sequence[contract.Worker]) -> str:
    if not workers:
        return 'none'
    hosts = collections.defaultdict(list)
    for worker in workers:
        hosts[worker.name.partition(':')[0], worker.role].append(worker.is_alive)
    return ', '.join(f'{sum(alive)} of {len(alive)} alive on {host} ({role})'
                     for (host, role), alive in sorted(hosts.items()))
