"""The time that ``kronos-manage allocations audit`` takes: a real placement and Nova's real tables.

Starts MariaDB and placement (as the cloud in a box does), fills them with instances of which some
of each kind are broken, and runs the command as an operator would.
"""

import json
import resource
import subprocess
import time
import uuid

from bench import report
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.client import PlacementClient
from tests.e2e.box.services import Services
from tests.e2e.box.settings import command

SMALL = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}
PROJECT = 'a-project'
VERSION = {'OpenStack-API-Version': 'placement 1.38'}


def fill(services, hosts, per_host, broken):
    """Fill Nova and placement with instances, some of them with wrong allocations, and return {kind
    of the fault: number of instances that have it}."""
    ask = services.adapter
    nodes, instances = [], []
    for number in range(hosts):
        node = str(uuid.uuid4())
        ask.post('/resource_providers', json={'uuid': node, 'name': f'host{number}'},
                 headers=VERSION)
        ask.put(f'/resource_providers/{node}/inventories', headers=VERSION, json={
            'resource_provider_generation': 0,
            'inventories': {name: {'total': 100000} for name in SMALL}})
        nodes.append(node)
    held = {}
    for number, node in enumerate(nodes):
        mine = [str(uuid.uuid4()) for _ in range(per_host)]
        instances += [(each, number) for each in mine]
        held.update({each: {node: SMALL} for each in mine})
    names = iter(list(held))
    for _ in range(broken):
        held[next(names)] = {}
        held[next(names)] = {nodes[-1]: SMALL}
        held[next(names)] |= {nodes[-1]: SMALL}
        held[str(uuid.uuid4())] = {nodes[-1]: SMALL}
    _allocate(PlacementClient(ask), held)
    services.record(nodes, instances)
    return {kind: broken for kind in ('missing', 'misplaced', 'doubled', 'unknown')}


def _allocate(client, held):
    consumers = [Consumer(uuid=each, allocations=allocations, project_id=PROJECT, user_id='u',
                          consumer_type=INSTANCE)
                 for each, allocations in held.items() if allocations]
    for start in range(0, len(consumers), 100):
        client.post(AllocationSet(tuple(consumers[start:start + 100])))


def register(subparsers):
    parser = subparsers.add_parser(
        'audit', help='how long an audit of allocations takes against a real placement')
    parser.add_argument('--hosts', type=int, default=250)
    parser.add_argument('--per-host', type=int, default=20)
    parser.add_argument('--broken', type=int, default=5, help='of each kind')
    parser.add_argument('--limit', type=float, default=30, help='seconds that it may take')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    with Services() as services:
        expected = fill(services, args.hosts, args.per_host, args.broken)
        begun, worked = time.monotonic(), _cpu_seconds()
        done = subprocess.run(
            [*command('kronos-nova', 'kronos-manage'), '--config-file', services.nova_conf(),
             'allocations', 'audit', '-f', 'json'], capture_output=True, text=True)
        seconds, worked = time.monotonic() - begun, _cpu_seconds() - worked
    if done.returncode != 3:
        raise SystemExit(f'exit code {done.returncode}:\n{done.stdout}{done.stderr}')
    kinds = [each['Kind'] for each in json.loads(done.stdout)]
    found = {kind: kinds.count(kind) for kind in expected}
    failures = [f'found {found}, {expected} are broken'] if found != expected else []
    if seconds > args.limit:
        failures.append(f'{seconds:.1f} s, target {args.limit:.0f} s')
    return report.Report(
        tables=(report.Table('kronos-manage allocations audit',
                             ('hosts', 'instances', 'seconds', 'CPU seconds', *found),
                             [(args.hosts, args.hosts * args.per_host, round(seconds, 1),
                               round(worked, 1), *found.values())]),),
        failures=tuple(failures))


def _cpu_seconds():
    """CPU seconds of children that have ended: the command alone, as the services still run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
