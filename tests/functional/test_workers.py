"""Workers of nova-conductor and what they have of the process that they were forked from."""

import os

import testtools
from nova.scheduler.client import report

from kronos_nova.plugin import workers


class WorkersTest(testtools.TestCase):
    def test_each_makes_a_client_of_placement_of_its_own(self):
        self.addCleanup(setattr, report, 'PLACEMENTCLIENT', report.PLACEMENTCLIENT)
        report.PLACEMENTCLIENT = tried = object()
        workers.part()
        worker = os.fork()
        if not worker:
            os._exit(report.PLACEMENTCLIENT is tried)
        self.assertEqual(0, os.waitpid(worker, 0)[1])
        self.assertIs(tried, report.PLACEMENTCLIENT)
