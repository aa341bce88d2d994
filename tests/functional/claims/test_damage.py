"""Claims that cannot be believed: nova-compute starts as it would without Kronos."""

import json
import random
import sqlite3
import time
from unittest import mock

from nova import context
from nova.compute import resource_tracker as stock
from nova.scheduler.client import report

from kronos_nova.plugin import reserved_resources
from kronos_nova.plugin import resource_tracker
from kronos_nova.plugin import reverts
from kronos_nova.plugin.fixes import confirmation_retry
from tests.functional.claims import base
from tests.functional.claims import test_devices
from tests.hostile import flips

OURS = (resource_tracker.MARK, reverts.MARK, confirmation_retry.MARK, *(
    f'{reserved_resources.PREFIX}{name}' for name in ('MEMORY_MB', 'DISK_GB', 'VCPU')))


class StockTestCase(base.ClaimsTestCase):
    """Compares a host with what Nova's own tracker would say of it at this moment."""

    def stock_tracker(self, host):
        """A stock tracker that has just started, and has reported nothing."""
        manager = self.computes[host].manager
        tracker = stock.ResourceTracker(host, manager.driver, report.SchedulerReportClient())
        tracker.set_service_ref(manager.service_ref)
        with mock.patch.object(stock.ResourceTracker, '_update'), \
                mock.patch.object(stock.ResourceTracker, '_remove_deleted_instances_allocations'), \
                mock.patch.object(stock.ResourceTracker, '_check_resources'):
            tracker.update_available_resource(context.get_admin_context(), host, startup=True)
        return tracker

    def figures(self, tracker, host):
        """({field of ComputeNode: value}, {statistic: value}, {instance: its states}, devices)."""
        node = tracker.compute_nodes[host]
        ignored = ('updated_at', 'created_at', 'stats')
        values = {name: getattr(node, name) for name in node.fields
                  if node.obj_attr_is_set(name) and name not in ignored}
        values['pci_device_pools'] = sorted(
            (pool.to_dict() for pool in node.pci_device_pools or ()), key=str)
        values['supported_hv_specs'] = [spec.to_list() for spec in node.supported_hv_specs]
        reported = {name: value for name, value in node.stats.items() if name not in OURS}
        counted = {name: value for name, value in tracker.stats[host].items()
                   if name not in OURS and value}
        devices = {device.address: (device.status, device.instance_uuid)
                   for device in tracker.pci_tracker.pci_devs} if tracker.pci_tracker else {}
        return {name: str(value) for name, value in values.items()}, {
            name: value for name, value in reported.items() if value != '0'
        }, counted, tracker.stats[host].states, devices

    def assertLikeStock(self, host):  # noqa: N802 - testtools' way
        ours = self.figures(self.tracker(host), host)
        self.assertEqual(self.figures(self.stock_tracker(host), host), ours)
        recorded = resource_tracker.objects.ComputeNode.get_by_uuid(
            context.get_admin_context(), self.tracker(host).compute_nodes[host].uuid)
        self.assertEqual(self.tracker(host).stats[host].num_instances, recorded.running_vms)
        self.assertEqual(str(self.tracker(host).stats[host].num_instances or 0),
                         recorded.stats.get('num_instances') or '0')


class DamageTest(StockTestCase):
    def damage(self, statement):
        with sqlite3.connect(f'{self.state}/claim.sqlite') as connection:
            connection.execute(statement)

    def close_all(self):
        for host in self.hosts:
            self.tracker(host).ledger.store.close()

    def write_file(self, content):
        self.close_all()
        with open(f'{self.state}/claim.sqlite', 'wb') as file:
            file.write(content)

    def read_file(self):
        self.close_all()
        with open(f'{self.state}/claim.sqlite', 'rb') as file:
            return file.read()

    def assertStartsLikeStock(self, host='host1'):  # noqa: N802
        began = time.monotonic()
        self.restart(host)
        self.assertGreater(2 + 2, time.monotonic() - began)    # Nova's own start is half of it
        self.assertLikeStock(host)
        self.assertNotIn('Error updating resources', self.stdlog.logger.output)

    def test_a_byte_of_the_schema_that_is_no_text(self):
        server = self.boot('host1')
        content = self.read_file()
        place = content.index(b'CREATE TABLE') + 20
        self.write_file(content[:place] + b'\xff' + content[place + 1:])

        self.assertStartsLikeStock()

        self.assertEqual(1, self.stdlog.logger.output.count(
            f'The claims in {self.state}/claim.sqlite cannot be read'))
        self.migrate(server, 'host2')
        self.server_on(server, 'host2')
        self.audit()
        self.assertClaimsAreUsage()

    def test_a_store_that_fails_in_a_way_of_its_own_costs_no_server(self):
        server = self.boot('host1')
        for host in self.hosts:
            store = self.tracker(host).ledger.store
            store.write = store.load = store.open = mock.Mock(side_effect=UnicodeDecodeError(
                'utf-8', b'\xff', 0, 1, 'invalid start byte'))
        self.migrate(server, 'host2')
        self.server_on(server, 'host2')
        migration, = self.api.api_get('/os-migrations').body['migrations']
        self.assert_holds(migration['uuid'], {})
        self.audit()
        self.assertEqual(((0, 0, 0), (1, 512, 1)), (self.usage('host1'), self.usage('host2')))
        self.assertNotIn('Error updating resources', self.stdlog.logger.output)

    def test_bits_that_flip(self):
        self.boot('host1')
        content = self.read_file()
        for bits in flips.draws(content, 12, seed=3):
            self.write_file(flips.flipped(content, bits))
            self.assertStartsLikeStock()
            self.audit('host1')
            self.assertEqual((1, 512, 1), self.usage('host1'), bits)

    def test_a_topology_of_a_newer_nova(self):
        self.boot('host1')
        newer = {'nova_object.name': 'InstanceNUMATopology', 'nova_object.namespace': 'nova',
                 'nova_object.version': '99.0', 'nova_object.data': {'cells': []}}
        for content in (newer, ['a list'], {'cells': [1]}, 7):
            self.damage('DELETE FROM claim_digests')
            self.damage(f"UPDATE claims SET numa_topology = '{json.dumps(content)}'")
            self.assertStartsLikeStock()
            self.boot('host1')

    def test_a_prepared_claim_with_such_a_topology_goes_on_holding_the_rest(self):
        server = self.boot('host1')
        self.restart('host2')
        self.damage(
            "INSERT INTO claims (host, node, instance_uuid, vcpus, memory_mb, disk_gb, pci, "
            "resize_target, created_at, state, numa_topology) VALUES ('host2', 'host2', "
            f"'{server['id']}', 2, 1024, 3, '[]', 1, '2999-01-01T00:00:00+00:00', 'prepared', "
            "'[1]')")
        for _time in range(2):
            self.restart('host2')
            self.audit('host2')
            self.assertEqual((2, 1024, 3), self.usage('host2'))

    def test_an_error_of_any_kind_while_claims_are_restored(self):
        self.boot('host1')
        with mock.patch.object(resource_tracker.KronosResourceTracker, '_restore',
                               side_effect=KeyError('cells')):
            self.assertStartsLikeStock()
        self.boot('host1')
        self.assertEqual((2, 1024, 2), self.usage('host1'))


class CountersTest(StockTestCase):
    """Counters that the scheduler's filters and weighers read."""

    def setUp(self):
        super().setUp()
        self.flags(max_instances_per_host=2, group='filter_scheduler')

    def record(self, host='host1'):
        return resource_tracker.objects.ComputeNode.get_first_node_by_host_for_old_compat(
            context.get_admin_context(), host)

    def test_the_number_of_instances_after_a_start(self):
        one = self.boot('host1')
        self.boot('host1')
        self.restart('host1')
        self.assertEqual(('2', 2), (self.record().stats['num_instances'],
                                    self.record().running_vms))
        self.assertLikeStock('host1')
        self._delete_server(one)
        self.assertEqual('1', self.record().stats['num_instances'])
        self.assertEqual('1', self.record().stats['num_vm_active'])
        self.assertLikeStock('host1')

    def test_a_server_that_waits_for_its_resize_at_either_end(self):
        server = self.boot('host1')
        self._migrate_server(server)
        for host in self.hosts:
            self.restart(host)
            self.assertLikeStock(host)
            tracker = self.tracker(host)
            later = tracker.ledger.clock() + 2 * tracker.expiry
            with mock.patch.object(tracker.ledger, 'clock', lambda later=later: later):
                tracker.release_orphans(context.get_admin_context())
            self.assertLikeStock(host)
        self._confirm_resize(server)
        for host in self.hosts:
            self.audit(host)
            self.assertLikeStock(host)

    def test_a_server_that_was_deleted_or_changed_meanwhile(self):
        stays, goes = self.boot('host1'), self.boot('host1')
        self.computes['host1'].stop()
        self.api.put_service_force_down(
            self.api.get_services(host='host1', binary='nova-compute')[0]['id'], True)
        self._delete_server(goes)
        instance = resource_tracker.objects.Instance.get_by_uuid(
            context.get_admin_context(), stays['id'])
        instance.vm_state = 'stopped'
        instance.save()
        self.restart('host1')
        self.assertLikeStock('host1')
        self.assertEqual((1, 512, 1), self.usage('host1'))


class DevicesTest(test_devices.DevicesTestCase, StockTestCase):
    """PCI devices of servers that went while nova-compute was down."""

    def test_the_device_of_a_server_that_was_deleted_is_free_after_the_start(self):
        server, other = (self.boot('host1', flavor_id=self.one) for _ in range(2))
        self.computes['host1'].stop()
        self.api.put_service_force_down(
            self.api.get_services(host='host1', binary='nova-compute')[0]['id'], True)
        self._delete_server(server)
        self.restart('host1')
        self.assertEqual([other['id']], [
            device.instance_uuid for device in self.tracker('host1').pci_tracker.pci_devs
            if device.instance_uuid])
        self.assertLikeStock('host1')

    def test_the_device_of_a_server_whose_claim_was_lost_too(self):
        server = self.boot('host1', flavor_id=self.one)
        self.computes['host1'].stop()
        self.api.put_service_force_down(
            self.api.get_services(host='host1', binary='nova-compute')[0]['id'], True)
        self._delete_server(server)
        with sqlite3.connect(f'{self.state}/claim.sqlite') as connection:
            connection.execute('DELETE FROM claims')
        self.restart('host1')
        self.assertLikeStock('host1')


class RandomTest(StockTestCase):
    """Servers come, go and move, and hosts restart, in any order."""

    def setUp(self):
        super().setUp()
        self.servers = []
        self.flags(shelved_offload_time=0)

    def step(self, drawn):
        action = drawn.choice(('boot', 'boot', 'delete', 'resize', 'migrate', 'stop', 'shelve',
                               'restart', 'restart', 'audit'))
        if action in ('restart', 'audit'):
            return getattr(self, action)(drawn.choice(self.hosts))
        if action == 'boot' or not self.servers:
            return self.servers.append(self.boot(drawn.choice(self.hosts)))
        server = self.servers.pop(drawn.randrange(len(self.servers)))
        shown = self.api.get_server(server['id'])
        if action == 'delete' or shown['status'] != 'ACTIVE':
            return self._delete_server(server)
        self.servers.append(server)
        return getattr(self, f'_do_{action}')(shown, drawn)

    def _do_resize(self, server, drawn):
        self._migrate_server(server)
        end = drawn.choice((self._confirm_resize, self._revert_resize, None))
        if end:
            end(self.api.get_server(server['id']))

    def _do_migrate(self, server, _drawn):
        source = server['OS-EXT-SRV-ATTR:host']
        destination, = set(self.hosts) - {source}
        self.migrate(server, destination)
        self.server_on(server, destination)

    def _do_stop(self, server, _drawn):
        self._stop_server(server)

    def _do_shelve(self, server, _drawn):
        self._shelve_server(server, expected_state='SHELVED_OFFLOADED')

    def test_counters_are_those_of_stock_after_every_restart(self):
        for seed in range(3):
            drawn = random.Random(seed)
            for number in range(12):
                self.step(drawn)
                if number % 3 == 2:
                    for host in self.hosts:
                        self.restart(host)
                        self.assertLikeStock(host)
