"""The tables of ``kronos-manage`` and of ``openstack kronos``: the same columns, whether what they
show comes from the control database or over the API."""

import collections

from kronos_nova.cli import columns
from kronos_nova.db import switches
from kronos_nova.objects import automation

PLANS = ('UUID', 'Aggregate', 'State', 'Planner', 'Moves', 'Imbalance before', 'Imbalance after',
         'Created at', 'Times made', 'Last made at')
MOVES = ('UUID', 'Plan', 'Order', 'Name', 'Instance', 'Source', 'Destination', 'Phase', 'State',
         'Retries', 'Migration', 'Progress', 'Estimated end', 'Error')
LEVELS = ('Aggregate', 'Level', 'Set by', 'Since', 'Reason', 'Paused')
SWITCHES = ('At', 'Aggregate', 'What', 'By', 'Reason')


def plan(found):
    """:param found: a PlanRecord, or the API's Plan"""
    return (found.uuid, found.aggregate, found.state, found.planner, found.move_count,
            _rounded(found.combined_before), _rounded(found.combined_after),
            columns.Time(found.created_at), found.times_seen,
            columns.Time(found.last_seen_at or found.created_at))


def _rounded(value):
    return None if value is None else round(value, 4)


def plan_details(found, report, waits_for, reason, is_for_people):
    """(names, values) of everything that is known of a plan.

    :param report: an AggregateReport as JSON has it, with the names of servers
    :param is_for_people: text, and otherwise what a program can read
    """
    def text(values, line):
        return '\n'.join(map(line, values)) if is_for_people else values

    return zip(*{
        'uuid': found.uuid, 'aggregate': found.aggregate, 'state': found.state,
        'mode': found.mode, 'planner': found.planner, 'purpose': found.purpose,
        'created_at': columns.Time(found.created_at),
        'expires_at': columns.Time(found.expires_at),
        'approved_by': columns.Optional(found.approved_by),
        'approved_at': columns.Time(found.approved_at),
        'finished_at': columns.Time(found.finished_at),
        'waits_for': columns.Optional(waits_for),
        'left_out': columns.Optional(reason),
        'times_made': found.times_seen,
        'policies': text(report['policies'], _policy_line),
        'moves': text(report['moves'], _move_line),
        'projects': text(_projects(report['moves']), _project_line),
        'not_moved': text(report['not_moved'], _skip_line),
        'refusals': text(report['refusals'], _refusal_line),
        'warnings': text(report['warnings'], str),
        'notes': text(report.get('notes', ()), str),
    }.items(), strict=True)


def _projects(moves):
    """Of each project that has a part in a plan: its servers that move, and the moves of servers of
    others that relieve a host it has servers on."""
    moved = collections.Counter(move['project_id'] for move in moves if move['project_id'])
    relieved = collections.Counter(name for move in moves for name in move['benefits']
                                   if name != move['project_id'])
    return [{'project_id': name, 'moved': moved[name], 'relieved': relieved[name]}
            for name in sorted({*moved, *relieved}, key=lambda name: (-moved[name], name))]


def _project_line(project):
    return (f'{project["project_id"]}: {columns.count(project["moved"], "server")} moved, relieved '
            f'by {columns.count(project["relieved"], "move")} of others')


def _policy_line(policy):
    if policy['state'] != 'ok':
        return f'{policy["name"]}: no data: {policy["detail"]}'
    after = policy['imbalance_after']
    return (f'{policy["name"]}: {policy["imbalance_before"]:.3f} -> '
            f'{"not known, as moves are left out" if after is None else f"{after:.3f}"} '
            f'(threshold {policy["threshold"]:.3f})')


def _move_line(move):
    waits = ', '.join(map(str, move['depends_on']))
    after = f'; waits for {waits}' if waits else ''
    return (f'{move["order"]}. {_server(move)} {move["source"]} -> {move["destination"]}: '
            f'{move["reason"]}{after}{_expected(move)}{_whose(move)}\n'
            f'     next best: {_next_best(move)}')


def _expected(move):
    """A line of what was predicted; nothing of a plan of which nothing was."""
    if move['expected_seconds'] is None:
        return ''
    begins = ('' if move['begins_after'] is None
              else f'begins after {columns.duration(move["begins_after"])}, ')
    return (f'\n     expected: {begins}takes {columns.duration(move["expected_seconds"])}, '
            f'stopped for {1000 * move["expected_downtime"]:.0f} ms of it')


def _whose(move):
    """A line of who is moved for whom; nothing where no host is relieved."""
    if not move['benefits'] and not move['caused_by']:
        return ''
    largest = (f'server {move["caused_by"]} has the largest load there' if move['caused_by']
               else 'it has the largest load there itself')
    others = ', '.join(move['benefits']) or 'nobody else'
    return (f'\n     a server of project {move["project_id"]} moves, and {move["source"]} is '
            f'relieved for {others}; {largest}')


def _next_best(move):
    """Why this move and not another."""
    other = move['next_best']
    if not other:
        return 'none that is permitted'
    found = (f'{_server(other)} to {other["destination"]}, combined imbalance '
             f'{other["combined_after"]:.3f} instead of {move["combined_after"]:.3f}, '
             f'{other["memory_mb"]} MiB')
    if other['combined_after'] < move['combined_after']:
        return f'{found}: better alone, and not with the rest of the plan or for what it copies'
    return found


def _server(each):
    return columns.server(each['instance_uuid'], each['instance_name'])


def _skip_line(skip):
    return f'{skip["reason"]}: {skip["count"]}'


def _refusal_line(refusal):
    return f'{refusal["instance_uuid"]} to {", ".join(refusal["hosts"])}: {refusal["reason"]}'


def move(found, name, share, end):
    """
    :param found: a MoveRecord, or the API's Move
    :param name: of its server, or None
    :param share: percent that is copied, or None
    :param end: when it may be over, or None
    """
    return (found.uuid, found.plan_uuid, found.ordinal, columns.Optional(name),
            found.instance_uuid, found.source, found.destination, found.phase, found.state,
            found.retry_count, columns.Optional(found.migration_uuid),
            columns.Optional(None if share is None else round(share)), columns.Time(end),
            columns.Optional(found.error_type))


def move_details(found, name, worker, events):
    """(names, values) of everything that is known of a move.

    :param events: [(time, old state, new state, worker, detail)]
    """
    return zip(*{
        'uuid': found.uuid, 'plan': found.plan_uuid, 'aggregate': found.aggregate,
        'instance': found.instance_uuid, 'name': columns.Optional(name), 'kind': found.kind,
        'source': found.source, 'destination': found.destination, 'memory_mb': found.memory_mb,
        'phase': found.phase, 'reason': found.reason, 'state': found.state,
        'worker': columns.Optional(worker), 'retries': found.retry_count,
        'migration': columns.Optional(found.migration_uuid),
        'expected_seconds': columns.Optional(found.expected_seconds),
        'error_type': columns.Optional(found.error_type), 'error': columns.Optional(found.error),
        'requested_at': columns.Time(found.requested_at),
        'finished_at': columns.Time(found.finished_at),
        'events': '\n'.join(
            f'{columns.local(at)} {old or "-"} -> {new}{f" by {worker}" if worker else ""}'
            f'{f": {detail}" if detail else ""}' for at, old, new, worker, detail in events),
    }.items(), strict=True)


def level(name, value, own, paused):
    """
    :param own: who set it, when and why; None where nova.conf says so
    :param paused: by whom and why, in words, or None
    """
    return (name, value, own.set_by if own else 'nova.conf', columns.Time(own and own.set_at),
            own.reason if own else '', columns.Optional(paused))


def switch(event):
    """:param event: a Switch, or the API's SwitchEvent"""
    return (columns.Time(event.set_at), event.aggregate, _what(event), event.set_by, event.reason)


def _what(event):
    if event.value == switches.CLEARED:
        return 'resume' if event.kind == automation.PAUSE else 'level of nova.conf'
    return f'level {event.value}' if event.kind == automation.LEVEL else event.value
