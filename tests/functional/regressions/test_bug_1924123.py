"""A server leaves a host on which more is allocated than placement permits now.

An allocation ratio that was lowered, or memory that was reserved later, makes the source full
beyond its capacity. Placement may refuse what is held there as a new allocation.
"""

from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import base


class OvercommittedSourceTest(base.RegressionTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.boot_server()
        # Of the memory that is left the server holds twice as much.
        self._reserve_placement_resource(
            'host1', 'MEMORY_MB', fakes_drivers.Steered.memory_mb - 256)

    def test_the_server_leaves(self):
        self.assert_holds_alone(self.server, *self.live_migration(self.server)[0])

    def test_a_failed_migration_gives_the_source_back(self):
        self.assert_holds_alone(
            self.server, *self.live_migration_that_is_rolled_back(self.server)[0])

    def test_a_failed_check_gives_the_source_back(self):
        self.assert_holds_alone(
            self.server, *self.live_migration_that_fails_its_checks(self.server)[0])

    def test_an_aborted_migration_gives_the_source_back(self):
        self.assert_holds_alone(self.server, *self.live_migration_that_is_aborted(self.server)[0])
