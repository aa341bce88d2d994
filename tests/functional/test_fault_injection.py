"""A live migration is broken at every boundary; afterwards allocations are as they should be.

``python -m testtools.run tests.functional.test_fault_injection`` prints every injection point and
its verdict.
"""

import dataclasses
import datetime
import functools
import time
from collections.abc import Callable

from keystoneauth1 import exceptions as ks_exceptions
from nova import exception
from oslo_utils import importutils

from kronos_nova import clock
from kronos_nova.db import repairs
from kronos_nova.db import tasks
from kronos_nova.placement import audit
from kronos_nova.placement import client as placement_client
from kronos_nova.placement import reconcile
from kronos_nova.plugin import nova_records
from tests import boundaries
from tests.functional import base

SMALL = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}

PLACEMENT = ('conflict', 'no room', '500 before', '500 after', 'timeout before', 'timeout after')


class Killed(BaseException):
    """The process is gone: nothing of it runs after this."""


@dataclasses.dataclass(frozen=True)
class Point:
    """The point at which a move is broken, and the fault. ``arm`` gets the test; ``restarts`` tells
    whether it was nova-compute that died."""

    name: str
    arm: Callable
    restarts: bool = False


class Breaker:
    """Methods of Nova and Kronos that fail once, before or after they did their work."""

    def __init__(self):
        self.is_armed = True
        self.has_killed = False

    def breaking(self, real, moment, error):
        @functools.wraps(real)
        def method(*args, **kwargs):
            if not self.is_armed:
                return real(*args, **kwargs)
            if moment == 'after':
                real(*args, **kwargs)
            self.is_armed = False
            self.has_killed = error is Killed
            raise error('injected')

        return method

    def unless_killed(self, real):
        """A dead process does not tidy up either."""
        return lambda *args, **kwargs: None if self.has_killed else real(*args, **kwargs)


def at_method(path, moment, error, restarts=False, returns=False):
    def arm(test):
        if returns:
            test.let_guest_return()
        test.break_method(path, moment, error)

    how = 'killed' if error is Killed else 'error'
    return Point(f'{path.split(".", 2)[-1]}: {how} {moment}', arm, restarts)


def at_placement(which, fault, times):
    """``which``: the POST that splits, or the one that gives back."""
    def arm(test):
        if which == 'give back':
            test.refuse_live_checks()
        test.break_post(1 if which == 'split' else 2, fault, times)

    return Point(f'POST /allocations ({which}): {fault}, {"once" if times == 1 else "always"}', arm)


def at_rollback(fault, times):
    def arm(test):
        test.let_guest_return()
        test.break_post(2, fault, times)

    return Point(f'POST /allocations (rollback by nova-compute): {fault}, '
                 f'{"once" if times == 1 else "always"}', arm)


class FaultInjectionTest(base.NovaTestCase):
    compute_driver = 'fake.FakeDriver'
    managers = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor',
                'nova-compute': 'kronos_nova.plugin.managers.Compute'}

    def setUp(self):
        super().setUp()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        patient = placement_client.PlacementClient(
            base.placement_adapter(self.placement_fixture),
            attempts=lambda: placement_client.retrying(longest_pause=0.01))
        self.stub_out('kronos_nova.plugin.placement.client', lambda: patient)
        future = clock.utcnow() + datetime.timedelta(days=1)
        self.reconciler = reconcile.Reconciler(
            client=self.placement_client,
            nova=nova_records.CellRecords(self.placement_client),
            journal=repairs.Repairs(self.control_database, clock.utcnow),
            tasks=tasks.Tasks(self.control_database, 'another', clock.utcnow),
            limits=audit.AuditLimits(grace=0, stalled=0), task_timeout=60, clock=lambda: future)

    def verdicts(self, points):
        """Break a move of a new server at each point; prints and collects what came of it."""
        failed = []
        for point in points:
            verdict = self.verdict(point)
            print(f'{verdict:6} {point.name}')
            if verdict != 'ok':
                failed.append((point.name, verdict))
        self.assertEqual([], failed)

    def verdict(self, point):
        server = self.boot('host1')
        self._undo = []
        try:
            point.arm(self)
            self.migrate(server, 'host2')
            self.wait_quiet(server)
        finally:
            self.disarm()
        if point.restarts:
            for host, compute in self.computes.items():
                self.computes[host] = self.restart_compute_service(compute)
        return self.converge(server)

    def wait_quiet(self, server):
        """Until the fault has struck and nothing happens any more, or the server is idle again."""
        seen = (None, 0)
        for _ in range(200):
            state = self.api.get_server(server['id'])
            asked = len(self.placement_fixture.requests)
            is_idle = state['OS-EXT-STS:task_state'] is None and self.migration_of(server)
            if is_idle or seen[1] >= 10:
                return
            seen = (asked, seen[1] + 1) if asked == seen[0] else (asked, 0)
            time.sleep(0.1)

    def migration_of(self, server):
        with base.microversion(self.api, '2.80'):
            found = self.api.api_get(
                f'/os-migrations?instance_uuid={server["id"]}').body['migrations']
        return next((each for each in found if each['status'] in (
            'completed', 'error', 'failed', 'cancelled')), None)

    def converge(self, server):
        for _ in range(10):
            list(self.reconciler.run(3600))
            problem = self.problem(server)
            if problem is None:
                return 'ok'
            time.sleep(0.2)
        return problem

    def problem(self, server):
        server = self.api.get_server(server['id'])
        host = server['OS-EXT-SRV-ATTR:host']
        if server['OS-EXT-STS:task_state'] is not None:
            return f'the server is still {server["OS-EXT-STS:task_state"]}'
        held = self.held_by(server['id'])
        if held != {host: SMALL}:
            return f'on {host}, holds {held}'
        with base.microversion(self.api, '2.80'):
            found = self.api.api_get(
                f'/os-migrations?instance_uuid={server["id"]}').body['migrations']
        leaked = [self.held_by(each['uuid']) for each in found]
        return f'migrations hold {leaked}' if any(leaked) else None

    def disarm(self):
        self.placement_fixture.before = self.placement_fixture.after = lambda *asked: None
        for owner, name, real in reversed(self._undo):
            setattr(owner, name, real)

    def patch(self, path, replace):
        owner_path, name = path.rsplit('.', 1)
        owner = importutils.import_class(owner_path)
        real = getattr(owner, name)
        self._undo.append((owner, name, real))
        setattr(owner, name, replace(real))

    def break_method(self, path, moment, error):
        breaker = Breaker()
        self.patch('kronos_nova.db.tasks.Tasks.end', breaker.unless_killed)
        self.patch(path, lambda real: breaker.breaking(real, moment, error))

    def refuse_live_checks(self):
        def refuse(real):
            def method(*args, **kwargs):
                raise exception.MigrationPreCheckError(reason='injected')

            return method

        self.patch('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', refuse)

    def let_guest_return(self):
        def rolls_back(this, context, instance, dest, post_method, recover_method,
                       block_migration=False, migrate_data=None):
            recover_method(context, instance, dest, migrate_data, migration_status='failed')

        self.patch('nova.virt.fake.FakeDriver.live_migration', lambda real: rolls_back)

    def break_post(self, number, fault, times):
        """The ``number``-th POST since now, and ``times`` - 1 of those after it."""
        posts = []

        def struck(method, path):
            if (method, path) != ('POST', '/allocations'):
                return False
            posts.append(path)
            return number <= len(posts) < number + times

        def strike(method, path, body):
            if not struck(method, path):
                return None
            if fault.startswith('timeout'):
                raise ks_exceptions.ConnectTimeout('injected')
            if fault == 'conflict':
                return base.answer(409, 'placement.concurrent_update')
            return base.answer(409 if fault == 'no room' else 500)

        if fault.endswith('after'):
            self.placement_fixture.after = strike
        else:
            self.placement_fixture.before = strike

    def test_the_conductors_task(self):
        """But for a death before anything was written down: only who asked can notice that."""
        self.verdicts(at_method(path, moment, error)
                      for path in boundaries.CONDUCTOR for moment in ('before', 'after')
                      for error in (exception.MigrationPreCheckError, RuntimeError, Killed)
                      if (path, moment, error) != (boundaries.CONDUCTOR[0], 'before', Killed))

    def test_placement_while_the_conductor_asks(self):
        self.verdicts(at_placement(which, fault, times) for which in ('split', 'give back')
                      for fault in PLACEMENT for times in (1, 1000))

    def test_nova_compute_when_the_guest_arrives(self):
        # An error that leaves the thread of the migration ends that thread: the migration stops.
        self.verdicts(at_method(path, moment, error,
                                restarts=error is Killed or path == boundaries.ARRIVAL[0])
                      for path in boundaries.ARRIVAL for moment in ('before', 'after')
                      for error in (RuntimeError, Killed))

    def test_nova_compute_when_the_guest_returns(self):
        self.verdicts(at_method(path, moment, error, restarts=error is Killed, returns=True)
                      for path in boundaries.RETURN for moment in ('before', 'after')
                      for error in (RuntimeError, Killed))

    def test_placement_while_nova_compute_asks(self):
        self.verdicts(at_rollback(fault, times) for fault in PLACEMENT for times in (1, 1000))
