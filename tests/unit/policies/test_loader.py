"""A policies file is taken whole, or refused with everything that is wrong with it."""

import pathlib

import fixtures
import testtools

from kronos_nova import exception
from kronos_nova import policies

CPU = """
- name: cpu
  mode: spread
  weight: 0.5
  imbalance_query: host_cpu
  vm_profile_query: vm_cpu
  threshold: 0.1
"""
MEMORY = CPU.replace('cpu', 'memory')


def problems_of(text):
    try:
        policies.parse(text, 'p.yaml')
    except exception.PolicyError as error:
        return str(error)
    raise AssertionError('nothing was refused')


class LoaderTest(testtools.TestCase):
    def test_two_policies_share_the_weight(self):
        found = policies.parse('policies:' + MEMORY + CPU)
        self.assertEqual(['cpu', 'memory'], [policy.name for policy in found.active])
        self.assertEqual(('spread', 10), (found.mode, found.budget))

    def test_the_budget_is_the_largest_of_the_enabled(self):
        found = policies.parse('policies:' + CPU.replace('0.5', '1') + (
            '  max_migrations_per_cycle: 3\n') + MEMORY + (
            '  enabled: false\n  max_migrations_per_cycle: 50\n'))
        self.assertEqual(3, found.budget)

    def test_everything_wrong_is_reported_at_once_with_its_place(self):
        found = problems_of('policies:' + CPU.replace('0.1', '1.5').replace('  weight: 0.5\n', '')
                           + MEMORY.replace('spread', 'sprad') + '  colour: red\n')
        for place in ('policies[0] (cpu).threshold', 'policies[0] (cpu).weight',
                      'policies[1] (memory).mode', 'policies[1] (memory).colour'):
            self.assertIn(place, found)

    def test_what_is_wrong_with_all_together_is_reported_beside_what_is_wrong_with_one(self):
        found = problems_of('policies:' + CPU.replace('0.1', '1.5') + CPU + MEMORY.replace(
            'spread', 'pack'))
        for problem in ('(cpu).threshold', 'repeated: cpu', 'cannot be mixed', 'sum to 1.5'):
            self.assertIn(problem, found)

    def test_weights_must_sum_to_one(self):
        self.assertIn('must sum to 1, but sum to 0.5', problems_of('policies:' + CPU))

    def test_modes_do_not_mix(self):
        pack = MEMORY.replace('spread', 'pack') + '  capacity_query: c\n  capacity_threshold: 0.8\n'
        self.assertIn('cannot be mixed', problems_of('policies:' + CPU + pack))

    def test_imbalance_over_is_more_than_half_and_only_for_spread(self):
        one = CPU.replace('0.5', '1') + '  imbalance_over: '
        found, = policies.parse('policies:' + one + '0.95').active
        self.assertEqual([0, 1, 1, 2, 20], [found.left_out(n) for n in (19, 20, 39, 40, 400)])
        for bad in ('0.5', '1.01', 'much'):
            self.assertIn('imbalance_over', problems_of('policies:' + one + bad))
        pack = one.replace('spread', 'pack') + '0.9\n  capacity_query: c\n  capacity_threshold: 0.8'
        self.assertIn('imbalance_over has no effect', problems_of('policies:' + pack))

    def test_names_are_unique(self):
        self.assertIn('repeated: cpu', problems_of('policies:' + CPU + CPU))

    def test_pack_needs_to_know_how_full_hosts_are(self):
        pack = CPU.replace('spread', 'pack').replace('0.5', '1')
        self.assertIn('mode pack needs capacity_query', problems_of('policies:' + pack))

    def test_figures_must_be_figures(self):
        for bad in ('.nan', '.inf', '-0.1', 'much'):
            self.assertIn('weight', problems_of('policies:' + CPU.replace('0.5', bad)))

    def test_what_is_no_mapping_is_refused(self):
        for text in ('', '- a', 'just text', '42', 'policies: []', 'policies: {}'):
            self.assertIn('polic', problems_of(text))

    def test_errors_speak_of_yaml_and_not_of_python(self):
        for rules, said in (
                ('rules: never', 'rules: must be a list'),
                ('rules:\n- {name: a, servers: [b], never_move: true}',
                 'rules[0] (a).servers: must be a mapping'),
                ('rules:\n- {name: a, servers: {name: b}, must_run_on: [c]}',
                 'rules[0] (a).must_run_on: must be a mapping'),
                ('rules:\n- {name: 5, servers: {name: b}, never_move: true}',
                 'rules[0] (5).name: must be a text'),
                ('rules:\n- {name: a, never_move: true}', 'rules[0] (a).servers: is missing'),
                ('rules:\n- {name: a, servers: {host: b}, never_move: true}',
                 'rules[0] (a).servers.host: there is no such key')):
            self.assertIn(said, problems_of(f'policies: []\n{rules}'))

    def test_each_error_names_the_file_the_key_the_value_and_the_remedy(self):
        cpu = CPU.replace('0.1', '15%').replace('weight: 0.5', 'weights: 0.5')
        memory = MEMORY.replace('0.1', '20').replace('spread', 'spred')
        found = problems_of(f'policies:{cpu}{memory}').splitlines()
        self.assertEqual([
            'p.yaml: policies[0] (cpu).weight: is missing',
            'p.yaml: policies[0] (cpu).threshold: must be a number, but is 15%; write 0.15 for '
            '15 %',
            'p.yaml: policies[0] (cpu).weights: there is no such key; perhaps weight is meant',
            "p.yaml: policies[1] (memory).mode: must be 'spread', 'pack' or 'relieve', but is "
            'spred',
            'p.yaml: policies[1] (memory).threshold: must be at most 1, but is 20; write 0.2 for '
            '20 %'], sorted(found, key=lambda line: line.partition(')')[0]))

    def test_true_is_no_number(self):
        for key, number in (('weight', '0.5'), ('threshold', '0.1')):
            self.assertIn(f'(cpu).{key}: must be a number, but is true', problems_of(
                'policies:' + CPU.replace(f'{key}: {number}', f'{key}: true')))
        self.assertIn('(a).cost: must be a number, but is true', problems_of(
            f'policies:{CPU}\nrules: [{{name: a, servers: {{name: b}}, '
            'should_run_on: {hosts: [c]}, cost: true}]'))

    def test_a_rules_key_is_guessed_from_the_keys_of_rules(self):
        rules = '[{name: a, servers: {name: b}, must_run_onn: {hosts: [c]}}]'
        self.assertIn('rules[0] (a).must_run_onn: there is no such key; perhaps must_run_on is '
                      'meant', problems_of(f'policies:{CPU}\nrules: {rules}'))

    def test_policies_with_errors_are_not_said_to_be_missing(self):
        self.assertNotIn('too few', problems_of('policies:' + CPU.replace('0.1', 'x')))
        self.assertIn('p.yaml: policies: has too few entries', problems_of('policies: []'))

    def test_what_is_no_yaml_is_refused(self):
        for text in ('a: [', 'a: &x 1\nb: *x', 'a: 1\na: 2', '\x00', '!!python/object:os.x {}',
                     '? [1, 2]\n: 3', '[' * 5000):
            self.assertIn('p.yaml', problems_of(text))

    def test_a_file_is_parsed_again_when_it_changes(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'policies.yaml')
        path.write_text('policies:' + CPU.replace('0.5', '1'))
        first = policies.load(path)
        self.assertIs(first, policies.load(path))
        path.write_text('policies:' + CPU.replace('0.5', '1').replace('0.1', '0.2'))
        self.assertEqual([0.2], [policy.threshold for policy in policies.load(path).active])

    def test_a_file_of_which_not_even_the_kind_can_be_found_out_is_named(self):
        """So it is with a file in a directory that another user owns, except for root."""
        path = pathlib.Path('n' * 300)
        error = self.assertRaises(exception.PolicyError, policies.load, path)
        self.assertIn('cannot be read: File name too long', str(error))

    def test_a_file_that_cannot_be_read_is_named(self):
        path = self.useFixture(fixtures.TempDir()).join('none.yaml')
        error = self.assertRaises(exception.PolicyError, policies.load, path)
        self.assertIn(path, str(error))
        self.assertIn('No such file', str(error))
