"""A snapshot that is not right is refused with every error, and never planned."""

import json
import pathlib

import fixtures
import testtools

from tests.unit.record.clouds import Cloud
from tests.unit.record.test_replay import run

INVENTORY = 'inventory.json'
IMBALANCE = 'metrics/cpu/imbalance.json'


class InvalidTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        Cloud(2).write(self.folder)

    def edit(self, name, change):
        path = self.folder / name
        tree = json.loads(path.read_text())
        change(tree)
        path.write_text(json.dumps(tree))

    def found(self, *arguments):
        code, out, err = run(self.folder, '-f', 'json', *arguments)
        self.assertEqual((1, ''), (code, out))
        return err

    def details(self):
        code, out, _err = run(self.folder, '-f', 'json', '--spread-planner', 'greedy')
        self.assertEqual(0, code)
        rows = json.loads(out)['aggregates']
        for row in rows:
            self.assertNotIn(row['outcome'], ('balanced',))
        return [policy['detail'] for row in rows for policy in row['policies']
                if policy['state'] == 'no_data']

    def test_everything_is_reported_at_once_with_file_and_path(self):
        def spoil(tree):
            tree['instances'][0].update(host='ghost', memory_mb=512)
            tree['instances'][2] = dict(tree['instances'][1])
            tree['aggregates'][0]['hosts'].append('spectre')
        self.edit(INVENTORY, spoil)
        self.edit('cooldowns.json', lambda tree: tree['instance_quarantines'].update(a=-2))
        (self.folder / IMBALANCE).write_text('<html>please log in</html>')
        (self.folder / 'meta.json').unlink()
        found = self.found()
        for line in (f'{INVENTORY}: instances[0].host: no host is called ghost',
                     f'{INVENTORY}: aggregates[0].hosts: no host is called spectre',
                     'is given 2 times', 'cooldowns.json: instance_quarantines.a: must be',
                     f'{IMBALANCE}: an HTML page', 'meta.json: cannot be read'):
            self.assertIn(line, found)

    def test_unknown_and_missing_keys_are_named(self):
        def spoil(tree):
            tree['instances'][3]['colour'] = 'red'
            del tree['hosts'][1]['service']
        self.edit(INVENTORY, spoil)
        found = self.found()
        self.assertIn(f'{INVENTORY}: instances[3].colour', found)
        self.assertIn(f'{INVENTORY}: hosts[1].service', found)

    def test_what_format_2_adds_is_checked_as_well(self):
        def spoil(tree):
            host, move = tree['hosts'][0], tree['moves_under_way'][0]
            host['used']['VCPU'] = -1
            host['inventory']['VCPU']['step_size'] = 0
            tree['shared_providers'][0]['colour'] = 'red'
            move['by'] = 'kronos'

        def contradict(tree):
            first, second, third = tree['moves_under_way']
            first['instance_uuid'] = 'gone'
            second['source'] = next(h['name'] for h in tree['hosts']
                                    if h['name'] != second['source'])
            third['destination'] = 'ghost'
            tree['hosts'][1]['inventory']['VCPU'].update(min_unit=4, max_unit=2)
            tree['shared_providers'][0]['hosts'].append('spectre')
        for change, lines in (
                (spoil, ('hosts[0].used.VCPU', 'hosts[0].inventory.VCPU.step_size',
                         'shared_providers[0].colour', 'moves_under_way[0].by')),
                (contradict, ('moves_under_way[0].instance_uuid: there is no instance gone',
                              'moves_under_way[1].source: the instance is on',
                              'moves_under_way[2].destination: no host is called ghost',
                              'hosts[1].inventory.VCPU: min_unit 4 is more than max_unit 2',
                              'shared_providers[0].hosts: no host is called spectre'))):
            Cloud(2).know_what_placement_holds().write(self.folder)
            self.edit(INVENTORY, change)
            found = self.found()
            for line in lines:
                self.assertIn(line, found)

    def test_cells_that_cannot_be_are_named(self):
        def spoil(tree):
            tree['hosts'][0]['cells'] = [{'id': 1, 'memory_mb': 1024}] * 2
            tree['hosts'][1]['cells'] = [
                {'id': 0, 'memory_mb': 1024, 'pages': {'2M': {'total': 1}}}]
            tree['instances'][0] |= {'cells': [{'cpus': 1, 'memory_mb': 1}], 'on_cells': [0, 1]}
            tree['instances'][1]['devices'] = [{'alias': 'nic', 'policy': 'near'}]
        self.edit('meta.json', lambda tree: tree.update(format=3))
        self.edit(INVENTORY, spoil)
        found = self.found()
        self.assertIn('hosts[1].cells[0].pages: 2M is not a size of memory pages in KiB', found)
        self.assertIn('instances[1].devices[0].policy: ', found)

        def mend(tree):
            del tree['hosts'][1]['cells'], tree['instances'][1]['devices']
        self.edit(INVENTORY, mend)
        found = self.found()
        self.assertIn('hosts[0].cells: id 1 is given 2 times', found)
        self.assertIn('instances[0].on_cells: must have one number for each of the 1 cells', found)

    def test_figures_that_cannot_be_are_named(self):
        for key, value in (('memory_mb', -1), ('vcpus', 1.5), ('memory_mb', '512'),
                           ('disk_gb', 10**30), ('locked', 1)):
            Cloud(2).write(self.folder)
            self.edit(INVENTORY, lambda tree, k=key, v=value: tree['instances'][0].update({k: v}))
            self.assertIn(f'instances[0].{key}', self.found())

    def test_a_truncated_file_is_named(self):
        for name in (INVENTORY, 'meta.json', 'cooldowns.json', IMBALANCE):
            Cloud(2).write(self.folder)
            path = self.folder / name
            path.write_text(path.read_text()[:-20])
            self.assertIn(name, self.found())

    def test_nan_is_no_json(self):
        path = self.folder / INVENTORY
        path.write_text(path.read_text().replace('"allocation_ratio": 1.0',
                                                 '"allocation_ratio": NaN', 1))
        self.assertIn(INVENTORY, self.found())

    def test_a_newer_format_is_refused(self):
        self.edit('meta.json', lambda tree: tree.update(format=4))
        self.assertIn('meta.json: format', self.found())

    def test_policies_that_were_not_recorded_cannot_be_replayed(self):
        policies = self.folder / 'other.yaml'
        policies.write_text((self.folder / 'policies.yaml').read_text().replace('cpu', 'steal'))
        self.assertIn('metrics/steal/imbalance.json: is missing, and policy steal needs it',
                      self.found('--policies', policies))

    def test_a_folder_that_cannot_be_looked_into(self):
        """So it is with a folder that another user owns, except for root."""
        self.folder = self.folder / ('n' * 300)
        self.assertIn('is not a folder', self.found())

    def test_an_answer_that_cannot_be_read_is_named(self):
        """As one of another user. No user can read the first byte of this file."""
        (self.folder / IMBALANCE).unlink()
        (self.folder / IMBALANCE).symlink_to('/proc/self/mem')
        self.assertIn(f'{IMBALANCE}: cannot be read: ', self.found())

    def test_a_folder_that_is_not_there(self):
        code, _out, err = run(self.folder / 'nowhere')
        self.assertEqual((1, f'{self.folder}/nowhere: is not a folder\n'), (code, err))

    def test_loads_that_cannot_be_are_no_data(self):
        for value in ('NaN', '+Inf', '-Inf', '-0.1', '1.5', '1e400'):
            Cloud(2).write(self.folder)

            def spoil(tree, value=value):
                for series in tree['data']['result']:
                    series['value'][1] = value
            self.edit(IMBALANCE, spoil)
            self.assertNotEqual([], self.details(), value)

    def test_a_series_given_twice_is_no_data(self):
        self.edit(IMBALANCE, lambda tree: tree['data'].update(
            result=tree['data']['result'] * 2))
        self.assertIn('more than one series', self.details()[0])

    def test_names_that_nova_does_not_know_are_no_data_with_a_remedy(self):
        def spoil(tree):
            for series in tree['data']['result']:
                series['metric']['host'] += '.example.com:9100'
        self.edit(IMBALANCE, spoil)
        self.assertIn('label_replace', ' '.join(self.details()))

    def test_an_error_of_prometheus_is_no_data(self):
        (self.folder / IMBALANCE).write_text(
            '{"status": "error", "errorType": "timeout", "error": "query timed out"}')
        self.assertIn('query timed out', self.details()[0])

    def test_wrong_usage(self):
        for arguments in (['--budget', '-1'], ['--budget', 'x'], ['--spread-planner', 'best'],
                          ['--spread-planner', 'evacuate'], ['--pack-planner', 'spread'],
                          ['--config-file', self.folder / 'none'], ['-f', 'xml'],
                          ['--config-file', self.config('stabilization_cycles = often')],
                          ['--config-file', self.config('maintenance_window = always')],
                          ['--config-file', self.config('aggregates = nowhere')]):
            code, out, err = run(self.folder, *arguments)
            self.assertEqual((2, '', True), (code, out, bool(err)), arguments)

    def config(self, line):
        path = self.folder / f'{line[:5]}.conf'
        path.write_text(f'[kronos]\n{line}\n')
        return path
