"""nova-compute with Kronos in Nova's fixtures, and what is compared in every test here."""

import contextlib
import sqlite3

import nova.conf
from nova import context
from nova.objects import base as objects_base
from nova.scheduler.client import report

from kronos_nova.claims import base as stores
from kronos_nova.plugin import resource_tracker
from tests.functional import base

RESERVED = (0, 512, 0)    # what Nova counts for the host itself, by its options' defaults


class ClaimsTestCase(base.NovaTestCase):
    """Hosts with persistent claims, all in one process and so in one file."""

    managers = {'nova-compute': 'kronos_nova.plugin.compute.KronosComputeManager'}
    ADMIN_API = True

    def rows(self, host=None):
        """[(instance, resize_target, vcpus, memory_mb, disk_gb, state)] of the file, as anybody
        may read it."""
        with sqlite3.connect(f'{self.state}/claim.sqlite') as connection:
            return connection.execute(
                'SELECT instance_uuid, resize_target, vcpus, memory_mb, disk_gb, state '
                'FROM claims WHERE ? IS NULL OR host = ? ORDER BY id', (host, host)).fetchall()

    def tracker(self, host):
        return self.computes[host].manager.rt

    def usage(self, host):
        """(vcpus, MiB, GiB) that the host counts for instances and moves."""
        node = self.tracker(host).compute_nodes[host]
        return tuple(used - reserved for used, reserved in zip(
            (node.vcpus_used, node.memory_mb_used, node.local_gb_used), RESERVED, strict=True))

    def assertClaimsAreUsage(self):  # noqa: N802 - testtools' way
        """On every host the rows add up to what its tracker counts, and name what it tracks."""
        for host in self.hosts:
            rows = self.rows(host)
            summed = tuple(sum(row[column] for row in rows) for column in (2, 3, 4))
            self.assertEqual(self.usage(host), summed, f'{host}: {rows}')
            tracker = self.tracker(host)
            self.assertLessEqual({*tracker.tracked_instances, *tracker.tracked_migrations},
                                 {row[0] for row in rows})

    def audit(self, *hosts):
        # A context without a cell would read the database that another thread is using now.
        with context.target_cell(context.get_admin_context(),
                                 self.cell_mappings['cell1']) as of_cell:
            for host in hosts or self.hosts:
                self.computes[host].manager.update_available_resource(of_cell)

    def restart(self, host):
        self.computes[host] = self.restart_compute_service(self.computes[host])

    def assertSurvivesRestart(self):  # noqa: N802
        """Restarting any host changes neither usage nor rows, nor does the audit after it change
        what is held."""
        for host in self.hosts:
            used, rows = self.usage(host), sorted(self.rows(host))
            self.restart(host)
            self.assertEqual((used, rows), (self.usage(host), sorted(self.rows(host))))
            self.audit(host)
            self.assertEqual((used, len(rows)), (self.usage(host), len(self.rows(host))))
        self.assertClaimsAreUsage()

    def reborn(self, host):
        """A second tracker for a host, as a nova-compute would make it that was killed just now.

        :returns: it, started, and what it asked of the conductor for that
        """
        tracker = self.unborn(host)
        with CountedConductor() as calls:
            tracker.update_available_resource(context.get_admin_context(), host, startup=True)
        return tracker, calls

    def unborn(self, host):
        manager = self.computes[host].manager
        store = stores.load_store('sqlite', nova.conf.CONF, host)
        self.addCleanup(store.close)
        tracker = resource_tracker.build(nova.conf.CONF, host, manager.driver,
                                         report.SchedulerReportClient(), store)
        tracker.set_service_ref(manager.service_ref)
        return tracker


class CountedConductor:
    """Stands where a nova-compute's calls to the conductor begin, counts them, and does what the
    conductor would. Nova's fixtures let all services reach the database themselves."""

    def __enter__(self):
        self.calls = []
        objects_base.NovaObject.indirection_api = self
        return self.calls

    def __exit__(self, *_error):
        objects_base.NovaObject.indirection_api = None

    def object_class_action_versions(self, ctxt, name, method, versions, args, kwargs):
        self.calls.append(f'{name}.{method}')
        with self._as_conductor():
            cls = objects_base.NovaObject.obj_class_from_name(name, versions[name])
            return getattr(cls, method)(ctxt, *args, **kwargs)

    def object_action(self, ctxt, thing, method, args, kwargs):
        self.calls.append(f'{thing.obj_name()}.{method}')
        with self._as_conductor():
            return {}, getattr(thing, method)(*args, **kwargs)

    @contextlib.contextmanager
    def _as_conductor(self):
        objects_base.NovaObject.indirection_api = None
        try:
            yield
        finally:
            objects_base.NovaObject.indirection_api = self
