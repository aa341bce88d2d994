"""Slots that moves make out of fragments, in a published mapping of servers to NUMA cells.

The file is ``mapping.json`` or ``mapping.json.xz`` of bytedance/DRL-based-VM-Rescheduling. Of each
number servers are shuffled by it and dropped from the end until the fragment rate is at most
:data:`RATE`, as its authors do.
"""

import json
import lzma
import pathlib
import random
import time

from bench import report
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.numa import InstanceCell
from kronos_nova.objects.numa import NumaCell
from kronos_nova.objects.shape import Shape

CPUS = 16
"""CPUs of the servers that are to fit, in one cell."""
RATE = 0.555
UP = objects.Service(state='up', status='enabled')


def register(subparsers):
    parser = subparsers.add_parser(
        'fragments', help='slots that moves make out of fragments of NUMA cells')
    parser.add_argument('mapping', type=pathlib.Path, metavar='FILE',
                        help='mapping.json or mapping.json.xz of the published data')
    parser.add_argument('--numbers', type=int, default=5, metavar='N',
                        help='mappings that are made of it (default 5)')
    parser.add_argument('--moves', type=int, default=50, metavar='N',
                        help='moves of a plan (default 50)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    rows = [row(args.mapping, number, args.moves) for number in range(args.numbers)]
    return report.Report(tables=(report.Table(
        f'servers of {CPUS} CPUs in one cell', ('number', 'servers', 'rate', 'after', 'slots',
                                                'after', 'moves', 'CPU s'), rows),))


def row(path, number, moves):
    """Return (number of the mapping, servers, fragment rate before and after, slots before and
    after, moves, CPU seconds)."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.planners.base import Limits
    from kronos_nova.room import defragmenting
    snapshot = derived(path, number)
    shape = Shape(name=str(CPUS), vcpus=CPUS, memory_mb=1, extra_specs={
        'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1'})
    begin = time.process_time()
    plan = defragmenting.plan(snapshot, ConstraintRules(), shape, Limits(budget=moves))
    took = time.process_time() - begin
    return (number, len(snapshot.instances), rate(snapshot), rate(defragmenting.after(
        snapshot, plan.moves, ConstraintRules())), plan.before.total, plan.after.total,
        len(plan.moves), round(took, 2))


def rate(snapshot) -> float:
    """Return the fragment rate of a cloud: the part of the free CPUs that do not fill a whole slot
    in their cell."""
    free = [cell.pinned_cpus - cell.pinned_used for host in snapshot.hosts for cell in host.cells]
    return round(sum(count % CPUS for count in free) / sum(free), 4)


def mapping(path):
    """Read a published mapping.

    :returns: hosts, to their cells: {number: [CPUs, free CPUs, MiB of huge pages, free MiB]}; and
        servers: (host, [(number of the cell, CPUs, MiB)])
    """
    opened = lzma.open if path.suffix == '.xz' else open
    with opened(path) as file:
        clusters = json.load(file)['cluster_list']
    hosts, servers = {}, []
    for which, cluster in enumerate(clusters):
        for host in cluster['host_info']:
            hosts[which, host['node_id']] = {
                cell['node']: [int(cell['total_cpu']), int(cell['free_cpu']),
                               int(cell['memory_huge_total_mb']),
                               int(cell['memory_huge_free_mb'])] for cell in host['numa']}
        servers += [((which, each['host_id']), [
            (part['node'], int(part['cpu']), int(part['mem_mb'])) for part in each['numa']])
            for each in cluster['vm_instance']]
    return hosts, servers


def derived(path, number):
    """Return the cloud of the published mapping with a number."""
    hosts, servers = mapping(path)
    random.Random(number).shuffle(servers)

    def fragments():
        free = [cell[1] for cells in hosts.values() for cell in cells.values()]
        return sum(count % CPUS for count in free) / sum(free)

    while fragments() > RATE:
        host, parts = servers.pop()
        for node, cpus, memory in parts:
            hosts[host][node][1] += cpus
            hosts[host][node][3] += memory
    return objects.Snapshot(
        taken_at='2026-11-26T12:00:00+00:00',
        hosts=tuple(_host(host, cells) for host, cells in hosts.items()),
        instances=tuple(_instance(n, *each) for n, each in enumerate(servers)))


def _name(host):
    return f'{host[1]}-{host[0]}'


def _host(host, cells):
    return objects.Host(
        name=_name(host), uuid=f'uuid-{_name(host)}', service=UP,
        inventory={'PCPU': objects.ResourceInventory(total=sum(c[0] for c in cells.values())),
                   'MEMORY_MB': objects.ResourceInventory(total=sum(c[2] for c in cells.values()))},
        used={'PCPU': sum(c[0] - c[1] for c in cells.values()),
              'MEMORY_MB': sum(c[2] - c[3] for c in cells.values())},
        cells=tuple(NumaCell(id=node, memory_mb=total_mb, memory_used_mb=total_mb - free_mb,
                             pinned_cpus=total, pinned_used=total - free)
                    for node, (total, free, total_mb, free_mb) in sorted(cells.items())))


def _instance(number, host, parts):
    cpus, memory = (sum(part[n] for part in parts) for n in (1, 2))
    return objects.Instance(
        uuid=f'{number:08d}-0000-4000-8000-000000000000', name=f'instance-{number:08x}',
        display_name=f'server{number}', host=_name(host), project_id='p', status='ACTIVE',
        vcpus=cpus, memory_mb=memory, disk_gb=0, resources={'PCPU': cpus, 'MEMORY_MB': memory},
        cells=tuple(InstanceCell(cpus=part[1], memory_mb=part[2], pinned=True) for part in parts),
        on_cells=tuple(part[0] for part in parts))
