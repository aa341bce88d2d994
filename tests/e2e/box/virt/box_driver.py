"""A hypervisor that keeps its guests in a file and migrates as a test sets.

Loaded by nova-compute as ``compute_driver = box_driver.BoxDriver``. Unlike Nova's own fake
driver it survives a restart (node uuid and guests are files under ``state_path``), says it is
QEMU, and reads ``faults.json`` of the box while a live migration runs::

    {"default": {"seconds": 3.0},
     "hosts": {"compute1": {"outcome": "fail"}},
     "instances": {"<uuid or display name>": {"outcome": "hang"}}}

``seconds`` (how long it takes), ``outcome``: ``complete``, ``fail`` (rolls back half-way), ``hang``
(until this file says otherwise, or it is aborted or forced) or ``refuse`` (the destination's
check). The entry of an instance goes before that of its source host, and that before
the default; a change also applies to migrations in progress.
"""

import collections
import json
import os
import pathlib
import time

import nova.conf
from nova import exception
from nova.virt import fake
from oslo_config import cfg
from oslo_log import log as logging

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF
CONF.register_opts([
    cfg.StrOpt('faults', help='The box\' faults.json.'),
    cfg.IntOpt('vcpus', default=16, help='CPUs of this host.'),
    cfg.IntOpt('memory_mb', default=65536, help='Memory of this host in MiB.'),
    cfg.IntOpt('disk_gb', default=10000, help='Disk of this host in GiB.'),
], group='box')

TICK = 0.2
DEFAULTS = {'seconds': 3.0, 'outcome': 'complete'}


class BoxDriver(fake.FakeDriverWithoutFakeNodes):
    def __init__(self, virtapi, read_only=False):
        self.vcpus = CONF.box.vcpus
        self.memory_mb = CONF.box.memory_mb
        self.local_gb = CONF.box.disk_gb
        super().__init__(virtapi, read_only)
        self.host_status_base['hypervisor_type'] = 'QEMU'
        self.host_status_base['hypervisor_version'] = 8002002
        self._guests = Guests(pathlib.Path(CONF.state_path) / 'guests.json')
        self.instances = self._guests.load()
        # Requests for migrations in progress: instance uuid -> 'abort' or 'force'.
        self._asked = {}

    def _set_nodes(self, nodes):
        super()._set_nodes([CONF.host])

    def get_host_uptime(self):
        return '00:00:00 up 1 day,  0:00,  0 users,  load average: 0.00, 0.00, 0.00'

    def spawn(self, context, instance, *args, **kwargs):
        super().spawn(context, instance, *args, **kwargs)
        self._guests.describe(instance)
        self._guests.save(self.instances)

    def destroy(self, context, instance, *args, **kwargs):
        super().destroy(context, instance, *args, **kwargs)
        self._guests.save(self.instances)

    def power_off(self, instance, *args, **kwargs):
        super().power_off(instance, *args, **kwargs)
        self._guests.save(self.instances)

    def power_on(self, context, instance, *args, **kwargs):
        super().power_on(context, instance, *args, **kwargs)
        self._guests.save(self.instances)

    def cleanup(self, context, instance, *args, **kwargs):
        """Unlike Nova's fake, no error for a guest that is already gone."""

    def check_can_live_migrate_destination(self, context, instance, *args, **kwargs):
        if _orders(instance)['outcome'] == 'refuse':
            raise exception.MigrationPreCheckError(reason='faults.json says refuse')
        return super().check_can_live_migrate_destination(context, instance, *args, **kwargs)

    def live_migration(self, context, instance, dest, post_method, recover_method,
                       block_migration=False, migrate_data=None):
        self._asked.pop(instance.uuid, None)
        outcome = self._copy_memory(instance, migrate_data.migration)
        if outcome == 'complete':
            post_method(context, instance, dest, block_migration, migrate_data)
        else:
            recover_method(context, instance, dest, migrate_data, migration_status=outcome)

    def _copy_memory(self, instance, migration):
        """Let the time pass, with progress, until the migration has a status: its result."""
        started = time.monotonic()
        while True:
            asked, orders = self._asked.pop(instance.uuid, None), _orders(instance)
            share = (time.monotonic() - started) / max(orders['seconds'], TICK / 10)
            if asked:
                return 'cancelled' if asked == 'abort' else 'complete'
            if orders['outcome'] == 'fail' and share >= 0.5:
                return 'failed'
            if orders['outcome'] not in ('hang', 'fail') and share >= 1:
                return 'complete'
            _progress(migration, instance, min(share, 0.99))
            time.sleep(TICK)

    def live_migration_abort(self, instance):
        self._asked[instance.uuid] = 'abort'

    def live_migration_force_complete(self, instance):
        self._asked[instance.uuid] = 'force'

    def post_live_migration(self, context, instance, block_device_info, migrate_data=None):
        self.destroy(context, instance, network_info=None, block_device_info=block_device_info)

    def post_live_migration_at_source(self, context, instance, network_info):
        """Nothing is plugged."""

    def rollback_live_migration_at_destination(self, context, instance, *args, **kwargs):
        """Nothing was started there."""


class Guests:
    """This host's guests as a file; the load exporter reads it too."""

    def __init__(self, path):
        self._path = path
        self._described = {}

    def load(self):
        instances = collections.OrderedDict()
        if self._path.exists():
            for uuid, guest in json.loads(self._path.read_text()).items():
                instances[uuid] = fake.FakeInstance(guest['name'], guest['state'], uuid)
                self._described[uuid] = guest
        return instances

    def describe(self, instance):
        self._described[instance.uuid] = {
            'display_name': instance.display_name, 'vcpus': instance.flavor.vcpus,
            'memory_mb': instance.flavor.memory_mb}

    def save(self, instances):
        written = {uuid: {**self._described[uuid], 'name': guest.name, 'state': guest.state}
                   for uuid, guest in list(instances.items())}
        partial = self._path.with_suffix(f'.{time.monotonic_ns()}')
        partial.write_text(json.dumps(written))
        os.replace(partial, self._path)


def _orders(instance):
    """The entry of faults.json for this instance's live migration."""
    try:
        said = json.loads(pathlib.Path(CONF.box.faults).read_text())
    except FileNotFoundError:
        return DEFAULTS
    of_instance = said.get('instances', {})
    return {**DEFAULTS, **said.get('default', {}),
            **said.get('hosts', {}).get(instance.host, {}),
            **of_instance.get(instance.display_name, {}), **of_instance.get(instance.uuid, {})}


def _progress(migration, instance, share):
    total = instance.flavor.memory_mb * 1024 * 1024
    migration.memory_total = total
    migration.memory_processed = int(total * share)
    migration.memory_remaining = total - migration.memory_processed
    migration.save()
