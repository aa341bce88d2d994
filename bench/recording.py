"""Writes a cluster of ``data/clusters`` as a snapshot folder, as kronos-record would have."""

import json
import pathlib
import uuid

import yaml

from bench import inputs
from kronos_nova.objects import snapshot
from kronos_nova.record import writer

TAKEN_AT = '2026-11-20T00:00:00Z'
AGGREGATE = 'cluster'
RATIOS = {'VCPU': inputs.CPU_RATIO, 'MEMORY_MB': 1.0}


def write(name: str, folder: pathlib.Path, threshold: float = 0.05, budget: int = 50):
    data = inputs.read(f'clusters/{name}')
    size = {host['name']: {'cpu': host['vcpus'], 'memory': host['memory_mb']}
            for host in data['hosts']}
    loads = {vm['uuid']: (vm['host'], {
        'cpu': vm['cpu_util'] * vm['vcpus'] / size[vm['host']]['cpu'],
        'memory': vm['mem_util_mb'] / size[vm['host']]['memory']}) for vm in data['vms']}
    writer.write(writer.Taken(
        snapshot=_snapshot(data), policies=_policies(threshold, budget).encode(),
        bodies=dict(_bodies(size, loads)), kronos_version='0', cloud=name), folder)


def _snapshot(data):
    hosts = tuple(snapshot.Host(
        name=host['name'], uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, host['name'])),
        service=snapshot.Service(state='up', status='enabled'),
        inventory={name: snapshot.ResourceInventory(total=host[key], allocation_ratio=RATIOS[name])
                   for name, key in (('VCPU', 'vcpus'), ('MEMORY_MB', 'memory_mb'))})
        for host in data['hosts'])
    instances = tuple(snapshot.Instance(
        uuid=vm['uuid'], name=f'instance-{number:08x}', display_name=f'vm{number}',
        host=vm['host'], project_id='p', status='ACTIVE', vcpus=vm['vcpus'],
        memory_mb=vm['memory_mb'], disk_gb=0,
        resources={'VCPU': vm['vcpus'], 'MEMORY_MB': vm['memory_mb']})
        for number, vm in enumerate(data['vms']))
    whole = snapshot.Aggregate(name=AGGREGATE, uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, AGGREGATE)),
                               hosts=tuple(host.name for host in hosts))
    return snapshot.Snapshot(taken_at=TAKEN_AT, hosts=hosts, instances=instances,
                             aggregates=(whole,))


def _policies(threshold, budget):
    return yaml.safe_dump({'policies': [
        {'name': name, 'mode': 'spread', 'weight': 0.5, 'threshold': threshold,
         'imbalance_query': f'recorded_{name}', 'vm_profile_query': f'recorded_vm_{name}',
         'max_migrations_per_cycle': budget} for name in ('cpu', 'memory')]})


def _bodies(size, loads):
    for policy in ('cpu', 'memory'):
        hosts = dict.fromkeys(size, 0.0)
        for host, load in loads.values():
            hosts[host] += load[policy]
        yield (policy, 'imbalance'), _vector('host', hosts)
        yield (policy, 'vm_profile'), _vector(
            'uuid', {vm: load[policy] for vm, (_host, load) in loads.items()})


def _vector(label, values):
    result = [{'metric': {label: name}, 'value': [0, repr(value)]}
              for name, value in values.items()]
    return json.dumps({'status': 'success',
                       'data': {'resultType': 'vector', 'result': result}}).encode()
