"""Workers of nova-conductor and what they have of the process that they were forked from."""

import os

import nova.conf
import testtools
from nova.scheduler.client import report

from kronos_nova import conf as kronos_conf
from kronos_nova.plugin.fixes import fork_safety


class WorkersTest(testtools.TestCase):
    def test_each_makes_a_client_of_placement_of_its_own(self):
        kronos_conf.register_opts(nova.conf.CONF)
        self.addCleanup(setattr, report, 'PLACEMENTCLIENT', report.PLACEMENTCLIENT)
        report.PLACEMENTCLIENT = tried = object()
        fork_safety.install()
        worker = os.fork()
        if not worker:
            os._exit(report.PLACEMENTCLIENT is tried)
        self.assertEqual(0, os.waitpid(worker, 0)[1])
        self.assertIs(tried, report.PLACEMENTCLIENT)
