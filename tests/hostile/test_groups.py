"""Server groups with rules that Nova accepts and no number here holds."""

import contextlib
import io
import json

import ddt
import fixtures
import testtools

from kronos_nova.cmd import replay
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from tests.hostile import fakes_cloud as clouds
from tests.unit.record.clouds import Cloud

HUGE = (2 ** 31, 2 ** 63 - 1, 2 ** 63, 2 ** 64, 10 ** 30)


@ddt.ddt
class MaxServerPerHostTest(testtools.TestCase):
    @ddt.data(*HUGE)
    def test_a_cycle_plans_the_aggregate_as_if_the_group_had_no_limit(self, most):
        planned = []
        for rules in ({'max_server_per_host': most}, None):
            control = clouds.Control(self)
            for number in range(8):
                control.cloud.server(f'vm{number}', 'a', load=0.1)
            if rules:
                control.cloud.groups = (snapshot.ServerGroup(
                    uuid='g', name='g', policy='anti-affinity', rules=rules,
                    members=tuple(control.cloud.instances)),)
            report = control.run()
            self.assertEqual(plans.PLANNED, report.outcome)
            planned.append({(move.instance_uuid, move.destination) for move in report.moves})
        self.assertEqual(*planned)

    @ddt.data(*HUGE)
    def test_a_replay_reports(self, most):
        cloud = Cloud(3)
        for group in cloud.inventory['server_groups']:
            group.update(policy='anti-affinity', rules={'max_server_per_host': most})
        folder = cloud.write(self.useFixture(fixtures.TempDir()).path)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(0, replay.main([folder, '-f', 'json']))
        self.assertNotIn(plans.FAILED, {row['outcome'] for row in
                                        json.loads(out.getvalue())['aggregates']})
