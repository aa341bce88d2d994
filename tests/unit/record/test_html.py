"""The page of a replay: what is in it. How it looks is seen in a browser, in the functional
tests."""

import dataclasses
import io
import json
import os
import pathlib
import re

import fixtures
import testtools

from kronos_nova import page as page_files
from kronos_nova.objects import plan
from kronos_nova.record import html
from tests.unit.record.clouds import Cloud
from tests.unit.record.reports import a_cloud
from tests.unit.record.reports import a_report
from tests.unit.record.test_replay import run


def page_of(*cycles):
    page, file = html.Page(), io.StringIO()
    for cycle in cycles:
        page.add(*cycle)
    page.write(file)
    return file.getvalue()


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


class PageTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = a_cloud(hosts=4, instances=8)
        self.report = a_report(self.cloud)

    def test_hosts_have_their_scores_and_instances_before_and_after(self):
        cycle, = data_of(page_of(('now', self.cloud, self.report)))['cycles']
        aggregate, = cycle['aggregates']
        hosts = {host['name']: host for host in aggregate['hosts']}
        self.assertEqual(['cmp0', 'cmp1', 'cmp2', 'cmp3'], sorted(hosts))
        self.assertEqual(([2, 1], [[0.9, 0.6]]), (
            hosts['cmp0']['servers'], hosts['cmp0']['scores']))
        self.assertEqual(([2, 3], [[0.1, 0.4]]), (
            hosts['cmp3']['servers'], hosts['cmp3']['scores']))
        self.assertEqual('disabled', hosts['cmp2']['state'])
        move, = aggregate['moves']
        self.assertEqual(('vm0', 'cmp0', 'cmp3', 'evens the load'), tuple(
            move[key] for key in ('name', 'source', 'destination', 'reason')))

    def test_it_has_where_the_options_come_from_and_the_groups_of_moves(self):
        [aggregate] = self.report.aggregates
        report = dataclasses.replace(self.report, aggregates=(dataclasses.replace(
            aggregate, moves=tuple(dataclasses.replace(move, group=2)
                                   for move in aggregate.moves)),))
        [cycle] = data_of(page_of(('now', self.cloud, report, 'Options as recorded.')))['cycles']
        self.assertEqual(('Options as recorded.', [2]), (
            cycle['note'], [move['group'] for move in cycle['aggregates'][0]['moves']]))

    def test_only_some_of_those_that_stay_are_named_and_all_are_counted(self):
        cloud = a_cloud(hosts=4, instances=html.LISTED + 100)
        cycle, = data_of(page_of(('now', cloud, a_report(cloud))))['cycles']
        skip, = cycle['aggregates'][0]['not_moved']
        self.assertEqual((html.LISTED + 99, html.LISTED), (skip['count'], len(skip['instances'])))

    def test_a_name_cannot_end_the_script(self):
        cloud = a_cloud(hosts=4, instances=8, display_name='</script><script>alert(1)//{}')
        text = page_of(('<!--', cloud, a_report(cloud)))
        self.assertEqual(2, text.count('</script>'))
        self.assertEqual('</script><script>alert(1)//0',
                         data_of(text)['cycles'][0]['aggregates'][0]['moves'][0]['name'])

    def test_the_page_needs_nothing_but_itself(self):
        text = page_of(('now', self.cloud, self.report))
        self.assertEqual([], re.findall(r'(?:src|href)\s*=|@import|url\(', text))
        self.assertIn("default-src 'none'", text)
        self.assertNotIn('unsafe', text)

    def test_nothing_is_run_but_what_the_policy_of_the_page_names(self):
        text = page_of(('now', self.cloud, self.report))
        for kind, tag in (('script', '<script>'), ('style', '<style>')):
            [found] = re.findall(f'{tag}(.*?)</{kind}>', text, re.DOTALL)
            self.assertIn(f'{kind}-src {page_files.source_hash(found)}', text)

    def test_a_day_and_an_aggregate_without_data(self):
        empty = plan.CycleReport(planning_seconds=0.0, aggregates=(plan.AggregateReport(
            name='gpu', outcome='no_data', mode='spread', planner='spread', policies=(
                plan.PolicyReport(name='cpu', state='no_data', weight=1.0, threshold=0.1,
                                  detail='no series'),)),))
        cycles = data_of(page_of(('00:00', self.cloud, self.report),
                                 ('00:05', self.cloud, empty)))['cycles']
        self.assertEqual(['00:00', '00:05'], [cycle['label'] for cycle in cycles])
        aggregate, = cycles[1]['aggregates']
        self.assertEqual((None, [[None]] * 4), (
            aggregate['before'], [host['scores'] for host in aggregate['hosts']]))


class CommandTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir())
        self.page = self.folder.join('page.html')

    def cycles(self):
        with open(self.page) as file:
            return data_of(file.read())['cycles']

    def test_a_snapshot_with_a_page(self):
        snapshot = Cloud(1, 'spread').write(self.folder.join('one'))
        self.assertEqual(0, run(snapshot, '--html', self.page)[0])
        self.assertEqual(['one'], [cycle['label'] for cycle in self.cycles()])

    def test_a_folder_of_snapshots_is_planned_one_by_one(self):
        for number in (2, 1):
            Cloud(number, 'spread').write(self.folder.join('day', f'{number}'))
        code, out, _ = run(self.folder.join('day'), '-f', 'json', '--html', self.page)
        self.assertEqual(0, code)
        snapshots = json.loads(out)['snapshots']
        self.assertEqual(['1', '2'], [row['snapshot'] for row in snapshots])
        alone = json.loads(run(self.folder.join('day', '1'), '-f', 'json')[1])
        self.assertEqual(alone['aggregates'], snapshots[0]['aggregates'])
        self.assertEqual(['1', '2'], [cycle['label'] for cycle in self.cycles()])
        code, out, _ = run(self.folder.join('day'))
        self.assertIn('Snapshots: 2', out)

    def test_broken_snapshots_of_a_day_are_an_error_and_the_others_are_planned(self):
        day = [Cloud(number, 'spread').write(self.folder.join('day', f'{number}'))
               for number in (1, 2, 3)]
        os.unlink(os.path.join(day[0], 'inventory.json'))
        with open(os.path.join(day[1], 'options.json'), 'w') as file:
            json.dump({'kronos': {'no_such': 1}}, file)
        code, out, err = run(self.folder.join('day'), '-f', 'json', '--html', self.page)
        self.assertEqual(1, code)
        lines = err.splitlines()
        self.assertEqual(2, len(lines), err)
        self.assertIn('inventory.json', lines[0])
        self.assertIn('no_such', lines[1])
        self.assertEqual(['3'], [row['snapshot'] for row in json.loads(out)['snapshots']])
        self.assertEqual(['3'], [cycle['label'] for cycle in self.cycles()])
        code, out, err = run(self.folder.join('day'))
        self.assertEqual(1, code)
        self.assertIn('Snapshots: 1', out)

    def test_a_day_without_a_valid_snapshot_is_an_error_alone(self):
        for number in (1, 2):
            Cloud(number, 'spread').write(self.folder.join('day', f'{number}'))
        policies = self.folder.join('trial.yaml')
        with open(policies, 'w') as file:
            file.write('mode: nowhere')
        code, out, err = run(self.folder.join('day'), '--policies', policies, '--html', self.page)
        self.assertEqual((1, ''), (code, out))
        self.assertEqual(len(err.splitlines()), len({*err.splitlines()}), err)
        self.assertIn('trial.yaml', err)
        self.assertFalse(os.path.exists(self.page))

    def test_snapshots_for_which_a_change_is_refused_are_an_error_and_the_others_are_planned(self):
        for number in (1, 2):
            Cloud(number, 'spread').write(self.folder.join('day', f'{number}'))
        inventory = pathlib.Path(self.folder.join('day', '1', 'inventory.json'))
        lost = json.loads(inventory.read_text())['hosts'][0]['name']
        inventory.write_text(inventory.read_text().replace(f'"{lost}"', '"elsewhere"'))
        code, out, err = run(self.folder.join('day'), '--lose', lost, '-f', 'json')
        self.assertEqual(1, code)
        self.assertIn(f'{self.folder.join("day", "1")}: ', err)
        self.assertIn(lost, err)
        self.assertEqual(['2'], [row['snapshot'] for row in json.loads(out)['snapshots']])

    def test_a_change_that_is_refused_for_every_snapshot_is_a_wrong_argument(self):
        for number in (1, 2):
            Cloud(number, 'spread').write(self.folder.join('day', f'{number}'))
        code, out, err = run(self.folder.join('day'), '--lose', 'nowhere', '--html', self.page)
        self.assertEqual((2, ''), (code, out))
        self.assertEqual(1, len(err.splitlines()), err)
        self.assertFalse(os.path.exists(self.page))

    def test_a_page_that_cannot_be_written(self):
        snapshot = Cloud(1, 'spread').write(self.folder.join('one'))
        code, _, err = run(snapshot, '--html', self.folder.join('nowhere', 'page.html'))
        self.assertEqual(2, code)
        self.assertIn('nowhere', err)
