"""Hosts whose metrics contradict Nova or themselves."""

import ddt
import numpy as np
import testtools

from kronos_nova.load import belief
from kronos_nova.load.instance_weights import PlacedInstances
from tests.unit.load.test_host_sizes import policy

HOSTS = 'cmp1', 'cmp2', 'cmp3'
NAN = float('nan')


@ddt.ddt
class JudgeTest(testtools.TestCase):
    """Three hosts with four servers each."""

    def judge(self, shares, scores, doubted=(), counted=True, rules=None, **keys):
        share = np.repeat(np.array(shares, dtype=float), 4, axis=0) if np.ndim(shares) == 1 else (
            np.array(shares, dtype=float).reshape(-1))
        placed = PlacedInstances((None,) * 12, np.repeat(np.arange(3), 4), np.array(scores),
                                 np.ones(3), np.ones(3))
        none = np.zeros(12, dtype=bool)
        servers = belief.Servers(share=share, seen=~np.isnan(share), repeated=none,
                                 counted=np.full(12, counted), arrived=none, departed=np.zeros(3))
        return belief.judge(policy(**keys), placed, servers, HOSTS,
                            rules or belief.BeliefRules(), frozenset(doubted))

    def test_what_fits_is_believed(self):
        found = self.judge([.1, .2, .0], [.42, .8, .05])
        self.assertEqual(((), ''), (found.unbelieved, found.problem(np.ones(3), np.ones(3, bool))))

    def test_an_exporter_that_stopped_half_way_is_no_empty_host(self):
        found = self.judge([[.1] * 4, [.1, NAN, NAN, NAN], [.1] * 4], [.4, .1, .4])
        self.assertEqual([True, False, True], found.scores.tolist())
        self.assertIn('cmp2: monitoring knows 1 of the 4 servers', found.warnings[0])

    def test_servers_that_need_no_series_are_not_missed(self):
        found = self.judge([[.1] * 4, [.1, NAN, NAN, NAN], [.1] * 4], [.4, .1, .4], counted=False)
        self.assertEqual((), found.unbelieved)

    def test_with_a_fallback_only_a_silent_host_among_others_is_not_believed(self):
        keys = {'vm_profile_fallback': 'host_average'}
        some = self.judge([[.1] * 4, [.1, NAN, NAN, NAN], [.1] * 4], [.4, .1, .4], **keys)
        self.assertEqual((), some.unbelieved)
        none = self.judge([[.1] * 4, [NAN] * 4, [.1] * 4], [.4, .1, .4], **keys)
        self.assertEqual(['cmp2'], [each.host for each in none.unbelieved])

    def test_a_score_of_0_under_servers_that_work_is_not_believed(self):
        found = self.judge([.1, .02, .01], [0.0, 0.0, 0.0])
        self.assertFalse(found.scores.any())
        self.assertIn('3 of 3 hosts are not believed', found.problem(
            np.zeros(3), np.ones(3, dtype=bool)))

    @ddt.data(('memory', 'resident memory'), ('cpu', 'the same, in the same unit'))
    @ddt.unpack
    def test_servers_that_use_more_than_their_host_are_not_moved(self, name, remedy):
        found = self.judge([.2, .1, .1], [.3, .4, .4], name=name)
        self.assertTrue(found.scores.all())
        self.assertEqual([False, True, True], found.profiles.tolist())
        self.assertIn(remedy, found.warnings[0])

    def test_a_profile_of_nothing_under_a_loaded_host_is_not_believed(self):
        found = self.judge([0, .1, .1], [.7, .4, .4])
        self.assertEqual(['profile'], [each.what for each in found.unbelieved])

    def test_two_evaluations_in_a_row_must_be_good(self):
        found = self.judge([.1, .1, .1], [.4, .4, .4], doubted=['cmp3'])
        self.assertEqual([True, True, False], found.scores.tolist())
        self.assertEqual([False], [each.is_failing for each in found.unbelieved])

    def test_an_operator_may_believe_everything(self):
        found = self.judge([[.1] * 4, [.0, NAN, NAN, NAN], [.5] * 4], [.4, .3, .4],
                           rules=belief.BeliefRules(least_known=0.0, tolerance=9.0))
        self.assertEqual((), found.unbelieved)
