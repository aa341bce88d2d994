"""Run a strategy of OpenStack Watcher on a cluster; started by :mod:`bench.watcher` with the
interpreter of an environment that has python-watcher, which shares nothing with Kronos.

Reads one JSON object from stdin (cluster, strategy, parameters, audits) and writes one (CPU seconds
of the strategy's ``execute()``, moves as [instance uuid, host]). With ``--each-line`` every line is
one of its own, and so is every answer.

The model that Watcher's strategies work on is its own ``ModelRoot``, filled with the cluster; the
metrics come from a datasource that knows it. After an audit the model follows its moves and the
metrics are perfect at once, which is better than Watcher ever has it.
"""

import json
import sys
import time

from oslo_config import cfg
from watcher.common import utils
from watcher.decision_engine.datasources import base
from watcher.decision_engine.model import element
from watcher.decision_engine.model import model_root
from watcher.decision_engine.strategy import strategies

CLASSES = {
    'workload_stabilization': strategies.WorkloadStabilization,
    'workload_balance': strategies.WorkloadBalance,
    'vm_workload_consolidation': strategies.VMWorkloadConsolidation,
    'node_resource_consolidation': strategies.NodeResourceConsolidation,
}
PROJECT = '26f03131-32cb-4697-9d61-9123f87a8147'
CREATED = '2026-01-01T00:00:00Z'


class Recorded(base.DataSourceBase):
    """Answers every metric from the cluster as it is now."""

    NAME = 'recorded'

    def __init__(self, cluster, where):
        super().__init__()
        self.hosts = {host['name']: host for host in cluster['hosts']}
        self.vms = {vm['uuid']: vm for vm in cluster['vms']}
        self.cpu = dict.fromkeys(self.hosts, 0.0)
        self.ram = dict.fromkeys(self.hosts, 0.0)
        for uuid, host in where.items():
            self.cpu[host] += self.vms[uuid]['cpu_util'] * self.vms[uuid]['vcpus']
            self.ram[host] += self.vms[uuid]['mem_util_mb']

    def statistic_aggregation(self, resource=None, resource_type=None, meter_name=None, period=300,
                              granularity=300, aggregate='mean', *_, **__):
        return getattr(self, f'get_{meter_name}')(resource)

    def get_host_cpu_usage(self, resource, *_, **__):
        return 100.0 * self.cpu[resource.uuid] / self.hosts[resource.uuid]['vcpus']

    def get_host_ram_usage(self, resource, *_, **__):
        return 1024.0 * self.ram[resource.uuid]

    def get_instance_cpu_usage(self, resource, *_, **__):
        return 100.0 * self.vms[resource.uuid]['cpu_util']

    def get_instance_ram_usage(self, resource, *_, **__):
        return self.vms[resource.uuid]['mem_util_mb']

    def get_instance_ram_allocated(self, resource, *_, **__):
        return self.vms[resource.uuid]['memory_mb']

    def get_instance_root_disk_size(self, resource, *_, **__):
        return 20

    def check_availability(self):
        return 'available'

    def list_metrics(self):
        return []

    def query_retry_reset(self, exception_instance):
        pass

    def statistic_series(self, *_, **__):
        return {}

    def get_host_inlet_temp(self, *_, **__):
        return None

    get_host_outlet_temp = get_host_airflow = get_host_power = get_host_inlet_temp
    get_instance_l3_cache_usage = get_host_inlet_temp


def model_of(cluster, where):
    model = model_root.ModelRoot()
    for host in cluster['hosts']:
        model.add_node(element.ComputeNode(
            uuid=host['name'], hostname=host['name'], status='enabled', state='up',
            disabled_reason=None, memory=host['memory_mb'], memory_mb_reserved=0,
            disk=host['disk_gb'], disk_gb_reserved=0, vcpus=host['vcpus'], vcpu_reserved=0,
            memory_ratio=1.0, vcpu_ratio=cluster.get('vcpu_ratio', 4.0), disk_ratio=1.0))
    for vm in cluster['vms']:
        host = where[vm['uuid']]
        instance = element.Instance(
            uuid=vm['uuid'], name=vm['uuid'], state='active', memory=vm['memory_mb'], disk=20,
            vcpus=vm['vcpus'], metadata={}, project_id=PROJECT, locked=False, host=host,
            hypervisor_hostname=host, created=CREATED, watcher_exclude=False)
        model.add_instance(instance)
        model.map_instance(instance, model.get_node_by_uuid(host))
    return model


def audit(request, where):
    """Run one audit of Watcher on the present cluster, and return (CPU seconds, [(server,
    destination) of each move])."""
    kind = CLASSES[request['strategy']]
    strategy = kind(config=utils.Struct(datasources=None, datasource=None))
    parameters = utils.Struct({
        name: prop.get('default') for name, prop in kind.get_schema()['properties'].items()})
    parameters.update(request['parameters'])
    strategy.input_parameters = parameters
    strategy._compute_model = model_of(request['cluster'], where)
    strategy._datasource_backend = Recorded(request['cluster'], where)
    start = time.process_time()
    solution = strategy.execute()
    used = time.process_time() - start
    return used, [(action['input_parameters']['resource_id'],
                   action['input_parameters']['destination_node'])
                  for action in solution.actions if action['action_type'] == 'migrate']


def answer(request):
    where = {vm['uuid']: vm['host'] for vm in request['cluster']['vms']}
    seconds, moves = 0.0, []
    for _ in range(request['audits']):
        used, found = audit(request, where)
        seconds += used
        moves += found
        where.update(found)
        if not found:
            break
    return {'seconds': seconds, 'moves': moves}


def main():
    cfg.CONF([], project='watcher')
    if '--each-line' in sys.argv:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), flush=True)
    else:
        json.dump(answer(json.load(sys.stdin)), sys.stdout)


if __name__ == '__main__':
    main()
