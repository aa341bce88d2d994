"""Output of replays: JSON for programs, and tables for people."""

import collections
import dataclasses
from typing import Any
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kronos_nova import boundary
from kronos_nova import plural
from kronos_nova.cycle.supposed import SupposedLoad
from kronos_nova.objects.plan import FORECAST_USED
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import CycleReport
from kronos_nova.objects.plan import PolicyReport
from kronos_nova.room import shapes
from kronos_nova.room.whatif import Changed

FORMAT = 1
"""Version of the JSON output of a replay (no unit). Fixed: the version changes only when a key of
the output changes its meaning."""

LONGEST = 2000
"""Maximum number of characters of a text from a recorded snapshot in a table. A longer text is cut.
Raised, one text can fill a screen; lowered, names are cut off. Not measured."""


class Replayed(NamedTuple):
    """The result of replaying a snapshot.

    :ivar name: name of the snapshot's folder
    :ivar options: source of the options, as a word for programs
    :ivar note: source of the options, as a sentence for people
    :ivar changed: the cloud after hypothetical changes; None if the replay had no such changes
    :ivar loads: loads before and after the hypothetical changes
    """

    name: str
    report: CycleReport
    options: str
    note: str
    changed: Changed | None = None
    loads: tuple[SupposedLoad, ...] = ()


def as_object(replayed: Replayed) -> dict:
    """Return the result of a replay as an object of JSON, in the format :data:`FORMAT`. Everything
    except ``planning_seconds`` depends only on the input."""
    report = replayed.report
    return {'format': FORMAT, 'options': replayed.options, 'notes': [replayed.note],
            'planning_seconds': report.planning_seconds,
            'aggregates': [_aggregate(aggregate) for aggregate in report.aggregates],
            **({} if replayed.changed is None else {
                'changes': _changes(replayed.changed, replayed.loads)})}


def _changes(changed: Changed, loads: tuple[SupposedLoad, ...]) -> dict[str, Any]:
    return {'restarted': changed.restarted, 'left': changed.left,
            'not_booted': changed.not_booted,
            'loads': [dataclasses.asdict(each) for each in loads]}


def day_as_object(day: list[Replayed]) -> dict:
    """Return the results of several replays as one object of JSON. Each result has the name of its
    folder."""
    return {'format': FORMAT, 'snapshots': [
        {'snapshot': each.name, **as_object(each)} for each in day]}


def _aggregate(report: AggregateReport) -> dict[str, Any]:
    return {
        'name': report.name, 'outcome': report.outcome, 'mode': report.mode,
        'planner': report.planner,
        'policies': [{
            'name': row.name, 'state': row.state, 'detail': _detail(row), 'weight': row.weight,
            'threshold': row.threshold, 'imbalance_before': row.imbalance_before,
            'imbalance_after': row.imbalance_after} for row in report.policies],
        'combined_before': report.combined_before, 'combined_after': report.combined_after,
        'hosts_emptied': list(report.hosts_emptied),
        'moves': [{
            'order': move.order, 'phase': move.phase,
            'instance_uuid': shapes.label(move.instance_uuid),
            'source': move.source, 'destination': move.destination, 'memory_mb': move.memory_mb,
            'combined_after': move.combined_after, 'reason': move.reason, 'group': move.group}
            for move in report.moves],
        'not_moved': [{'reason': skip.reason, 'count': len(skip.instances),
                       'instances': [*map(shapes.label, skip.instances)],
                       **({'details': {shapes.label(uuid): why for uuid, why in skip.details}}
                          if skip.details else {})}
                      for skip in report.not_moved],
        'notes': list(report.notes), 'warnings': list(report.warnings)}


def print_tables(replayed: Replayed, console: Console) -> None:
    """Print a sentence about the source of the options, followed by tables for each aggregate."""
    report = replayed.report
    console.print(_shown(replayed.note))
    if replayed.changed is not None:
        _print_changes(replayed.changed, replayed.loads, console)
    for aggregate in report.aggregates:
        console.print(_shown(f'Aggregate {aggregate.name}: {aggregate.outcome} '
                             f'({aggregate.mode}, planner {aggregate.planner})'))
        for table in (_policies(aggregate), _moves(aggregate), _stayed(aggregate)):
            if table.row_count:
                console.print(table)
        if aggregate.hosts_emptied:
            console.print(_shown('Emptied: ' + ', '.join(aggregate.hosts_emptied)))
        for note in aggregate.notes:
            console.print(_shown(f'Note: {note}'))
        for warning in aggregate.warnings:
            console.print(_shown(f'Warning: {warning}'))
        console.print()
    console.print(f'Planned in {report.planning_seconds:.3f} s')


def _print_changes(changed: Changed, loads: tuple[SupposedLoad, ...], console: Console) -> None:
    """Print the effects of hypothetical changes, and the load before and after the changes."""
    for uuid, why in changed.left.items():
        console.print(_shown(f'Does not restart: {uuid}: {why}'))
    for flavor, count in changed.not_booted.items():
        console.print(_shown(f'No room for {count} of the new servers {flavor}.'))
    console.print(f'{plural.count(len(changed.restarted), "server", "restart")} elsewhere.')
    table = _table('Aggregate', 'Policy', 'Host', 'Now', 'Changed', 'Planned')
    for each in loads:
        _add(table, each.aggregate, each.policy, each.host or '(imbalance)',
             *map(_figure, (each.now, each.changed, each.planned)))
    if table.row_count:
        console.print(table)


def print_day(day: list[Replayed], console: Console) -> None:
    """Print a sentence about the source of the options, followed by one table for several replays.
    The table has a row for each aggregate of each snapshot."""
    notes = collections.Counter(each.note for each in day)
    for note, count in sorted(notes.items()):
        console.print(_shown(note if len(notes) == 1 else f'{count} of {len(day)}: {note}'))
    table = _table('Snapshot', 'Aggregate', 'Outcome', 'Moves', 'Before', 'After')
    for each in day:
        for aggregate in each.report.aggregates:
            _add(table, each.name, aggregate.name, aggregate.outcome, str(len(aggregate.moves)),
                          _figure(aggregate.combined_before), _figure(aggregate.combined_after))
    console.print(table)
    moves = sum(len(aggregate.moves) for each in day for aggregate in each.report.aggregates)
    console.print(f'Snapshots: {len(day)}, moves: {moves}')


def _policies(report: AggregateReport) -> Table:
    table = _table('Policy', 'State', 'Weight', 'Threshold', 'Before', 'After', 'Detail')
    for row in report.policies:
        _add(table, row.name, row.state, f'{row.weight:.2f}', f'{row.threshold:.3f}',
                      _figure(row.imbalance_before), _figure(row.imbalance_after), _detail(row))
    if report.combined_before is not None:
        _add(table, 'combined', '', '', '', _figure(report.combined_before),
                      _figure(report.combined_after), '')
    return table


def _detail(row: PolicyReport) -> str:
    """Return a remark on a policy that has no data, or whose forecast is not used; '' for any other
    policy."""
    if row.forecast and row.forecast.state != FORECAST_USED:
        return f'planned without its forecast: {row.forecast.detail}'
    return row.detail


def _moves(report: AggregateReport) -> Table:
    table = _table('#', 'Phase', 'Instance', 'From', 'To', 'MiB', 'Why')
    for move in report.moves:
        _add(table, str(move.order), move.phase, shapes.label(move.instance_uuid), move.source,
                      move.destination, str(move.memory_mb), move.reason)
    return table


def _stayed(report: AggregateReport) -> Table:
    table = _table('Not moved because', 'Instances', 'Such as')
    for skip in report.not_moved:
        _add(table, skip.reason, str(len(skip.instances)), shapes.label(skip.instances[0]))
    return table


def _table(*columns: str) -> Table:
    table = Table()
    for column in columns:
        table.add_column(column, overflow='fold')
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*map(_shown, cells))


def _shown(foreign: str) -> Text:
    """Return a text from a snapshot in a form that is safe to print. The result has no control
    characters, and markup in the text is not interpreted."""
    return Text(boundary.shown(foreign, LONGEST))


def _figure(value: float | None) -> str:
    return '' if value is None else f'{value:.4f}'
