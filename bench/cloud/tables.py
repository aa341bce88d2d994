"""Writes a cloud straight into the tables of Nova and placement: made by their APIs it would take
hours. Who holds what in placement agrees with where Nova says that instances run."""

import base64
import dataclasses
import datetime
import itertools
import json
import random
import uuid

PROJECTS = 40
FLAVORS = 25
BATCH = 2000
RATIOS = {'VCPU': 4.0, 'MEMORY_MB': 1.0, 'DISK_GB': 1.0}
HOST = {'VCPU': 64, 'MEMORY_MB': 512 * 1024, 'DISK_GB': 8000}
# What real servers carry, and what Kronos has no use for.
USER_DATA = base64.b64encode(random.Random(1).randbytes(1200)).decode()
KEY_DATA = 'ssh-rsa ' + base64.b64encode(random.Random(2).randbytes(280)).decode()
IMAGE = 'c1b5f4a2-6d2e-4f55-9a01-6f0f4ac3d1aa'
SYSTEM_METADATA = {'image_base_image_ref': IMAGE, 'image_container_format': 'bare',
                   'image_disk_format': 'qcow2', 'image_min_disk': '10', 'image_min_ram': '0',
                   'image_hw_disk_bus': 'virtio', 'image_os_distro': 'debian', 'owner_id': 'o'}
NETWORK_INFO = json.dumps([{
    'id': '4d2b86a1-9e4c-4a9e-8f83-6d3f2f0c5a11', 'address': 'fa:16:3e:00:00:01', 'type': 'ovs',
    'network': {'id': '0f3f9f0e-53a0-45a5-a1f8-7ecb4bb1d7a0', 'bridge': 'br-int', 'label': 'net',
                'subnets': [{'cidr': '10.0.0.0/16', 'dns': [], 'routes': [], 'version': 4,
                             'gateway': {'address': '10.0.0.1', 'type': 'gateway', 'version': 4},
                             'ips': [{'address': '10.0.7.7', 'type': 'fixed', 'version': 4}]}],
                'meta': {'injected': False, 'tenant_id': 't', 'mtu': 1450}},
    'details': {'port_filter': True, 'connectivity': 'l2'}, 'devname': 'tap4d2b86a1-9e',
    'vnic_type': 'normal', 'profile': {}, 'active': True, 'preserve_on_delete': False}])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    hosts: int
    vms: int
    hosts_per_aggregate: int
    migrations: int

    @property
    def aggregates(self):
        return [f'aggregate{number}' for number in range(self.hosts // self.hosts_per_aggregate)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    uuid: str
    number: int
    host: int
    flavor: int
    project: str
    load: float


class Cloud:
    """The same for the same size, but for the uuids' times. ``nodes`` are uuids by number."""

    def __init__(self, size):
        self.size = size
        self._random = random.Random(4711)
        self.nodes = [self._uuid() for _ in range(size.hosts)]
        self.flavors = [self._flavor(number) for number in range(FLAVORS)]
        # Some hosts are busier than others, which is what there is to plan.
        busy = [self._random.uniform(0.15, 0.75) for _ in range(size.hosts)]
        self.vms = [self._vm(number, number % size.hosts, busy[number % size.hosts])
                    for number in range(size.vms)]

    def _uuid(self):
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _flavor(self, number):
        return {'id': number + 1, 'name': f'm{number}', 'vcpus': 1 + number % 4,
                'memory_mb': 1024 * (1 + number % 8), 'root_gb': 10 + number,
                'flavorid': str(number),
                'extra_specs': {'quota:cpu_shares': str(1024 * (1 + number % 4))}}

    def _vm(self, number, host, busy):
        flavor = self._random.randrange(FLAVORS)
        return Vm(uuid=self._uuid(), number=number + 1, host=host, flavor=flavor,
                  project=f'{self._random.randrange(PROJECTS):032x}',
                  load=busy * self._random.uniform(0.3, 1.7))

    def resources(self, vm):
        flavor = self.flavors[vm.flavor]
        return {'VCPU': flavor['vcpus'], 'MEMORY_MB': flavor['memory_mb'],
                'DISK_GB': flavor['root_gb']}

    # -- what Prometheus says

    def series(self):
        """Return the answers of Prometheus as {query: (label, {value of the label: number})}."""
        cpu = {vm.uuid: vm.load * self.flavors[vm.flavor]['vcpus'] / HOST['VCPU']
               for vm in self.vms}
        memory = {vm.uuid: 0.8 * self.flavors[vm.flavor]['memory_mb'] / HOST['MEMORY_MB']
                  for vm in self.vms}
        return {'bench_vm_cpu': ('uuid', cpu), 'bench_vm_memory': ('uuid', memory),
                'bench_host_cpu': ('host', self._by_host(cpu)),
                'bench_host_memory': ('host', self._by_host(memory))}

    def _by_host(self, loads):
        hosts = {host_name(number): 0.02 for number in range(self.size.hosts)}
        for vm in self.vms:
            hosts[host_name(vm.host)] += loads[vm.uuid]
        return {name: min(load, 1.0) for name, load in hosts.items()}

    # -- tables

    def fill(self, database):
        for name, fill in (('nova_api', self._fill_api), ('nova_cell1', self._fill_cell),
                           ('placement', self._fill_placement)):
            with database.connect(name) as connection:
                fill(connection)
                _analyze(connection)

    def _fill_api(self, connection):
        cell = _query(connection, "SELECT id FROM cell_mappings WHERE name = 'cell1'")[0]['id']
        size, now = self.size, _now()
        hosts = range(size.hosts)
        _insert(connection, 'host_mappings', ('cell_id', 'host', 'created_at'),
                ((cell, host_name(number), now) for number in hosts))
        _insert(connection, 'instance_mappings',
                ('cell_id', 'instance_uuid', 'project_id', 'user_id', 'queued_for_delete',
                 'created_at'),
                ((cell, vm.uuid, vm.project, 'user', 0, now) for vm in self.vms))
        _insert(connection, 'aggregates', ('id', 'uuid', 'name', 'created_at'),
                ((number + 1, self._uuid(), name, now)
                 for number, name in enumerate(size.aggregates)))
        _insert(connection, 'aggregate_metadata', ('aggregate_id', '`key`', 'value', 'created_at'),
                ((number + 1, 'availability_zone', f'az{number % 3}', now)
                 for number in range(len(size.aggregates))))
        _insert(connection, 'aggregate_hosts', ('aggregate_id', 'host', 'created_at'),
                ((number // size.hosts_per_aggregate + 1, host_name(number), now)
                 for number in hosts if number // size.hosts_per_aggregate < len(size.aggregates)))
        self._fill_groups(connection, now)

    def _fill_groups(self, connection, now):
        """Write a server group of three members on different hosts for every 60 instances."""
        groups = list(range(self.size.vms // 60))
        _insert(connection, 'instance_groups',
                ('id', 'uuid', 'name', 'user_id', 'project_id', 'created_at'),
                ((number + 1, self._uuid(), f'group{number}', 'user', 'project', now)
                 for number in groups))
        _insert(connection, 'instance_group_policy', ('group_id', 'policy', 'created_at'),
                ((number + 1, ('anti-affinity', 'soft-anti-affinity')[number % 2], now)
                 for number in groups))
        _insert(connection, 'instance_group_member', ('group_id', 'instance_uuid', 'created_at'),
                ((number + 1, self.vms[60 * number + member].uuid, now)
                 for number in groups for member in range(3)))

    def _fill_cell(self, connection):
        now = _now()
        names = [host_name(number) for number in range(self.size.hosts)]
        _insert(connection, 'services',
                ('id', 'uuid', 'host', '`binary`', 'topic', 'report_count', 'disabled',
                 'last_seen_up', 'updated_at', 'created_at', 'version', 'forced_down', 'deleted'),
                ((number + 1, self._uuid(), name, 'nova-compute', 'compute', 1, 0, now, now, now,
                  _service_version(), 0, 0) for number, name in enumerate(names)))
        _insert(connection, 'compute_nodes',
                ('id', 'uuid', 'host', 'hypervisor_hostname', 'vcpus', 'memory_mb', 'local_gb',
                 'vcpus_used', 'memory_mb_used', 'local_gb_used', 'hypervisor_type',
                 'hypervisor_version', 'cpu_info', 'stats', 'created_at', 'mapped', 'deleted',
                 'cpu_allocation_ratio', 'ram_allocation_ratio', 'disk_allocation_ratio'),
                ((number + 1, self.nodes[number], name, name, HOST['VCPU'], HOST['MEMORY_MB'],
                  HOST['DISK_GB'], 0, 0, 0, 'QEMU', 7002000, '{}', '{}', now, 1, 0, 4.0, 1.0, 1.0)
                 for number, name in enumerate(names)))
        self._fill_instances(connection, now)
        self._fill_migrations(connection)

    def _fill_instances(self, connection, now):
        created = now - datetime.timedelta(days=30)
        _insert(connection, 'instances',
                ('id', 'uuid', 'user_id', 'project_id', 'display_name', 'hostname', 'host', 'node',
                 'compute_id', 'vm_state', 'power_state', 'memory_mb', 'vcpus', 'root_gb',
                 'ephemeral_gb', 'instance_type_id', 'user_data', 'key_name', 'key_data',
                 'created_at', 'updated_at', 'launched_at', 'deleted', 'cleaned', 'hidden',
                 'locked', 'launched_on', 'availability_zone', 'image_ref'),
                (self._instance(vm, created) for vm in self.vms))
        flavors = [_flavor_json(flavor) for flavor in self.flavors]
        _insert(connection, 'instance_extra', ('instance_uuid', 'flavor', 'created_at', 'deleted'),
                ((vm.uuid, flavors[vm.flavor], created, 0) for vm in self.vms))
        _insert(connection, 'instance_metadata',
                ('instance_uuid', '`key`', 'value', 'created_at', 'deleted'),
                self._metadata(created))
        _insert(connection, 'instance_system_metadata',
                ('instance_uuid', '`key`', 'value', 'created_at', 'deleted'),
                ((vm.uuid, key, value, created, 0) for vm in self.vms
                 for key, value in SYSTEM_METADATA.items()))
        _insert(connection, 'instance_info_caches',
                ('instance_uuid', 'network_info', 'created_at', 'deleted'),
                ((vm.uuid, NETWORK_INFO, created, 0) for vm in self.vms))

    def _instance(self, vm, created):
        flavor, host = self.flavors[vm.flavor], host_name(vm.host)
        return (vm.number, vm.uuid, 'user', vm.project, f'vm{vm.number}', f'vm{vm.number}', host,
                host, vm.host + 1, 'active', 1, flavor['memory_mb'], flavor['vcpus'],
                flavor['root_gb'], 0, flavor['id'], USER_DATA, 'key', KEY_DATA, created, created,
                created, 0, 0, 0, 0, host, 'az0', IMAGE)

    def _metadata(self, created):
        for vm in self.vms:
            if vm.number % 4 == 0:
                for name in ('owner', 'cost_center', 'stage'):
                    yield vm.uuid, name, 'something', created, 0
            if vm.number % 100 == 0:
                yield vm.uuid, 'kronos:move', 'never', created, 0

    def _fill_migrations(self, connection):
        """Live migrations that ended well, evenly over the last 20 hours."""
        now, size = _now(), self.size
        step = datetime.timedelta(hours=20) / max(size.migrations, 1)
        _insert(connection, 'migrations',
                ('uuid', 'instance_uuid', 'source_compute', 'source_node', 'dest_compute',
                 'dest_node', 'status', 'migration_type', 'created_at', 'updated_at', 'deleted',
                 'hidden', 'user_id', 'project_id', 'cross_cell_move'),
                ((self._uuid(), vm.uuid, *([host_name((vm.host + 1) % size.hosts)] * 2),
                  *([host_name(vm.host)] * 2), 'completed', 'live-migration', ended, ended, 0, 0,
                  'user', vm.project, 0)
                 for vm, ended in ((self.vms[number * 7 % size.vms],
                                    now - datetime.timedelta(minutes=5) - number * step)
                                   for number in range(size.migrations))))

    def _fill_placement(self, connection):
        now = _now()
        classes = {row['name']: row['id'] for row in _query(
            connection, 'SELECT id, name FROM resource_classes')}
        _insert(connection, 'resource_providers',
                ('id', 'uuid', 'name', 'generation', 'root_provider_id', 'created_at'),
                ((number + 1, node, host_name(number), 1, number + 1, now)
                 for number, node in enumerate(self.nodes)))
        _insert(connection, 'inventories',
                ('resource_provider_id', 'resource_class_id', 'total', 'reserved', 'min_unit',
                 'max_unit', 'step_size', 'allocation_ratio', 'created_at'),
                ((number + 1, classes[name], total, 0, 1, total, 1, RATIOS[name], now)
                 for number in range(self.size.hosts) for name, total in HOST.items()))
        projects = sorted({vm.project for vm in self.vms})
        _insert(connection, 'projects', ('id', 'external_id', 'created_at'),
                ((number + 1, project, now) for number, project in enumerate(projects)))
        _insert(connection, 'users', ('id', 'external_id', 'created_at'), [(1, 'user', now)])
        numbers = {project: number + 1 for number, project in enumerate(projects)}
        _insert(connection, 'consumers',
                ('uuid', 'project_id', 'user_id', 'generation', 'created_at'),
                ((vm.uuid, numbers[vm.project], 1, 1, now) for vm in self.vms))
        _insert(connection, 'allocations',
                ('resource_provider_id', 'resource_class_id', 'consumer_id', 'used', 'created_at'),
                ((vm.host + 1, classes[name], vm.uuid, amount, now)
                 for vm in self.vms for name, amount in self.resources(vm).items()))


def host_name(number):
    return f'compute{number:05d}'


def _now():
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)


def _service_version():
    """Return the version of the services of the installed Nova. The compute services get it,
    because no conductor starts if they are too old."""
    from nova.objects import service
    return service.SERVICE_VERSION


def _flavor_json(flavor):
    """Return the JSON by which Nova stores a flavor with an instance."""
    from nova import objects
    objects.register_all()
    made = objects.Flavor(
        **flavor, ephemeral_gb=0, swap=0, rxtx_factor=1.0, vcpu_weight=0, disabled=False,
        is_public=True, description=None)
    return json.dumps({'cur': made.obj_to_primitive(), 'old': None, 'new': None})


def _query(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def _analyze(connection):
    """Analyze the tables, as the database does in time; until then it may take them for empty,
    and read all of an index that it needs one row of."""
    tables = _query(connection, 'SHOW TABLES')
    _query(connection, 'ANALYZE TABLE ' + ', '.join(f'`{name}`' for [name] in (
        table.values() for table in tables)))


def _insert(connection, table, columns, rows):
    marks = ', '.join(['%s'] * len(columns))
    statement = f'INSERT INTO {table} ({", ".join(columns)}) VALUES ({marks})'
    rows = iter(rows)
    with connection.cursor() as cursor:
        cursor.execute('SET unique_checks = 0, foreign_key_checks = 0')
        cursor.execute('BEGIN')
        while batch := list(itertools.islice(rows, BATCH)):
            cursor.executemany(statement, batch)
        cursor.execute('COMMIT')
