"""Snapshots over HTTP: which there are, one as a file, and what would be planned otherwise."""

import http.client
import io
import json
import pathlib
import shutil
import tarfile
import time
import urllib.parse

import fixtures
import yaml

from kronos_nova.cmd import api
from kronos_nova.operations import snapshots
from tests.unit.api import base
from tests.unit.record import clouds
from tests.unit.record.test_replay import run


class SnapshotsTestCase(base.ApiTestCase):
    def setUp(self):
        super().setUp()
        self.kept = self.folder / 'snapshots'
        self.kept.mkdir()
        self.written = pathlib.Path(clouds.Cloud(2).write(str(self.kept / 'noon')))

    def replay(self, expected=200, token=base.OPERATOR, name='noon', **body):
        ask = self.ask if expected == 200 else self.refuse
        return ask(f'/v1/snapshots/{name}/what-if', method='POST', token=token, json=body,
                   expected=expected)


    def get(self, name):
        """(status, content) of a download; a name is sent as it is given."""
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.url).netloc, timeout=60)
        self.addCleanup(connection.close)
        connection.request('GET', f'/v1/snapshots/{name}', headers={'X-Auth-Token': base.OPERATOR})
        answer = connection.getresponse()
        return answer.status, answer.read()


class ListTest(SnapshotsTestCase):
    def test_those_that_are_whole_are_listed_the_newest_first(self):
        clouds.Cloud(4).write(str(self.kept / 'later'))
        meta = self.kept / 'later/meta.json'
        meta.write_text(json.dumps(json.loads(meta.read_text()) | {
            'taken_at': '2026-11-21T12:00:00Z'}))
        (self.kept / 'half').mkdir()
        (self.kept / 'broken').mkdir()
        (self.kept / 'broken/meta.json').write_text('{')
        found = self.ask('/v1/snapshots')['snapshots']
        self.assertEqual(['later', 'noon'], [each['name'] for each in found])
        self.assertEqual('2026-11-20T12:00:00Z', found[1]['taken_at'])
        self.assertGreater(found[1]['bytes'], 1000)

    def test_one_that_is_damaged_hides_no_other(self):
        for name, content in (('deep', '[' * 60_000), ('list', '[]'), ('late', json.dumps(
                {'taken_at': '9999-99-99', 'cloud': 'made', 'kronos_version': '0'}))):
            (self.kept / name).mkdir()
            (self.kept / name / 'meta.json').write_text(content)
        self.assertEqual(['noon'], [each['name'] for each in self.ask(
            '/v1/snapshots')['snapshots']])

    def test_a_name_that_no_folder_can_have_is_not_found(self):
        for name in ('x' * 300, 'é' * 200):
            self.assertEqual(404, self.get(urllib.parse.quote(name))[0])

    def test_one_is_downloaded_and_replayed_elsewhere(self):
        status, content = self.get('noon')
        self.assertEqual(200, status)
        elsewhere = self.useFixture(fixtures.TempDir()).path
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            self.assertEqual({''}, {each.uname for each in archive})
            archive.extractall(elsewhere, filter='data')
        there = run(f'{elsewhere}/noon', '-f', 'json')
        here = run(self.written, '-f', 'json')
        self.assertEqual(_planned(json.loads(here[1])), _planned(json.loads(there[1])))

    def test_one_that_is_removed_during_its_download_is_not_found(self):
        add = tarfile.TarFile.add

        def remove_and_add(archive, folder, **options):
            shutil.rmtree(folder)
            return add(archive, folder, **options)

        self.useFixture(fixtures.MonkeyPatch('tarfile.TarFile.add', remove_and_add))
        self.assertEqual(404, self.get('noon')[0])

    def test_a_reader_downloads_nothing(self):
        self.refuse('/v1/snapshots/noon', 403)

    def test_nothing_beside_the_snapshots_is_given_away(self):
        (self.folder / 'meta.json').write_text('{}')
        for name in ('none', '..', '.', '%2e%2e', '..%2f', 'noon%2fmetrics', '%00'):
            self.assertIn(self.get(name)[0], (400, 404), name)


class ReplayTest(SnapshotsTestCase):
    def test_it_plans_what_the_command_plans(self):
        _code, out, _err = run(self.written, '-f', 'json')
        found = self.replay()
        self.assertEqual(_planned(json.loads(out)), _planned(found))
        self.assertTrue(any(each['moves'] for each in found['aggregates']))

    def test_other_policies_and_planners_and_a_budget_make_another_plan(self):
        policies = yaml.safe_load((self.written / 'policies.yaml').read_text())
        for policy in policies['policies']:
            policy['threshold'] = 1.0
        plain = self.replay()
        calm = self.replay(policies=policies)
        self.assertGreater(_moves(plain), _moves(calm))
        self.assertEqual(1, max(len(each['moves'])
                                for each in self.replay(budget=1)['aggregates']))
        self.assertIn('greedy', [each['planner'] for each in self.replay(
            spread_planner='greedy')['aggregates']])

    def test_moves_that_make_the_room_of_a_buffer_have_no_imbalance(self):
        cloud = clouds.Cloud(4)
        cloud.inventory['server_groups'] = []
        cloud.write(str(self.kept / 'full'))
        policies = cloud.policies() | {'buffers': [
            {'name': f'of-{each["name"]}', 'aggregate': each['name'], 'flavor': '6:8192', 'keep': 2}
            for each in cloud.inventory['aggregates']]}
        found = self.replay(name='full', policies=policies)
        self.assertIn(('make_room', None), [
            (move['phase'], move['combined_after']) for each in found['aggregates']
            for move in each['moves']])

    def test_what_is_wrong_is_reported(self):
        self.assertIn('policies', self.replay(400, policies={'policies': 7})['detail'])
        self.assertIn('nonsense', self.replay(400, spread_planner='nonsense')['detail'])
        self.assertIn('planner "--help"', self.replay(400, spread_planner='--help')['detail'])
        self.assertIn('budget', self.replay(400, budget=-1)['detail'])
        self.replay(404, name='none')
        self.replay(403, token=base.READER)

    def test_one_runs_at_a_time(self):
        with self.used._turn:
            self.assertEqual('kronos.replay_busy', self.replay(429)['code'])

    def test_it_takes_no_more_time_and_memory_than_it_may(self):
        self.used._seconds = 0.01
        self.assertEqual('kronos.replay_too_large', self.replay(422)['code'])
        self.used._seconds, self.used._memory = 60, 60
        began = time.monotonic()
        self.replay(422)
        self.assertLess(time.monotonic() - began, 60)

    def services(self):
        made = super().services()
        self.used = made.snapshots
        return made


class NoneTest(base.ApiTestCase):
    def test_without_a_folder_there_are_none(self):
        for path in (None, ''):
            none = snapshots.SnapshotFolder(path, 60, 2048, api.replay.__name__)
            self.assertEqual([], none.list())
        self.refuse('/v1/snapshots/noon', 404, token=base.OPERATOR)


def _planned(report):
    """The moves: on a machine that is busy a reason also tells that planning took its time."""
    return [[(move['instance_uuid'], move['source'], move['destination'])
             for move in each['moves']] for each in report['aggregates']]


def _moves(report):
    return sum(len(each['moves']) for each in report['aggregates'])
