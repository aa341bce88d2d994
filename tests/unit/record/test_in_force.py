"""The options in force and the past time in a recording, and their use by a replay."""

import dataclasses
import datetime
import json
import time

import numpy as np
from fixtures import MonkeyPatch
from oslo_config import cfg
from oslo_db import exception as db_exc

from kronos_nova import conf as kronos_conf
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cycle import observe
from kronos_nova.cycle import options
from kronos_nova.cycle import steps
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.ports import CyclePorts
from kronos_nova.cycle.ports import CycleRules
from kronos_nova.db.cycles import Cycles
from kronos_nova.db.journal import Journal
from kronos_nova.db.load_stats import LoadStatsStore
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.load import LoadStats
from kronos_nova.metrics import prometheus
from kronos_nova.policies import loader
from kronos_nova.record import history
from kronos_nova.record import reader
from kronos_nova.record import schema
from tests.unit.inventory.fakes_public_api import server
from tests.unit.inventory.fakes_public_api import service
from tests.unit.record import test_record
from tests.unit.record.test_record import vector
from tests.unit.record.test_replay import run

PASSWORD, TOKEN = 's3cret-password', 's3cret-token'
HISTORY = PlanningHistory(
    load_stats={'gpu': {'cpu': LoadStats(100.0, ('b', 'a'), np.arange(10.0).reshape(2, 5),
                                              16.0)}},
    moves=(PastMove(instance_uuid='a', source='x', destination='y', ended_at=5.0,
                    has_emptied=True),),
    tries=(PastTry(instance_uuid='a', source='x', destination='y', memory_mb=4, seconds=None,
                   failed=True),),
    imbalanced={'gpu': 3}, doubted={'gpu': frozenset({('cpu', 'x'), ('cpu', 'y')})},
    spread={'gpu': 60.0}, refused={'a': 9.0}, refused_hosts={'a': {'x': 'no'}},
    projects_moved={'p': 1}, caused={'b': 2},
    instances_moved={'a': 1}, instances_moved_today={'b': 1})


class InForceTestCase(test_record.RecordTestCase):
    kronos = ('restraint = 1.5\nstabilization_cycles = 3\nnever_move_projects = acme-project\n'
              'coordination_url = mysql://kronos:s3cret-password@db/kronos\n'
              'aggregates = gpu, gone\ninclude_unassigned_hosts = True\n'
              'maintenance_window = gpu; 0 0 * * *; 1440\n')

    def setUp(self):
        super().setUp()
        with (self.folder / 'nova.conf').open('a') as file:
            file.write(f'password = {PASSWORD}\n')
        self.cloud.services = [service(f'cmp{n}') for n in (1, 2, 3)]
        self.cloud.servers = [server(n, f'cmp{1 + n % 2}') for n in range(1, 9)]
        self.answers['load'] = vector(*(({'host': f'cmp{n}'}, load)
                                        for n, load in ((1, 0.8), (2, 0.8), (3, 0.0))))
        self.answers['weight'] = vector(*(({'domain': f'instance-{n:08x}'}, 0.2)
                                          for n in range(1, 9)))
        self.cloud.aggregates[0]['hosts'] = ['cmp1', 'cmp2', 'cmp3']
        self.known = [each['id'] for each in self.cloud.servers]
        now = datetime.datetime.now(datetime.UTC)
        stats = LoadStats(now.timestamp() - 60, tuple(self.known),
                          np.tile([80000.0, 0.2, 0.0, 0.2, 0.0], (8, 1)))
        LoadStatsStore(self.database).save('gpu', {'cpu': stats}, now)
        cycles = Cycles(self.database)
        cycles.begin('gpu', 'one', now, 0)
        for _ in range(4):
            cycles.end('gpu', now, 'no_move', True, '{}')

    def replayed(self, *arguments):
        code, out, err = run(self.target, '-f', 'json', *arguments)
        self.assertEqual((0, ''), (code, err))
        return json.loads(out)

    def first_line(self, *arguments):
        code, out, err = run(self.target, *arguments)
        self.assertEqual((0, ''), (code, err))
        return out.splitlines()[0]


class RecordedTest(InForceTestCase):
    def test_the_options_in_force_are_recorded_without_secrets(self):
        self.run_command()
        found = json.loads((self.target / 'options.json').read_text())
        self.assertEqual((1.5, 3, ['gpu', 'gone'], 4), (
            found['kronos']['restraint'], found['kronos']['stabilization_cycles'],
            found['kronos']['aggregates'], found['kronos_executor']['max_concurrent_migrations']))
        for path in self.target.rglob('*.*'):
            self.assertNotIn('s3cret', path.read_text(), path)

    def test_what_restraint_needs_is_recorded(self):
        self.run_command()
        found = reader.read(self.target).history
        self.assertEqual({'gpu': 4}, found.imbalanced)
        self.assertEqual({*self.known}, {*found.load_stats['gpu']['cpu'].vms})
        np.testing.assert_allclose(
            found.load_stats['gpu']['cpu'].figures[0], [80000.0, 0.2, 0.0, 0.2, 0.0], rtol=1e-6)

    def test_a_database_that_stops_answering_leaves_the_history_out(self):
        def fail(*_args):
            raise db_exc.DBConnectionError('gone away')
        with MonkeyPatch('kronos_nova.db.cycles.Cycles.imbalanced', fail):
            status, _out, err = self.run_command()
        self.assertEqual(0, status, err)
        self.assertIn('history.json is left out', err)
        self.assertIn('gone away', err)
        self.assertFalse((self.target / 'history.json').exists())

    def test_a_history_is_read_as_it_was_written(self):
        written = json.loads(json.dumps(history.as_object(HISTORY)))
        found = history.planning_history(schema.History.model_validate(written))
        [before] = HISTORY.load_stats['gpu'].values()
        [after] = found.load_stats['gpu'].values()
        self.assertEqual((100.0, ('a', 'b'), 16.0), (after.at, after.vms, after.unit))
        np.testing.assert_array_equal(before.figures[::-1], after.figures)
        same = {'load_stats': {}}
        self.assertEqual(dataclasses.replace(HISTORY, **same), dataclasses.replace(found, **same))

    def test_every_part_that_a_plan_depends_on_is_written(self):
        """Left are those that cooldowns.json has, plans that are in progress, and what no plan but
        only its report depends on."""
        parts = {field.name for field in dataclasses.fields(PlanningHistory)}
        self.assertEqual(
            parts - {'under_way', 'proposals', 'aggregates', 'instances', 'quarantines', 'endless',
                     'homes'},
            {*history.as_object(HISTORY)})

    def test_no_name_is_left_after_anonymising(self):
        self.run_command('--anonymise')
        words = json.loads((self.target / 'options.json').read_text())['kronos']
        self.assertEqual(['aggregate-001', 'unknown-1'], words['aggregates'])
        self.assertEqual((['aggregate-001; 0 0 * * *; 1440'], 1.5),
                         (words['maintenance_window'], words['restraint']))
        self.assertNotIn('policies_file', words)
        self.assertNotIn('acme-project', str(words))
        found = reader.read(self.target)
        self.assertEqual({each.uuid for each in found.snapshot.instances},
                         {*found.history.load_stats['aggregate-001']['cpu'].vms})


class ReplayTest(InForceTestCase):
    def moves(self, report):
        return [move['instance_uuid'] for row in report['aggregates'] for move in row['moves']]

    def planned_live(self):
        """The report of an evaluation of the same cloud, by the same options and database, at the
        moment of the recording: the statistics of loads depend on it."""
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        kronos_conf.read(conf, [], project='test', default_config_dirs=[],
                         default_config_files=[str(self.folder / 'nova.conf')])
        inventory, source = OpenStackInventory(connect(conf)), prometheus.from_conf(conf)
        chosen = dataclasses.replace(options.from_conf(conf), aggregates=('gpu',),
                                     max_sample_age=None)
        ports = CyclePorts.over(
            self.database, Journal(self.database, 'one'), inventory=inventory, metrics=source,
            history=inventory.past_moves)
        taken_at = reader.read(self.target).taken_at
        before = observe.planning_history(ports, chosen, CycleRules.from_conf(conf),
                                          self.database.utcnow(), None, {}, {},
                                          loader.load(str(self.folder / 'policies.yaml')))
        [report] = steps.plan_cycle(
            inventory.read(), loader.load(str(self.folder / 'policies.yaml')), chosen,
            PlannerPorts(source=source, clock=time.monotonic, now=taken_at),
            before).aggregates
        return report

    def test_the_plan_is_that_of_the_installation(self):
        self.run_command()
        live = self.planned_live()
        [row] = self.replayed()['aggregates']
        self.assertNotEqual((), live.moves)
        self.assertEqual(
            [(move.order, move.instance_uuid, move.source, move.destination)
             for move in live.moves],
            [(move['order'], move['instance_uuid'], move['source'], move['destination'])
             for move in row['moves']])

    def test_a_replay_uses_what_was_recorded(self):
        self.run_command()
        report = self.replayed()
        self.assertEqual('recorded', report['options'])
        self.assertEqual(['gpu'], [row['name'] for row in report['aggregates']])
        self.assertNotEqual([], self.moves(report))
        self.assertEqual('Options as recorded, with restraint 1.5.', self.first_line())

    def test_the_age_of_the_imbalance_counts(self):
        self.run_command()
        path = self.target / 'history.json'
        path.write_text(json.dumps(json.loads(path.read_text()) | {'imbalanced': {'gpu': 1}}))
        report = self.replayed()
        [row] = report['aggregates']
        self.assertEqual(('cooling', []), (row['outcome'], row['moves']))
        self.assertIn('imbalanced for 2 of 3 cycles that it must last', row['warnings'])

    def test_other_options_take_the_place_of_all_that_were_recorded(self):
        self.run_command()
        report = self.replayed('--defaults')
        self.assertEqual(('defaults', ['Options by default, with restraint 1.']),
                         (report['options'], report['notes']))
        (self.folder / 'other.conf').write_text('[kronos]\nrestraint = 0\n')
        report = self.replayed('--config-file', self.folder / 'other.conf')
        self.assertEqual(('config-file', ['Options of --config-file, without restraint.']),
                         (report['options'], report['notes']))
        code, _out, err = run(self.target, '--defaults', '--config-file', 'x')
        self.assertEqual(2, code)
        self.assertIn('not allowed with', err)

    def test_an_earlier_format_is_replayed_without_restraint_and_says_so(self):
        self.run_command()
        for name in ('options.json', 'history.json'):
            (self.target / name).unlink()
        meta = self.target / 'meta.json'
        meta.write_text(json.dumps(json.loads(meta.read_text()) | {'format': 2}))
        self.assertEqual('Options by default, without restraint: the snapshot has no options.json.',
                         self.first_line())
        self.assertEqual(self.first_line(), self.first_line('--defaults'))
        self.assertNotEqual([], self.moves(self.replayed()))

    def test_options_without_a_history_are_said_to_be_so(self):
        self.run_command()
        (self.target / 'history.json').unlink()
        self.assertIn('the snapshot has no history.json, so every load is expected to stay as it '
                      'is', self.first_line())

    def test_notes_of_a_plan_are_in_json(self):
        self.run_command()
        [row] = self.replayed('--budget', '1')['aggregates']
        self.assertTrue([note for note in row['notes'] if 'plan' in note], row['notes'])

    def test_options_that_there_are_not_are_named_with_their_place(self):
        self.run_command()
        path = self.target / 'options.json'
        for wrong, said in (({'kronos': {'nope': 1}}, 'options.json: kronos.nope: there is no'),
                            ({'kronos': {'restraint': -3}}, 'kronos.restraint: -3 is no value of'),
                            ({'kronos': {'restraint': None}},
                             'kronos.restraint: null is no value of this option; remove the line'),
                            ({'kronos': {'aggregates': 3}}, 'kronos.aggregates: 3 is no value of'),
                            ([], 'options.json')):
            path.write_text(json.dumps(wrong))
            code, _out, err = run(self.target)
            self.assertEqual(1, code, wrong)
            self.assertIn(said, err)

    def test_a_history_that_is_none_is_named_with_its_place(self):
        self.run_command()
        path = self.target / 'history.json'
        for wrong, said in (({'nope': 1}, 'history.json: nope'),
                            ({'imbalanced': {'gpu': -1}}, 'history.json: imbalanced.gpu'),
                            ({'load_stats': {'gpu': {'cpu': {'at': 1.0, 'instances': {
                                'a': [1, 2]}}}}}, 'load_stats.gpu.cpu.instances.a')):
            path.write_text(json.dumps(wrong))
            code, _out, err = run(self.target)
            self.assertEqual(1, code, wrong)
            self.assertIn(said, err)

    def test_a_day_says_for_how_many_snapshots_which_options_hold(self):
        self.run_command()
        day, self.target = self.folder / 'day', self.folder / 'day' / 'b'
        day.mkdir()
        self.run_command()
        (self.folder / 'snapshot').rename(day / 'a')
        self.target = day
        self.assertEqual('Options as recorded, with restraint 1.5.', self.first_line())
        (day / 'a' / 'options.json').unlink()
        self.assertIn('1 of 2: Options as recorded, with restraint 1.5.',
                      run(day)[1].splitlines()[:2])
