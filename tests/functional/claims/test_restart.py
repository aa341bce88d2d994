"""The claims of a nova-compute after a restart, and the calls by which it reads them."""

import os
import sqlite3
from unittest import mock

from nova import context
from nova import objects
from nova.compute import resource_tracker as stock
from nova.scheduler.client import report
from nova.virt import fake

from tests.functional.claims import base

LISTS = ('InstanceList.get_by_host_and_node', 'MigrationList.get_in_progress_and_error')


class StartTest(base.ClaimsTestCase):
    def started_usage(self, tracker, host='host1'):
        node = tracker.compute_nodes[host]
        return tuple(used - reserved for used, reserved in zip(
            (node.vcpus_used, node.memory_mb_used, node.local_gb_used), base.RESERVED,
            strict=True))

    def calls_of_stock(self, host):
        """Return the calls of Nova's own tracker to the conductor when it starts."""
        manager = self.computes[host].manager
        tracker = stock.ResourceTracker(host, manager.driver, report.SchedulerReportClient())
        tracker.set_service_ref(manager.service_ref)
        with base.CountedConductor() as calls:
            tracker.update_available_resource(context.get_admin_context(), host, startup=True)
        return calls

    def test_usage_is_known_from_the_table_with_fewer_calls_to_the_conductor(self):
        server = self.boot('host1')
        self.boot('host1')
        self._resize_server(server, self.larger_flavor())

        tracker, calls = self.reborn('host1')

        self.assertEqual(self.usage('host1'), self.started_usage(tracker))
        for name in LISTS:
            self.assertNotIn(name, calls)
        stock_calls = self.calls_of_stock('host1')
        self.assertLess(len(calls), len(stock_calls))
        self.assertLessEqual(set(LISTS), set(stock_calls))

    def larger_flavor(self):
        return next(flavor['id'] for flavor in self.api.get_flavors()
                    if flavor['name'] == 'm1.small')

    def test_a_missing_file_is_built_from_instances_and_migrations(self):
        server = self.boot('host1')
        self._resize_server(server, self.larger_flavor())
        self.audit()
        before = {host: (self.usage(host), [row[:5] for row in self.rows(host)])
                  for host in self.hosts}
        for host in self.hosts:
            self.computes[host].manager.rt.ledger.store.close()
        for suffix in ('', '-wal', '-shm'):
            if os.path.exists(f'{self.state}/claim.sqlite{suffix}'):
                os.unlink(f'{self.state}/claim.sqlite{suffix}')

        for host in self.hosts:
            self.restart(host)

        self.assertEqual(before, {host: (self.usage(host), [row[:5] for row in self.rows(host)])
                                  for host in self.hosts})

    def test_a_corrupt_file_is_set_aside_and_built_again(self):
        server = self.boot('host1')
        for host in self.hosts:
            self.computes[host].manager.rt.ledger.store.close()
        with open(f'{self.state}/claim.sqlite', 'wb') as file:
            file.write(b'\xff' * 10000)

        self.restart('host1')

        self.assertEqual([(server['id'], 0, 1, 512, 1)], [row[:5] for row in self.rows('host1')])
        self.assertTrue([name for name in os.listdir(self.state) if '.corrupt-' in name])
        self.assertEqual(1, self.stdlog.logger.output.count(
            f'The claims in {self.state}/claim.sqlite cannot be read'))
        self.assertClaimsAreUsage()

    def test_a_newer_file_is_refused_and_nova_compute_serves_without(self):
        with sqlite3.connect(f'{self.state}/claim.sqlite') as connection:
            connection.execute('UPDATE claim_versions SET version = 99')
        self.restart('host1')
        self.boot('host1')
        self.assertEqual((1, 512, 1), self.usage('host1'))
        self.assertEqual([], self.rows('host1'))
        self.assertEqual(1, self.stdlog.logger.output.count('written by a newer Kronos'))

    def test_rows_that_are_not_what_the_node_reported_are_not_believed(self):
        server = self.boot('host1')
        with sqlite3.connect(f'{self.state}/claim.sqlite') as connection:
            connection.execute('DELETE FROM claims WHERE instance_uuid = ?', (server['id'],))
        tracker, calls = self.reborn('host1')
        self.assertIn(LISTS[0], calls)
        self.assertEqual(self.usage('host1'), self.started_usage(tracker))
        self.assertEqual(1, len(self.rows('host1')))

    def test_a_server_deleted_while_nova_compute_was_down_is_gone_after_the_first_audit(self):
        server = self.boot('host1')
        self.computes['host1'].stop()
        self.api.put_service_force_down(
            self.api.get_services(host='host1', binary='nova-compute')[0]['id'], True)
        self._delete_server(server)
        self.restart('host1')
        self.audit('host1')
        self.assertEqual(((0, 0, 0), []), (self.usage('host1'), self.rows('host1')))

    def test_a_server_deleted_after_a_start_from_the_table_is_taken_back_once(self):
        server = self.boot('host1')
        self.boot('host1')
        self.restart('host1')
        self._delete_server(server)
        self.assertEqual((1, 512, 1), self.usage('host1'))
        self.assertEqual(1, len(self.rows('host1')))
        self.audit('host1')
        self.assertClaimsAreUsage()

    def test_a_resize_confirmed_after_a_start_from_the_table(self):
        server = self.boot('host1')
        self._resize_server(server, self.larger_flavor())
        for host in self.hosts:
            self.restart(host)
        self._confirm_resize(self.api.get_server(server['id']))
        self.assertEqual((0, 0, 0), self.usage('host1'))
        self.assertClaimsAreUsage()


class InFlightTest(base.ClaimsTestCase):
    """nova-compute dies between a claim and its end."""

    def look(self, host):
        """Usage before, and of a nova-compute that starts now, before and after its first audit.

        Runs inside the virt driver, in the middle of an operation.
        """
        before = self.usage(host)
        tracker, _calls = self.reborn(host)
        started = self.of(tracker, host)
        tracker.update_available_resource(context.get_admin_context(), host)
        self.seen.append((before, started, self.of(tracker, host)))

    def of(self, tracker, host):
        node = tracker.compute_nodes[host]
        return tuple(used - reserved for used, reserved in zip(
            (node.vcpus_used, node.memory_mb_used, node.local_gb_used), base.RESERVED,
            strict=True))

    def during(self, method, host, audited=False):
        """Look at ``host`` once, each time the driver is asked for ``method``.

        :param audited: look after an audit; before one Nova counts some things not at all
        """
        self.seen = []
        real = getattr(fake.FakeDriver, method)

        def slow(driver, *args, **kwargs):
            if audited:
                self.audit(host)
            self.look(host)
            return real(driver, *args, **kwargs)

        return mock.patch.object(fake.FakeDriver, method, slow)

    def assertAllTheSame(self):  # noqa: N802
        self.assertTrue(self.seen)
        for before, started, audited in self.seen:
            self.assertNotEqual((0, 0, 0), before)
            self.assertEqual((before, before), (started, audited))

    def test_while_a_server_is_built(self):
        with self.during('spawn', 'host1'):
            self.boot('host1')
        self.assertAllTheSame()

    def test_while_a_server_is_resized_at_the_destination(self):
        server = self.boot('host1')
        with self.during('finish_migration', 'host2'):
            self._migrate_server(server)
        self.assertAllTheSame()

    def test_while_a_server_is_resized_at_the_source(self):
        server = self.boot('host1')
        with self.during('migrate_disk_and_power_off', 'host1'):
            self._migrate_server(server)
        self.assertAllTheSame()

    def test_while_a_server_is_live_migrated(self):
        for host in self.hosts:
            server = self.boot('host1')
            with self.during('live_migration', host, audited=True):
                self.migrate(server, 'host2')
                self._wait_for_migration_status(server, ['completed'])
            self.assertAllTheSame()

    def test_while_a_server_is_evacuated(self):
        server = self.boot('host1')
        self.computes['host1'].stop()
        self.api.put_service_force_down(
            self.api.get_services(host='host1', binary='nova-compute')[0]['id'], True)
        with self.during('spawn', 'host2'):
            self._evacuate_server(server, expected_host='host2', expected_migration_status='done')
        self.assertAllTheSame()

    def test_while_a_server_is_unshelved(self):
        server = self.boot('host1')
        self.flags(shelved_offload_time=0)
        self._shelve_server(server)
        self.computes['host2'].stop()
        self.api.put_service_force_down(
            self.api.get_services(host='host2', binary='nova-compute')[0]['id'], True)
        with self.during('spawn', 'host1'):
            self._unshelve_server(server)
        self.assertAllTheSame()


class ForgottenTest(base.ClaimsTestCase):
    """A server that is in ERROR is evacuated: Nova's audit forgets the claim while it is rebuilt,
    because it looks at the server's state and not at its migration."""

    def evacuated_in_error(self, audit):
        server = self.boot('host1')
        self.computes['host1'].stop()
        self.api.put_service_force_down(
            self.api.get_services(host='host1', binary='nova-compute')[0]['id'], True)
        instance = objects.Instance.get_by_uuid(context.get_admin_context(), server['id'])
        instance.vm_state = 'error'
        instance.save()
        seen = []
        real = fake.FakeDriver.spawn

        def slow(driver, *args, **kwargs):
            """A build longer than the audit's interval."""
            seen.append(self.usage('host2'))
            seen.extend(audit())
            return real(driver, *args, **kwargs)

        with mock.patch.object(fake.FakeDriver, 'spawn', slow):
            self._evacuate_server(server, expected_host='host2', expected_state='ACTIVE',
                                  expected_migration_status='done')
        return server, seen

    def audited(self):
        self.audit('host2')
        yield self.usage('host2')
        tracker, _calls = self.reborn('host2')
        for _time in range(2):
            node = tracker.compute_nodes['host2']
            yield tuple(used - reserved for used, reserved in zip(
                (node.vcpus_used, node.memory_mb_used, node.local_gb_used), base.RESERVED,
                strict=True))
            tracker.update_available_resource(context.get_admin_context(), 'host2')

    def test_the_claim_survives_audit_and_restart(self):
        server, seen = self.evacuated_in_error(self.audited)
        self.assertEqual([(1, 512, 1)] * 4, seen)
        self.audit('host2')
        self.assertEqual([(server['id'], 0, 1, 512, 1)], [row[:5] for row in self.rows('host2')])
        self.assertEqual((1, 512, 1), self.usage('host2'))


class PlainNovaForgetsTest(ForgottenTest):
    """The same with stock Nova."""

    managers = {}

    def audited(self):
        self.audit('host2')
        yield self.usage('host2')

    def test_the_claim_survives_audit_and_restart(self):
        _server, seen = self.evacuated_in_error(self.audited)
        self.assertEqual([(1, 512, 1), (0, 0, 0)], seen)
