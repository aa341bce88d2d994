"""No plan goes where Nova would refuse, in clouds whose servers cannot run on every host.

More clouds: ``KRONOS_TEST_SEEDS=200``.
"""

import json
import os

from tests.unit.record.mixed_clouds import MixedCloud
from tests.unit.record.mixed_clouds import Nova
from tests.unit.record.test_replay import ReplayTestCase

SEEDS = int(os.environ.get('KRONOS_TEST_SEEDS', '6'))


class MixedCloudTest(ReplayTestCase):
    def moves(self, seed, mode, *arguments):
        """(moves of a plan, [what Nova refuses of them])"""
        cloud = MixedCloud(seed, mode)
        folder = cloud.write(self.folder.join(f'{mode}{seed}'))
        report = self.report(folder, *arguments)
        nova = Nova(json.loads(json.dumps(cloud.inventory)))
        moves = [move for row in report['aggregates'] for move in row['moves']]
        return len(moves), [
            (seed, mode, move['instance_uuid'], why) for move in moves for why in nova.refusals(
                move['instance_uuid'], move['source'], move['destination'])]

    def test_no_plan_goes_where_nova_would_refuse(self):
        path = self.options(evacuate_disabled_hosts=True, enforce_hard_affinity=True,
                            enforce_soft_affinity=True)
        found = [self.moves(seed, mode, '--config-file', path)
                 for seed in range(SEEDS) for mode in ('spread', 'pack')]
        self.assertEqual([], [each for _count, refused in found for each in refused])
        self.assertGreater(sum(count for count, _refused in found), 2 * SEEDS)

    def test_without_what_is_known_plans_do_go_there(self):
        """The clouds are such that the checks matter."""
        path = self.options(host_checks='')
        refused = [each for seed in range(SEEDS)
                   for each in self.moves(seed, 'spread', '--config-file', path)[1]]
        self.assertLessEqual({'placement: a trait is missing', 'libvirt: another processor',
                              'conductor: an older hypervisor'}, {why for *_, why in refused})
