"""Placement answers with errors, or comes back from a backup with other generations.

Nova and Kronos reach placement through a proxy. Each test prints its row of the table.
"""

import functools
import time

import ddt

from tests.e2e.executor import proxy
from tests.e2e.executor import test_fault_table

SECONDS = 25
"""Seconds for which placement answers with an error. Raised, more moves meet the error, and the
tests take longer. Lowered, no move may meet it: the ones that wait are tried every two seconds."""

STATUSES = (401, 500, 503)

NEWER, OLDER = 1000, -1
"""By how much generations differ after a restart. A backup is older than what Nova remembers; a
generation cannot be below 0."""


@ddt.ddt
class PlacementAnswersTest(test_fault_table.FaultTestCase):
    @classmethod
    def prepare(cls, conf):
        super().prepare(conf)
        cls.proxy = proxy.Proxy(cls.cloud.placement.url)
        cls.proxy.setUp()
        cls.cloud.configure(nova_conf={
            **conf, 'placement': {'endpoint_override': cls.proxy.url}})

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.proxy.cleanUp()

    def answer(self, status):
        """Have placement answer with an error for a while."""
        self.proxy.mode = status
        try:
            time.sleep(SECONDS)
        finally:
            self.proxy.mode = proxy.PASS

    def restore(self, difference):
        """Restart placement on a database with other generations of providers and consumers."""
        process = self.cloud.placement.process
        process.stop(30)
        for table in ('resource_providers', 'consumers'):
            self.cloud.database.query(
                'placement', f'UPDATE {table} SET generation = GREATEST(0, generation + %s)',
                difference)
        process.start()
        process.wait_ready(120)

    @ddt.data(*STATUSES)
    def test_moves_converge(self, status):
        self.moves_under(functools.partial(self.answer, status), has_to_say=True)

    @ddt.data(*STATUSES)
    def test_a_drain_converges(self, status):
        self.drain_under(functools.partial(self.answer, status))

    @ddt.data(NEWER, OLDER)
    def test_moves_converge_with_other_generations(self, difference):
        self.moves_under(functools.partial(self.restore, difference))

    @ddt.data(NEWER, OLDER)
    def test_a_drain_converges_with_other_generations(self, difference):
        self.drain_under(functools.partial(self.restore, difference))
