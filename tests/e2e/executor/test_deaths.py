"""``kill -9`` of a conductor between a write of the journal and the message or request after it."""

import itertools
import os
import sys

import ddt

from tests import boundaries
from tests.e2e.box.nova import Daemon
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base

POINTS = tuple(itertools.product(boundaries.EXECUTOR, ('before', 'after')))


@ddt.ddt
class DeathsTest(base.ExecutorTestCase):
    """One of two workers of a conductor dies; Nova starts another.

    There is one move at a time: a nova-compute that waits for an answer of the worker about another
    migration would have to give that up.
    """

    computes, conductors, workers = 2, 1, 2

    @classmethod
    def prepare(cls, conf):
        cls.order = cls.cloud.root / 'death'
        os.environ['KRONOS_BOX_DEATH'] = str(cls.order)
        nova = cls.cloud.nova
        nova.conductors = [
            Daemon(each.name, [sys.executable, '-m', 'tests.e2e.box.mortal', 'conductor'],
                   cls.cloud.root, nova.conf) for each in nova.conductors]

    @ddt.idata(POINTS)
    @ddt.unpack
    def test_each_move_is_made_once(self, path, moment):
        [(server, host)] = self.boot(1, self.hosts[0])
        self.order.write_text(f'{path} {moment}')
        self.addCleanup(self.order.unlink, missing_ok=True)
        self.assert_well_done(self.carry_out([base.planned(server, host, self.hosts[1], 1)]))
        wait_for(lambda: not self.order.exists(), 5, 'no worker died')
