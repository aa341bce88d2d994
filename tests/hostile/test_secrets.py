"""Secrets: files, passwords, and the names of a cloud."""

import dataclasses
import json
import os
import pathlib
import stat

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.cmd import login
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.engine import locks
from kronos_nova.inventory import kinds
from kronos_nova.inventory import shape
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.movability import Where
from kronos_nova.policies import loader
from kronos_nova.record import anonymise
from kronos_nova.record import writer
from tests.unit.inventory import fakes_public_api

POLICIES = (b'policies:\n- {name: cpu, mode: spread, weight: 1.0, threshold: 0.1,\n'
            b'   imbalance_query: q, vm_profile_query: p}\n')


def body(label, *names):
    return json.dumps({'status': 'success', 'data': {'resultType': 'vector', 'result': [
        {'metric': {label: name, 'secret': 'acme'}, 'value': [1, '0.5']} for name in names]}
    }).encode()


class ModesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.addCleanup(os.umask, os.umask(0))

    def modes(self, folder):
        return {(stat.S_IMODE(path.stat().st_mode), path.is_dir())
                for path in [folder, *folder.rglob('*')]}

    def test_a_recording_is_its_owners(self):
        writer.write(taken(), self.folder / 'new' / 'snapshot')
        self.assertEqual({(0o700, True), (0o600, False)},
                         self.modes(self.folder / 'new' / 'snapshot'))

    def test_databases_are_too(self):
        for history in (migrate.CONTROL, migrate.CLAIMS):
            path = self.folder / f'{history.name}.sqlite'
            engine = db_engine.create_engine(f'sqlite:///{path}')
            self.assertFalse(path.exists())  # looking makes no file
            migrate.sync(engine, history)
        self.assertEqual({0o600}, {stat.S_IMODE(path.stat().st_mode)
                                   for path in self.folder.iterdir()})


class PasswordTest(testtools.TestCase):
    def test_the_address_of_the_locks_is_secret(self):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        secret = {f'{group}.{option.name}' for group, options in kronos_conf.list_opts()
                  for option in options if option.secret}
        self.assertIn('kronos.coordination_url', secret)

    def test_and_is_not_in_what_the_locks_say(self):
        error = self.assertRaises(
            exception.ConfigurationError, locks.AggregateLocks,
            'mysql://kronos:s3cret@127.0.0.1:1/kronos', None, 'one')
        self.assertNotIn('s3cret', str(error))

    def test_who_approves_is_whom_the_kernel_knows(self):
        for name in ('LOGNAME', 'USER', 'LNAME', 'USERNAME', 'SUDO_USER'):
            self.useFixture(fixtures.EnvironmentVariable(name, 'mallory'))
        self.assertNotIn('mallory', login.user())

    def test_with_who_logged_in_before_sudo(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'loginuid'
        path.write_text('1')
        self.patch(login, 'LOGIN_UID', path)
        self.assertEqual('daemon as root', login.user())
        path.write_text(str(2 ** 32 - 1))
        self.assertEqual('root', login.user())


def instance(uuid, **values):
    return objects.Instance(**{
        'uuid': uuid, 'name': f'instance-{uuid}', 'display_name': 'payroll-db', 'host': 'rack7-a',
        'project_id': 'acme-project', 'status': 'ACTIVE', 'vcpus': 1, 'memory_mb': 1, 'disk_gb': 1,
        'resources': {'VCPU': 1}, **values})


def taken(**values):
    host = objects.Host(
        name='rack7-a', uuid='host-uuid-a', cell='munich', inventory={
            'VCPU': objects.ResourceInventory(total=4),
            'CUSTOM_ACME_FPGA': objects.ResourceInventory(total=2)},
        used={'VCPU': 2, 'CUSTOM_ACME_FPGA': 1},
        service=objects.Service(state='up', status='disabled', disabled_reason='ask payroll-db'))
    snapshot = objects.Snapshot(
        taken_at='2026-11-20T12:00:00Z', hosts=(host,),
        instances=(
            instance('vm-uuid-1', metadata={'kronos:move': 'never: payroll-db of acme-project',
                                            'password': 'hunter2', 'kronos:owner': 'acme'}),
            instance('vm-uuid-2', flavor_extra_specs={
                'hw:cpu_policy': 'dedicated', 'acme:tier': 'acme-project/gold',
                'hw:acme_tier': '1', 'os:acme': '1', 'quota:acme': '1', 'capabilities:acme': '1',
                'trait:ACME_SSD': 'required', 'resources2:ACME': '1', 'hw:numa_cpus.0': '0,1',
                'trait2:HW_CPU_X86_AVX': 'required', 'hw:pmem': '004989123456789',
                'trait:CUSTOM_ACME_GOLD': 'required', 'resources:CUSTOM_ACME_FPGA': '1',
                'aggregate_instance_extra_specs:owner': 'acme-project',
                'kronos:move': 'only-evacuate'})),
        aggregates=(objects.Aggregate(
            name='payroll', uuid='agg-uuid', hosts=('rack7-a',), availability_zone='munich-1',
            metadata={'owner': 'acme-project', 'filter_tenant_id': 'acme-project, other-project',
                      'note': 'rack7-a is for payroll (payroll-db); see munich-1'}),),
        server_groups=(objects.ServerGroup(
            uuid='group-uuid', name='payroll group', policy='affinity',
            members=('vm-uuid-1', 'gone-uuid')),))
    return writer.Taken(**{
        'snapshot': snapshot, 'policies': POLICIES, 'kronos_version': '1', 'cloud': 'acme',
        'bodies': {('cpu', 'imbalance'): body('host', 'rack7-a', 'rack8-b'),
                   ('cpu', 'vm_profile'): body('uuid', 'vm-uuid-1', 'stranger-uuid')}, **values})


ORIGINALS = ('acme', 'payroll', 'rack7', 'rack8', 'munich', 'hunter2', 'uuid-1', 'gone-uuid',
             '4989123456789', 'stranger', 'other-project', 'agg-uuid', 'group-uuid', 'host-uuid',
             'gold')


class RecordingTest(testtools.TestCase):
    def test_metadata_of_servers_stays_out_unless_it_is_kronos_own(self):
        server = fakes_public_api.server(
            1, 'cmp1', metadata={'password': 'hunter2', 'kronos:move': 'never'})
        found = shape.instance(server, {}, {}, kinds.Kinds(), Where(), {})
        self.assertEqual({'kronos:move': 'never'}, found.metadata)

    def test_no_name_is_left_in_any_file_of_an_anonymised_one(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'snapshot'
        writer.write(anonymise.anonymise(taken(), loader.parse(POLICIES)), folder)
        paths = [*folder.rglob('*.*')]
        self.assertGreater(len(paths), 3)
        for path in paths:
            text = path.read_text().replace('host_uuid', '')
            for original in ORIGINALS:
                self.assertNotIn(original, text.lower(), path)

    def test_what_the_plan_uses_means_the_same(self):
        found = anonymise.anonymise(taken(), loader.parse(POLICIES)).snapshot
        aggregate, = found.aggregates
        one, two = found.instances
        self.assertEqual('never', one.metadata['kronos:move'])
        self.assertEqual('only-evacuate', two.flavor_extra_specs['kronos:move'])
        self.assertEqual('dedicated', two.flavor_extra_specs['hw:cpu_policy'])
        custom, = set(found.hosts[0].inventory) - {'VCPU'}
        self.assertEqual({'VCPU': 2, custom: 1}, found.hosts[0].used)
        self.assertEqual('1', two.flavor_extra_specs[f'resources:{custom}'])
        self.assertEqual(('0,1', 'required'), (
            two.flavor_extra_specs['hw:numa_cpus.0'],
            two.flavor_extra_specs['trait2:HW_CPU_X86_AVX']))
        for prefix in 'hw', 'os', 'quota', 'capabilities', 'trait', 'resources2':
            self.assertTrue([key for key in two.flavor_extra_specs
                             if key.startswith(f'{prefix}:key-')], prefix)
        self.assertIn(one.project_id, aggregate.metadata['filter_tenant_id'])
        key, = (key for key in two.flavor_extra_specs if key.startswith('aggregate_instance'))
        self.assertEqual(aggregate.metadata[key.partition(':')[2]], two.flavor_extra_specs[key])

    def test_the_type_of_a_hypervisor_is_one_of_novas(self):
        whole = taken()
        host, = whole.snapshot.hosts
        for kind, shown in ('QEMU', 'QEMU'), ('acme-visor', 'value-'):
            changed = dataclasses.replace(whole, snapshot=dataclasses.replace(
                whole.snapshot, hosts=(dataclasses.replace(host, hypervisor_type=kind),)))
            found = anonymise.anonymise(changed, loader.parse(POLICIES)).snapshot
            self.assertTrue(found.hosts[0].hypervisor_type.startswith(shown))

    def test_a_name_that_slipped_through_is_noticed_and_nothing_written(self):
        self.patch(anonymise._Names, 'in_text', lambda this, text: text)
        self.assertRaises(exception.SnapshotError, anonymise.anonymise, taken(),
                          loader.parse(POLICIES))
