"""``kronos-manage status``: what Kronos is doing now, on one page."""

import collections
import dataclasses
import datetime
import json

from cliff import command

from kronos_nova.cli import arguments
from kronos_nova.cli import columns
from kronos_nova.cli import watching
from kronos_nova.cmd import database
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.operations import overview

# Exit codes, documented in operating.rst.
EXIT = {None: 0, overview.WARNING: 3, overview.CRITICAL: 4}
FORMAT = 1


class Status(command.Command):
    """Show what Kronos is doing: levels, last evaluations, plans under way, workers, problems.

    Exit codes, for monitoring: 0 all is well, 1 it could not be told, 3 something deserves a look,
    4 something has to be mended.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        columns.add_text_or_json(parser)
        parser.add_argument('--watch', action='store_true',
                            help='show it again and again until Ctrl-C is pressed')
        parser.add_argument('--interval', type=arguments.pause, default=2.0, metavar='SECONDS',
                            help='between two looks of --watch; default: 2')
        return parser

    def take_action(self, parsed_args):
        conf = self.app.conf
        found = database.control_database(conf)
        observer = overview.Observer(conf, found, found.utcnow)
        if parsed_args.watch:
            return self._watch(observer, parsed_args)
        found = observer.read()
        self.app.stdout.write(f'{shown(found, parsed_args.format)}\n')
        return EXIT[found.severity]

    def _watch(self, observer, parsed_args):
        found = observer.read()

        def look():
            nonlocal found
            found = observer.read()
            return shown(found, parsed_args.format), True

        watching.watch(self.app.stdout, look, parsed_args.interval)
        return EXIT[found.severity]


def shown(found, wanted):
    """The page in a format, ``text`` or ``json``."""
    return as_json(found) if wanted == 'json' else '\n'.join(lines(found))


def as_json(found: overview.Overview) -> str:
    body = {'format': FORMAT, 'severity': found.severity, **dataclasses.asdict(found)}
    return json.dumps(body, indent=1, default=_iso)


def _iso(value):
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec='seconds')
    raise TypeError(f'{value!r} has no form in JSON')


def lines(found: overview.Overview):
    """The page for people."""
    yield f'Kronos at {columns.local(found.at)}: {_verdict(found)}'
    for aggregate in found.aggregates:
        yield ''
        yield from _aggregate(aggregate, found.at)
    if found.drains:
        yield ''
    for drain in found.drains:
        left = '' if drain.left is None else f', {columns.count(drain.left, "server")} left'
        if drain.remaining_seconds is not None:
            left += f'; about {columns.duration(drain.remaining_seconds)} for the planned moves'
        yield f'Drain of {drain.host} by {drain.requested_by}: {drain.state}{left}'
    if found.maintenance:
        yield ''
        yield _maintenance(found.maintenance)
    yield ''
    yield f'Workers: {_workers(found.workers)}'
    if found.quarantined:
        yield f'In quarantine: {found.quarantined} servers ("kronos-manage quarantine list")'
    if found.duration_error is not None:
        yield f'Durations of moves were predicted within {found.duration_error:.0%} (median)'
    yield f'Control database: revision {found.database_revision}'
    if found.problems:
        yield ''
    for problem in found.problems:
        yield f'{problem.severity.upper()}: {problem.what}'
        yield f'    {problem.remedy}'


def _maintenance(found):
    hosts = collections.defaultdict(list)
    for host, state in found.hosts.items():
        hosts[state].append(host)
    return f'Maintenance by {found.requested_by}: {found.state}; ' + ', '.join(
        f'{state}: {" ".join(named)}' for state, named in hosts.items())


def _verdict(found):
    count = len(found.problems)
    return f'{count} problem{"s" if count > 1 else ""}, see below' if count else 'all is well'


def _aggregate(aggregate, now):
    whose = f', set by {aggregate.set_by}' if aggregate.set_by else ''
    yield f'{aggregate.name}: {aggregate.level}{whose}; {_times(aggregate, now)}'
    if aggregate.paused:
        yield f'    paused: {aggregate.paused}'
    if aggregate.window_opens_at:
        yield ('    outside its maintenance windows; the next opens at '
               f'{columns.local(aggregate.window_opens_at)}')
    yield f'    {aggregate.outcome or "no outcome"}: {aggregate.reason}'
    for policy in aggregate.policies:
        yield f'    {_policy(policy)}'
    if aggregate.plan:
        yield f'    plan {aggregate.plan.uuid}: {_plan(aggregate.plan)}'


def _times(aggregate, now):
    if aggregate.evaluated_at is None:
        return 'not evaluated yet'
    ago = columns.duration((now - aggregate.evaluated_at).total_seconds())
    left = (aggregate.next_at - now).total_seconds()
    following = f'next in {columns.duration(left)}' if left > 0 else 'next as soon as possible'
    return f'evaluated {ago} ago, {following}'


def _policy(policy):
    if policy.imbalance is None:
        return f'{policy.name}: no data: {policy.detail}'
    above = ', above it' if policy.imbalance > policy.threshold else ''
    ahead = f'; forecast: {policy.forecast}' if policy.forecast else ''
    return (f'{policy.name}: imbalance {policy.imbalance:.3f}, threshold '
            f'{policy.threshold:.3f}{above}{ahead}')


def _plan(plan):
    count = columns.count(plan.moves, 'move')
    if plan.state == plans.PROPOSED:
        return (f'{count}, waiting for "kronos-manage plan approve" until '
                f'{columns.local(plan.expires_at)}')
    if plan.state == plans.APPROVED:
        return f'{count}, approved by {plan.approved_by}, to start with the next evaluation'
    ended = sum(plan.states.get(state, 0) for state in moves.TERMINAL)
    running = sum(plan.states.get(state, 0) for state in moves.IN_FLIGHT)
    bad = ', '.join(f'{plan.states[state]} {state}' for state in (moves.FAILED, moves.ABANDONED)
                    if state in plan.states)
    left = ('' if plan.remaining_seconds is None
            else f'; about {columns.duration(plan.remaining_seconds)} left')
    return f'{ended} of {count} ended{f" ({bad})" if bad else ""}, {running} under way{left}'


def _workers(workers):
    if not workers:
        return 'none'
    hosts = collections.defaultdict(list)
    for worker in workers:
        hosts[worker.name.partition(':')[0], worker.role].append(worker.is_alive)
    return ', '.join(f'{sum(alive)} of {len(alive)} alive on {host} ({role})'
                     for (host, role), alive in sorted(hosts.items()))
