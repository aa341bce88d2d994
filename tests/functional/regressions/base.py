"""The base of the regression tests."""

import functools
import threading
import unittest

from oslo_utils import importutils

from kronos_nova import clock
from kronos_nova.db import repairs
from kronos_nova.db import tasks
from kronos_nova.placement import audit
from kronos_nova.placement import reconcile
from kronos_nova.plugin import nova_records
from tests.functional import base as functional
from tests.functional.mixed import base


class RegressionTestCase(base.MixedCloud):
    """Two hosts with Kronos everywhere."""

    def reconcile(self, **limits):
        """Reconcile as a nova-conductor with Kronos does periodically.

        :param limits: of :class:`audit.AuditLimits`, other than it has them
        """
        if base.CONDUCTOR not in self.kronos:
            return
        reconciler = reconcile.Reconciler(
            client=self.placement_client, nova=nova_records.CellRecords(self.placement_client),
            journal=repairs.Repairs(self.control_database, clock.utcnow),
            tasks=tasks.Tasks(self.control_database, 'another:1', clock.utcnow),
            limits=audit.AuditLimits(**{'grace': 0, **limits}), task_timeout=60,
            clock=clock.utcnow)
        for _outcome in reconciler.run(3600):
            pass

    def once(self, fault):
        """Let ``fault`` happen to the next ``POST /allocations``: it is called in the place of
        the service, and what it returns is the answer.

        :returns: a list of what was asked, empty until it happened
        """
        happened = []

        def before(method, path, body):
            if (method, path) != ('POST', '/allocations') or happened:
                return None
            happened.append(body)
            return fault()

        self.placement_fixture.before = before
        return happened

    def die_in(self, method):
        """Let the first process that calls ``method`` end there, with nothing after it.

        :returns: an event that is set when it did
        """
        died = threading.Event()
        owner, _, name = method.rpartition('.')
        real = getattr(importutils.import_class(owner), name)

        def die(*args, **kwargs):
            if died.is_set():
                return real(*args, **kwargs)
            died.set()
            raise functional.death()

        self.stub_out(method, die)
        return died

    def restart_source(self):
        self.restart('host1')

    def restart(self, host):
        self.computes[host] = self.restart_compute_service(self.computes[host])


def conflict():
    """The error of a write after another client's."""
    return functional.answer(409, 'placement.concurrent_update',
                             'consumer generation conflict - expected 1 but got 2')


def outage():
    """Placement's database is away."""
    return functional.answer(503)


def on_stock_nova(story):
    """The same tests on stock Nova, where each has to fail: one that passes says that the bug is
    gone there."""
    tests = {name: _failing(getattr(story, name))
             for name in dir(story) if name.startswith('test_')}
    return type(f'Stock{story.__name__}', (story,), {
        **tests, 'kronos': base.STOCK, 'patience': 1, '__module__': story.__module__})


def _failing(test):
    @unittest.expectedFailure
    @functools.wraps(test)
    def fails(self):
        test(self)

    return fails
