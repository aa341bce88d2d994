"""Plans snapshots with the ``kronos_nova`` of one checkout, and writes the plans down as JSON.

    python -P tools/plan_snapshots.py CHECKOUT OUTPUT FOLDER...

``tools/compare-plans`` starts one process of this script for each checkout. It takes the script of
that checkout where there is one, so a checkout that renames modules changes the imports here.
OUTPUT gets one line a snapshot: what ``kronos-replay`` plans, and what drains of some hosts would.
"""

import collections
import dataclasses
import datetime
import gc
import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import kronos_nova
from kronos_nova import exception
from kronos_nova.cmd.replay import NAME
from kronos_nova.cmd.replay import Replay
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.drain import planning
from kronos_nova.drain.states import DRAINING
from kronos_nova.drain.states import Drain
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.record import replay

NO_LIMIT = 86400
"""Planning time limit in seconds. No plan is cut, so plans do not depend on the machine."""
OPTIONS = 'kronos.conf'
"""Name of an optional file in a snapshot's folder: the options to plan it with."""
DRAINED = 3
"""Aggregates of a snapshot in which hosts are drained. More take longer and show little more."""


def main(checkout: str, output: str, *folders: str) -> None:
    if not pathlib.Path(kronos_nova.__file__).resolve().is_relative_to(
            pathlib.Path(checkout).resolve()):
        sys.exit(f'{kronos_nova.__file__} is not in {checkout}: PYTHONPATH has to name the '
                 'checkout first')
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as limit, open(output, 'w') as lines:
        limit.write(f'[kronos]\nplanning_time_limit = {NO_LIMIT}\n')
        limit.flush()
        for folder in folders:
            lines.write(json.dumps({'folder': folder, **plans(folder, limit.name)}) + '\n')


def plans(folder: str, limit: str) -> dict[str, Any]:
    """Return the plans of one snapshot, as a tree of JSON.

    :param limit: name of a file of options that overrides the snapshot's own
    """
    begun = time.monotonic()
    found: dict[str, Any]
    try:
        found = {'aggregates': replayed(folder, limit), 'drains': drained(folder)}
    except exception.KronosException as error:
        found = {'error': str(error)}
    finally:
        gc.enable()    # kronos-replay switches the collection off
    gc.collect()
    return {'plans': found, 'seconds': time.monotonic() - begun}


def replayed(folder: str, limit: str) -> list[dict[str, Any]]:
    """Return the report of every aggregate, before ``kronos-replay`` renders it."""
    app: Any = None     # a command without a program
    command = Replay(app, None)
    own = pathlib.Path(folder) / OPTIONS
    files = [str(own)] if own.exists() else []
    arguments = [f'--config-file={name}' for name in (*files, limit)]
    command.take_action(command.get_parser(NAME).parse_args([str(folder), *arguments]))
    [(_name, report, *_rest)] = command.day
    return [{**json.loads(aggregate.to_json()),
             'host_scores': list(map(dataclasses.asdict, aggregate.host_scores))}
            for aggregate in report.aggregates]


def drained(folder: str) -> list[dict[str, Any]]:
    """Return the plans of the drains of some hosts, in the first aggregates that have servers."""
    recording, policies = replay.read(folder)
    ports = PlannerPorts(source=recording.metrics, clock=time.monotonic, now=recording.taken_at)
    found = []
    for aggregate, wishes in wishes_of(recording.snapshot):
        outcome = planning.plan(
            recording.snapshot, policies, EngineOptions(planning_time_limit=NO_LIMIT), ports,
            aggregate, wishes)
        found.append({
            'aggregate': aggregate, 'hosts': [wish.host for wish in wishes],
            'report': json.loads(outcome.report.to_json()), 'cold': sorted(outcome.cold),
            'left': dict(outcome.left), 'blocked': {
                host: dict(servers) for host, servers in outcome.blocked.items()}})
    return found


def wishes_of(snapshot: Snapshot) -> Iterator[tuple[str, list[Drain]]]:
    """Yield (aggregate, its Drains): for each aggregate one with the fullest host alone, and one
    with the two emptiest hosts together."""
    servers = collections.Counter(server.host for server in snapshot.instances)
    scopes = [*sorted(aggregate.name for aggregate in snapshot.aggregates), UNASSIGNED]
    hosts_of = {scope: [host for host in snapshot.hosts_of(scope) if servers[host]]
                for scope in scopes}
    for scope in [scope for scope in scopes if hosts_of[scope]][:DRAINED]:
        hosts = sorted(hosts_of[scope], key=lambda host: (-servers[host], host))
        yield scope, [_wish(scope, hosts[0])]
        if len(hosts) > 3:
            yield scope, [_wish(scope, host, with_stopped=True, keep_spare=1, parallel=2,
                                avoid=(hosts[0],)) for host in hosts[-2:]]


def _wish(aggregate: str, host: str, **more: Any) -> Drain:
    return Drain(uuid=host, host=host, aggregate=aggregate, state=DRAINING, requested_by='test',
                 requested_at=datetime.datetime(2026, 11, 20, tzinfo=datetime.UTC), **more)


if __name__ == '__main__':
    main(*sys.argv[1:])
