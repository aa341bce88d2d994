"""Replays of random clouds keep every rule, whatever is wrong with the cloud."""

import contextlib
import io
import json
import os
import random
import re

import fixtures
import testtools
import yaml

from kronos_nova.cmd import replay
from kronos_nova.cycle.problem import NEEDS_RESTRAINT
from tests.unit.record.clouds import Cloud
from tests.unit.record.referee import Referee

SEEDS = int(os.environ.get('KRONOS_TEST_SEEDS', '4'))
"""The number of clouds on which each rule is tried; more find more, and take a tenth of a second
each."""


def run(*arguments):
    """(exit code, stdout, stderr) of the command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = replay.main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
    return code, out.getvalue(), err.getvalue()


class ReplayTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir())

    def options(self, **values):
        path = self.folder.join('kronos.conf')
        with open(path, 'w') as stream:
            stream.write('[kronos]\n' + ''.join(
                f'{key} = {value}\n' for key, value in values.items()))
        return path

    def report(self, folder, *arguments):
        code, out, err = run(folder, '-f', 'json', *arguments)
        self.assertEqual((0, ''), (code, err))
        return json.loads(out)


class ReplayTest(ReplayTestCase):
    def judged(self, seed, mode, *arguments, evacuates=False, repairs=(), spoil=False):
        cloud = Cloud(seed, mode)
        if spoil:
            cloud.lose_metrics()
        folder = cloud.write(self.folder.join(f'{mode}{seed}'))
        report = self.report(folder, *arguments)
        self.assertEqual([], Referee(folder).check(report, evacuates, repairs), f'seed {seed}')
        return report

    def test_every_plan_keeps_the_rules(self):
        moves = 0
        for seed in range(SEEDS):
            for mode, planner in (('spread', 'greedy'), ('pack', 'ffd')):
                report = self.judged(seed, mode, f'--{mode}-planner', planner)
                moves += sum(len(row['moves']) for row in report['aggregates'])
        self.assertGreater(moves, SEEDS)

    def test_evacuation_and_repair_keep_the_rules(self):
        path = self.options(evacuate_disabled_hosts=True, enforce_hard_affinity=True,
                            enforce_soft_affinity=True)
        phases = set()
        for seed in range(SEEDS):
            for mode in ('spread', 'pack'):
                report = self.judged(seed, mode, '--config-file', path, evacuates=True,
                                     repairs=(False, True))
                phases |= {move['phase'] for row in report['aggregates'] for move in row['moves']}
        self.assertEqual({'evacuate', 'affinity', 'spread', 'pack'}, phases)

    def test_lost_and_impossible_metrics_never_make_a_plan(self):
        outcomes = set()
        for seed in range(SEEDS):
            report = self.judged(seed, 'spread', spoil=True)
            outcomes |= {policy['state'] for row in report['aggregates']
                         for policy in row['policies']}
        self.assertEqual({'ok', 'no_data'}, outcomes)

    def test_policies_with_a_forecast_are_planned_by_the_present_which_is_said(self):
        for number, forecast in enumerate(({}, {'vm_query': 'own', 'history_query': 'past'},
                                           {'host_query': 'own', 'history_query': 'past'})):
            self.planned_by_the_present(f'cloud{number}', forecast)

    def planned_by_the_present(self, name, forecast):
        cloud = Cloud(1)
        folder = cloud.write(self.folder.join(name))
        chosen = cloud.policies()
        for policy in chosen['policies']:
            policy['forecast'] = dict(forecast)
        path = self.folder.join('ahead.yaml')
        with open(path, 'w') as stream:
            yaml.safe_dump(chosen, stream)
        no_past = ('the snapshot: the load of earlier days, which a forecast needs, is not '
                   'recorded')
        for restraint, why in ((0, NEEDS_RESTRAINT), (1, no_past)):
            arguments = (folder, '--config-file', self.options(restraint=restraint),
                         '--spread-planner', 'greedy')
            plain, ahead = (self.report(*arguments, *more) for more in ((), ('--policies', path)))
            said = {policy['detail'] for row in ahead['aggregates'] for policy in row['policies']
                    if policy['state'] == 'ok'}
            self.assertEqual({f'planned without its forecast: {why}'}, said)
            self.assertEqual(*([row['moves'] for row in report['aggregates']]
                               for report in (plain, ahead)))
        _code, out, _err = run(folder, '--policies', path)
        self.assertIn('planned without its forecast', out)

    def test_no_server_goes_into_the_room_of_a_buffer(self):
        """The buffer wants the room of all hosts, and no moves would make more of it."""
        for size, says in (('1:1', 'fit; no moves within the budget'), ('m1.gone', 'm1.gone')):
            cloud = Cloud(1)
            folder = cloud.write(self.folder.join(size))
            chosen = cloud.policies()
            names = [each['name'] for each in cloud.inventory['aggregates']]
            chosen['buffers'] = [{'name': f'all-{name}', 'aggregate': name, 'flavor': size,
                                  'keep': '100%'} for name in (*names, '_unassigned_')]
            path = self.folder.join('buffers.yaml')
            with open(path, 'w') as stream:
                yaml.safe_dump(chosen, stream)
            plain, kept = (self.report(folder, *more) for more in ((), ('--policies', path)))
            spread = [[move for row in report['aggregates'] for move in row['moves']
                       if move['phase'] == 'spread'] for report in (plain, kept)]
            self.assertTrue(spread[0])
            self.assertEqual(size == '1:1', not spread[1])
            _code, out, _err = run(folder, '--policies', path)
            self.assertIn(says, ' '.join(out.split()))

    def test_the_order_of_rows_means_nothing(self):
        for seed in range(3):
            answers = set()
            for order in range(3):
                shuffle = random.Random(order) if order else None
                folder = Cloud(seed).write(self.folder.join(f'{seed}-{order}'), shuffle)
                _code, out, _err = run(folder, '-f', 'json')
                answers.add(re.sub(r'"planning_seconds": [0-9.e-]+', '', out))
            self.assertEqual(1, len(answers))

    def test_the_budget_may_be_overridden(self):
        folder = Cloud(1).write(self.folder.join('cloud'))
        for budget in (0, 1, 3):
            report = self.report(folder, '--budget', budget)
            self.assertTrue(all(len(row['moves']) <= budget for row in report['aggregates']))

    def test_it_uses_restraint_only_where_a_file_says_so(self):
        def moves(number, **options):
            arguments = ('--config-file', self.options(**options)) if options else ()
            report = self.report(self.folder.join(f'cloud{number}'), *arguments)
            return [row['moves'] for row in report['aggregates']]

        found = []
        for number in range(SEEDS):
            Cloud(number).write(self.folder.join(f'cloud{number}'))
            self.assertEqual(moves(number, restraint=0), moves(number))
            found.append(moves(number) != moves(number, restraint=5))
        self.assertTrue(any(found))

    def test_a_server_that_a_rule_keeps_is_shown_with_the_rule(self):
        cloud = Cloud(1)
        folder = cloud.write(self.folder.join('cloud'))
        path = self.folder.join('ruled.yaml')
        with open(path, 'w') as stream:
            yaml.safe_dump(cloud.policies() | {'rules': [
                {'name': 'stays', 'servers': {'name': '*'}, 'never_move': True}]}, stream)
        report = self.report(folder, '--policies', path)
        details = [why for row in report['aggregates'] for skip in row['not_moved']
                   if skip['reason'] == 'rule' for why in skip['details'].values()]
        self.assertEqual({'rule stays never moves it'}, {*details})
        self.assertEqual(0, run(folder, '--policies', path)[0])

    def test_tables_are_for_people(self):
        code, out, _err = run(Cloud(1).write(self.folder.join('cloud')))
        self.assertEqual(0, code)
        self.assertIn('Aggregate gpu: ', out)


class ChangesTest(ReplayTestCase):
    """Replays of a recorded cloud as it would be."""

    def setUp(self):
        super().setUp()
        self.cloud = Cloud(3)
        self.path = self.cloud.write(self.folder.join('cloud'))
        self.up = [host['name'] for host in self.cloud.inventory['hosts'] if host['service'] == {
            'state': 'up', 'status': 'enabled', 'forced_down': False, 'disabled_reason': None}]
        self.lost = next(name for name in self.up if any(
            each['host'] == name for each in self.cloud.inventory['instances']))

    def test_a_lost_host_has_no_load_and_its_servers_are_accounted_for(self):
        changes = self.report(self.path, '--lose', self.lost)['changes']
        servers = {each['uuid'] for each in self.cloud.inventory['instances']
                   if each['host'] == self.lost}
        self.assertEqual(servers, {*changes['restarted'], *changes['left']})
        self.assertNotIn(self.lost, changes['restarted'].values())
        self.assertEqual({None}, {each['changed'] for each in changes['loads']
                                  if each['host'] == self.lost})

    def test_a_new_host_is_planned_with(self):
        report = self.report(self.path, '--add', f'1:like={self.up[0]}')
        self.assertIn(f'{self.up[0]}+1', {each['host'] for each in report['changes']['loads']})

    def test_new_servers_are_of_a_recorded_flavor(self):
        path = self.cloud.know_what_rules_go_by().write(self.folder.join('flavors'))
        for texts in (('1:small0',), ('1:small0', '1:small0', '1:1:512')):
            report = self.report(path, *(f'--boot={text}' for text in texts))
            self.assertEqual({}, report['changes']['not_booted'])

    def test_new_servers_have_names_that_can_be_shown(self):
        boots = ('--boot', '1:1:512', '--boot', '1:1:512')
        path = Cloud(5).write(self.folder.join('with_room'))
        stayed = [name for aggregate in self.report(path, *boots)['aggregates']
                  for skip in aggregate['not_moved'] for name in skip['instances']]
        self.assertEqual(['new server 1:512/000001', 'new server 1:512/000002'],
                         sorted({name for name in stayed if name.startswith(('new', '\0'))}))
        _code, out, _err = run(path, *boots)
        self.assertRegex(out, r'no_profile +│ 2 +│ new server 1:512/000001 ')

    def test_without_changes_there_are_none(self):
        self.assertNotIn('changes', self.report(self.path))

    def test_people_are_shown_the_load_before_and_after(self):
        code, out, _err = run(self.path, '--lose', self.lost)
        self.assertEqual(0, code)
        self.assertIn('servers restart elsewhere.', out)
        self.assertIn('(imbalance)', out)

    def test_a_change_that_cannot_be_made_is_a_wrong_argument(self):
        for change in (('--lose', 'nope'), ('--ratio', 'VCPU'), ('--boot', '1:m1.small')):
            code, _out, err = run(self.path, *change)
            self.assertEqual(2, code)
            self.assertIn(change[1].partition(':')[2] or change[1], err)
