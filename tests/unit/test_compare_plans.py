"""Differences in the sense of tools/compare-plans."""

import contextlib
import copy
import gc
import io
import pathlib

import fixtures
import testtools

from kronos_nova.cmd.replay import Replay
from tools import compare_plans
from tools import random_snapshots

ROOT = pathlib.Path(__file__).parents[2]
PLANS = {
    'aggregates': [{
        'name': 'gpu', 'outcome': 'planned', 'combined_after': 0.25, 'warnings': ['cmp9 is down'],
        'moves': [{'order': 1, 'instance_uuid': 'a', 'source': 'cmp1', 'destination': 'cmp2',
                   'reason': 'empties cmp1, which is disabled; load of cmp1 0.4 to 0.3'},
                  {'order': 2, 'instance_uuid': 'b', 'source': 'cmp3', 'destination': 'cmp2',
                   'reason': 'empties cmp3, which is disabled; load of cmp3 0.6 to 0.5'}],
        'not_moved': [{'reason': 'no_gain', 'count': 1, 'instances': ['c']}]}],
    'drains': [{'aggregate': 'gpu', 'blocked': {'cmp1': {'c': 'no other host has room for it'}}}]}
HOSTS = {f'cmp{number}': 'HOST' for number in range(10)}


class ComparisonTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.new = copy.deepcopy(PLANS)
        self.aggregate, self.drain = self.new['aggregates'][0], self.new['drains'][0]

    def compared(self):
        comparison = compare_plans.Comparison(HOSTS)
        comparison.compare(PLANS, self.new)
        return comparison

    def assert_differs(self, *lines):
        self.assertEqual(list(lines), self.compared().differences)

    def test_plans_are_equal_up_to_rounding(self):
        self.aggregate['combined_after'] += 1e-10
        self.assert_differs()
        self.assertEqual({}, self.compared().texts)

    def test_another_figure_differs(self):
        self.aggregate['combined_after'] = 0.25000001
        self.assert_differs('aggregates[0].combined_after: 0.25 -> 0.25000001')

    def test_a_figure_that_is_no_longer_known_differs(self):
        self.aggregate['combined_after'] = None
        self.assert_differs('aggregates[0].combined_after: 0.25 -> null')

    def test_another_order_differs(self):
        self.aggregate['moves'].reverse()
        differences = self.compared().differences
        self.assertIn('aggregates[0].moves[0].instance_uuid: a -> b', differences)

    def test_fewer_moves_differ(self):
        del self.aggregate['moves'][1]
        self.assert_differs('aggregates[0].moves: 2 of them -> 1')

    def test_the_word_for_what_stays_is_no_text(self):
        self.aggregate['not_moved'][0]['reason'] = 'budget'
        self.assert_differs('aggregates[0].not_moved[0].reason: no_gain -> budget')

    def test_another_blocked_server_differs_and_another_explanation_does_not(self):
        self.drain['blocked']['cmp1'] = {'c': 'all hosts are full'}
        self.assert_differs()
        self.drain['blocked']['cmp1'] = {'d': 'no other host has room for it'}
        self.assert_differs('drains[0].blocked.cmp1.c: no other host has room for it -> missing',
                            'drains[0].blocked.cmp1.d: missing -> no other host has room for it')

    def test_a_field_that_reports_have_since_is_named_and_one_they_have_lost_differs(self):
        self.aggregate['domains'] = []
        del self.aggregate['not_moved']
        found = self.compared()
        self.assertEqual({'domains'}, found.fields)
        self.assertEqual(1, len(found.differences))

    def test_a_plan_in_place_of_an_error_differs(self):
        comparison = compare_plans.Comparison()
        comparison.compare({'error': 'meta.json: format: Field required'}, PLANS)
        self.assertEqual(3, len(comparison.differences))

    def test_a_text_about_many_hosts_is_listed_once(self):
        for move in self.aggregate['moves']:
            move['reason'] = move['reason'].replace(', which is disabled', ' (disabled)')
        self.assert_differs()
        self.assertEqual({('empties HOST, which is disabled', 'empties HOST (disabled)'): 2},
                         self.compared().texts)

    def test_other_figures_in_a_text_are_shown_as_they_are(self):
        self.aggregate['moves'][0]['reason'] = (
            'empties cmp1, which is disabled; load of cmp1 0.4 to 0.2')
        self.assertEqual({('load of cmp1 0.4 to 0.3', 'load of cmp1 0.4 to 0.2'): 1},
                         self.compared().texts)

    def test_a_warning_that_is_gone_or_new_is_listed(self):
        self.aggregate['warnings'] = ['cmp9 is down', 'no data']
        self.assertEqual({('', 'no data'): 1}, self.compared().texts)
        self.aggregate['warnings'] = []
        self.assert_differs()
        self.assertEqual({('HOST is down', ''): 1}, self.compared().texts)


class ProgramTest(testtools.TestCase):
    def run_on(self, *arguments):
        """(exit code, stdout, stderr)"""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = compare_plans.main([str(ROOT), *map(str, arguments)])
        return code, out.getvalue(), err.getvalue()

    def test_a_checkout_plans_as_itself(self):
        code, out, _err = self.run_on(ROOT, '--generate', 2)
        self.assertEqual(0, code, out)
        self.assertIn('drains', out)
        self.assertIn('2 snapshots', out)
        self.assertIn('0 with different plans; 0 texts differ', out)

    def test_it_refuses_to_compare_nothing_and_what_is_no_checkout(self):
        self.assertEqual(2, self.run_on(ROOT)[0])
        code, _out, err = self.run_on('/nowhere', '--generate', 1)
        self.assertEqual(2, code)
        self.assertIn('/nowhere', err)


class RandomSnapshotsTest(testtools.TestCase):
    def test_every_kind_is_a_snapshot_that_can_be_planned(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.addCleanup(gc.enable)    # the command switches the collection off
        modes = set()
        for seed in range(len(random_snapshots.KINDS)):
            one, again = folder / f'{seed}', folder / f'{seed}-again'
            random_snapshots.write(seed, one)
            random_snapshots.write(seed, again)
            self.assertEqual(*((path / 'inventory.json').read_text() for path in (one, again)))
            command = Replay(None, None)
            command.take_action(command.get_parser('').parse_args(
                [str(one), '--config-file', str(one / 'kronos.conf')]))
            modes |= {aggregate.mode for aggregate in command.day[0][1].aggregates}
        self.assertEqual({'spread', 'pack', 'relieve'}, modes)
