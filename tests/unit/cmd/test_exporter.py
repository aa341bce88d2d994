"""The answers of ``kronos-exporter`` to a Prometheus that scrapes it."""

import dataclasses
import datetime
import json
import logging
import math
import shutil
import socket
import subprocess
import sys
import time
from unittest import mock

import fixtures
import requests
import sqlalchemy
from oslo_config import cfg
from prometheus_client import parser

from kronos_nova import clock
from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.cmd import exporter
from kronos_nova.cmd import prometheus_collector
from kronos_nova.db import claim_models
from kronos_nova.db import counters
from kronos_nova.db import cycles
from kronos_nova.db import drains
from kronos_nova.db import metric_queries
from kronos_nova.db import scores
from kronos_nova.drain.states import BLOCKED
from kronos_nova.drain.states import DRAINING
from kronos_nova.drain.states import OVERDUE
from kronos_nova.drain.states import REQUESTED
from kronos_nova.drain.states import Drain
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.cmd import test_automation

AT_WORK = (moves.MIGRATING, moves.VERIFYING)


class ExporterTestCase(test_automation.OperatorTestCase):
    def setUp(self):
        super().setUp()
        self.configure('aggregates = gpu, db')
        self.cycles = cycles.Cycles(self.database)
        self.conf = cfg.ConfigOpts()
        kronos_conf.register_opts(self.conf)
        self.conf([f'--config-file={self.config}'])
        self.conf.set_override('port', 0, 'kronos_exporter')

    def start(self):
        server, thread = exporter.serve(self.conf)
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return 'http://{}:{}/metrics'.format(*server.server_address[:2])

    def scrape(self):
        answer = requests.get(self.start(), timeout=30)
        self.assertEqual(200, answer.status_code)
        return answer.text

    def series(self):
        """{(name, labels as sorted pairs): value} of a scrape."""
        return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                for family in parser.text_string_to_metric_families(self.scrape())
                for sample in family.samples}

    def evaluate(self, name='gpu', outcome=plans.BALANCED, **report):
        now = clock.utcnow()
        self.cycles.begin(name, 'one', now - datetime.timedelta(seconds=4), 1)
        found = plans.AggregateReport(name=name, outcome=outcome, mode='spread', planner='spread',
                                      **report)
        self.cycles.end(name, now, outcome, False, found.to_json())

    def policy(self, imbalance):
        return plans.PolicyReport(
            name='cpu', weight=1.0, threshold=0.1, imbalance_before=imbalance,
            imbalance_after=imbalance, state='no_data' if imbalance is None else 'ok')

    def carry_out(self, count, seconds):
        self.run_plan(*((f'vm{number}', 'a', 'b') for number in range(count)))
        begun = clock.utcnow()
        ended = begun + datetime.timedelta(seconds=seconds)
        for move in self.journal.dispatch(test_automation.WIDE, clock.utcnow):
            taken = self.journal.claim(move.uuid, begun)
            for state in AT_WORK:
                taken = self.journal.advance(taken, state, begun, requested_at=begun)
            self.journal.advance(taken, moves.COMPLETED, ended, finished_at=ended)

    def everything(self):
        """A bit of all that there is a metric for."""
        self.evaluate(policies=(self.policy(0.05),), not_moved=(
            plans.Skip(reason='locked', instances=('vm1',)),))
        self.carry_out(1, seconds=5)


class ExporterTest(ExporterTestCase):
    def test_balance_is_reported_by_aggregate_and_policy(self):
        self.evaluate(policies=(self.policy(0.15),), host_scores=tuple(
            plans.HostScore(host, 'cpu', value, value)
            for host, value in (('a', 0.95), ('b', 0.5), ('c', 0.2), ('d', 0.2), ('e', 0.2),
                                ('f', 0.2), ('g', 0.2), ('h', 0.2))), unbelieved=tuple(
            plans.UnbelievedHost(host='c', policy=policy, what='score', reason='silent')
            for policy in ('cpu', 'memory')), buffers=(
            plans.BufferRoom(name='spare', flavor='m1.huge', wanted=2, found=1),))
        scores.Scores(self.database).replace('spread', {'cpu': 1.0}, {'a': {'cpu': 0.95}},
                                             clock.utcnow())
        found = self.series()
        gpu = ('aggregate', 'gpu')
        self.assertEqual(0.15, found['kronos_imbalance_ratio', (gpu, ('policy', 'cpu'))])
        self.assertEqual(1, found['kronos_hot_hosts', (gpu,)])
        self.assertEqual(8, found['kronos_hosts', (gpu,)])
        self.assertEqual(1, found['kronos_unbelieved_hosts', (gpu,)])
        self.assertEqual((2, 1), tuple(found['kronos_buffer_servers', (
            gpu, ('buffer', 'spare'), ('state', state))] for state in ('wanted', 'found')))
        self.assertEqual(0.95, found['kronos_host_score_ratio', (('host', 'a'),
                                                                 ('policy', 'cpu'))])
        # Half of 40 for an imbalance of one and a half times its threshold, half of 25 for an
        # eighth of hot hosts.
        self.assertAlmostEqual(67.5, found['kronos_health_score', (gpu,)])
        self.assertNotIn(('kronos_health_score', (('aggregate', 'db'),)), found)
        self.assertEqual(1, found['kronos_last_cycle_outcome', (gpu, ('outcome', 'balanced'))])
        self.assertAlmostEqual(4, found['kronos_last_cycle_duration_seconds', (gpu,)], delta=0.1)
        self.assertEqual(1, found['kronos_control_database_up', ()])

    def test_an_evaluation_that_is_wanted_soon_leaves_the_duration_of_the_last_unchanged(self):
        self.evaluate()
        for _time in range(2):
            self.cycles.expedite('gpu')
        found = self.series()
        self.assertAlmostEqual(4, found['kronos_last_cycle_duration_seconds', (
            ('aggregate', 'gpu'),)], delta=0.1)
        shown = json.loads(self.manage('status', '-f', 'json', expected=4))
        [gpu] = [each for each in shown['aggregates'] if each['name'] == 'gpu']
        self.assertEqual(gpu['evaluated_at'], gpu['next_at'])

    def test_an_aggregate_that_is_planned_no_more_has_no_series(self):
        self.evaluate(policies=(self.policy(0.15),))
        self.evaluate(name='former', policies=(self.policy(0.15),), losses=(
            plans.LossReport(level='', fits=5, judged_at=7.0),), slots=(
            plans.SlotReport(flavor='small', now=5, after_loss=0),))
        self.assertEqual({'gpu', 'db'}, {dict(labels)['aggregate'] for _name, labels in
                                         self.series() if 'aggregate' in dict(labels)})

    def test_evaluations_that_failed_do_not_count_once_the_level_is_off(self):
        self.cycles.begin('gpu', 'one', clock.utcnow(), 1)
        self.cycles.fail(['gpu'], clock.utcnow(), 300)
        failed = 'kronos_failed_cycles_in_a_row', (('aggregate', 'gpu'),)
        self.assertEqual(1, self.series()[failed])
        self.manage('automation', 'set', 'off', '--aggregate', 'gpu')
        self.assertNotIn(failed, self.series())

    def test_drains_are_evaluated_at_the_level_off_and_so_their_failures_count(self):
        self.manage('automation', 'set', 'off', '--aggregate', 'gpu')
        self.cycles.begin('gpu', 'one', clock.utcnow(), 1)
        self.cycles.fail(['gpu'], clock.utcnow(), 300)
        drains.Drains(self.database).request([Drain(
            uuid='d', host='a', aggregate='gpu', state=REQUESTED, requested_by='jane',
            requested_at=clock.utcnow())])
        self.assertEqual(1, self.series()['kronos_failed_cycles_in_a_row',
                                          (('aggregate', 'gpu'),)])

    def test_a_host_that_is_measured_no_more_has_no_score(self):
        known = scores.Scores(self.database)
        for host, days in (('former', 3), ('a', 0)):
            known.replace('spread', {'cpu': 1.0}, {host: {'cpu': 0.95}},
                          clock.utcnow() - datetime.timedelta(days=days))
        for expected in ({'former', 'a'}, {'a'}):
            self.assertEqual(expected, {dict(labels)['host'] for name, labels in self.series()
                                        if name == 'kronos_host_score_ratio'})
            self.evaluate(policies=(self.policy(0.15),))
            self.evaluate(name='db', policies=(self.policy(0.15),))

    def test_losses_are_counted_by_verdict(self):
        self.evaluate(losses=(
            plans.LossReport(level='', fits=5, does_not_fit=1, not_judged=2, in_order=3,
                             not_in_order=1, judged_at=7.0),
            plans.LossReport(level='rack', fits=1, not_found=1, judged_at=7.0)))
        self.evaluate(name='db')
        found = {(name.removeprefix('kronos_failover_'), *(value for _label, value in labels)): n
                 for (name, labels), n in self.series().items() if 'failover' in name}
        self.assertEqual({
            ('hosts', 'gpu', 'fits'): 5, ('hosts', 'gpu', 'does_not_fit'): 1,
            ('hosts', 'gpu', 'not_found'): 0, ('hosts', 'gpu', 'not_judged'): 2,
            ('hosts_in_order', 'gpu', 'fits'): 3, ('hosts_in_order', 'gpu', 'does_not_fit'): 1,
            ('hosts_in_order', 'gpu', 'not_judged'): 1,
            ('domains', 'gpu', 'rack', 'fits'): 1, ('domains', 'gpu', 'rack', 'does_not_fit'): 0,
            ('domains', 'gpu', 'rack', 'not_found'): 1, ('domains', 'gpu', 'rack', 'not_judged'): 0,
            ('judged_timestamp_seconds', 'gpu'): 7}, found)

    def test_slots_are_counted_where_they_are_known(self):
        self.evaluate(slots=(plans.SlotReport(flavor='small', now=5, after_loss=0),
                             plans.SlotReport(flavor='huge', now=0)))
        found = {tuple(value for _label, value in labels): n
                 for (name, labels), n in self.series().items() if name == 'kronos_slots'}
        self.assertEqual({('gpu', 'small', 'now'): 5, ('gpu', 'small', 'after_loss'): 0,
                          ('gpu', 'huge', 'now'): 0}, found)

    def test_how_good_forecasts_were_is_reported(self):
        found = {}
        for name, forecast in (('gpu', plans.ForecastReport(
                state='used', error=.03, present_error=.09, imbalance=.4)),
                ('db', plans.ForecastReport(state='not_used', detail='too little is known'))):
            self.evaluate(name=name, policies=(
                dataclasses.replace(self.policy(.05), forecast=forecast),))
        found = {(name, labels): value for (name, labels), value in self.series().items()
                 if 'forecast' in name or 'ahead' in name}
        gpu, db = ((('aggregate', name), ('policy', 'cpu')) for name in ('gpu', 'db'))
        self.assertEqual({
            ('kronos_forecast_used', gpu): 1, ('kronos_forecast_used', db): 0,
            ('kronos_forecast_error_ratio', gpu): .03,
            ('kronos_forecast_present_error_ratio', gpu): .09,
            ('kronos_imbalance_ahead_ratio', gpu): .4}, found)

    def test_an_aggregate_without_data_keeps_the_time_of_its_last_good_evaluation(self):
        self.evaluate(policies=(self.policy(0.05),))
        good = self.series()['kronos_last_good_cycle_timestamp_seconds', (('aggregate', 'gpu'),)]
        self.evaluate(outcome=plans.NO_DATA, policies=(self.policy(None),))
        found = self.series()
        self.assertEqual(good, found['kronos_last_good_cycle_timestamp_seconds',
                                     (('aggregate', 'gpu'),)])
        self.assertLess(good, found['kronos_last_cycle_timestamp_seconds',
                                    (('aggregate', 'gpu'),)])
        self.assertEqual(1, found['kronos_policy_without_data', (('aggregate', 'gpu'),
                                                                 ('policy', 'cpu'))])
        self.assertEqual(90.0, found['kronos_health_score', (('aggregate', 'gpu'),)])

    def test_moves_are_counted_when_they_end_and_stay_counted(self):
        self.carry_out(2, seconds=45)
        self.manage('db', 'purge', '--days', '1')
        found = self.series()
        self.assertEqual(2, found['kronos_moves_total', (
            ('aggregate', 'gpu'), ('error', ''), ('kind', 'live'), ('phase', 'spread'),
            ('state', 'completed'))])
        self.assertEqual(2 * 2 ** 30, found['kronos_moved_memory_bytes_total', ()])
        self.assertEqual(0, found['kronos_move_duration_seconds_bucket', (('le', '30.0'),)])
        self.assertEqual(2, found['kronos_move_duration_seconds_bucket', (('le', '120.0'),)])
        self.assertEqual(2, found['kronos_move_duration_seconds_count', ()])
        self.assertEqual(90.0, found['kronos_move_duration_seconds_sum', ()])

    def test_a_drain_that_is_stuck_shows_and_costs_health(self):
        self.evaluate(policies=(self.policy(0.05),))
        drains.Drains(self.database).request([Drain(
            uuid='1', host='a', aggregate='gpu', state=BLOCKED, requested_by='jane', left=3,
            requested_at=clock.utcnow(), blocked={'vm1': 'capacity'})])
        found = self.series()
        self.assertEqual(3, found['kronos_drain_servers_left', (('host', 'a'),
                                                                ('state', 'blocked'))])
        self.assertEqual(1, found['kronos_drain_blocked_servers', (('host', 'a'),)])
        self.assertEqual(85.0, found['kronos_health_score', (('aggregate', 'gpu'),)])
        self.assertNotIn(('kronos_drain_remaining_seconds', (('host', 'a'),)), found)

    def test_a_host_whose_servers_are_not_counted_yet_is_not_shown_as_empty(self):
        self.evaluate(policies=(self.policy(0.05),))
        drains.Drains(self.database).request([Drain(
            uuid='1', host='a', aggregate='gpu', state=REQUESTED, requested_by='jane',
            requested_at=clock.utcnow())])
        self.assertEqual(set(), {name for name, _labels in self.series()
                                 if name.startswith('kronos_drain')})

    def test_a_drain_that_ended_before_its_host_was_read_is_shown_without_a_number(self):
        self.evaluate(policies=(self.policy(0.05),))
        drains.Drains(self.database).request([Drain(
            uuid='1', host='a', aggregate='gpu', state=OVERDUE, requested_by='jane',
            requested_at=clock.utcnow())])
        found = self.series()
        self.assertTrue(math.isnan(found['kronos_drain_servers_left', (
            ('host', 'a'), ('state', 'overdue'))]))
        self.assertNotIn(('kronos_drain_blocked_servers', (('host', 'a'),)), found)

    def test_how_long_a_drain_takes_is_estimated_from_past_moves(self):
        self.carry_out(1, seconds=40)
        self.journal.settle(self.journal.moves()[0].uuid, clock.utcnow())
        self.journal.close_plans(clock.utcnow())
        self.run_plan(('vm7', 'b', 'a'), ('vm8', 'a', 'b'), ('vm9', 'a', 'c'))
        drains.Drains(self.database).request([
            Drain(uuid=host, host=host, aggregate='gpu', state=DRAINING, requested_by='jane',
                  requested_at=clock.utcnow()) for host in ('a', 'c')])
        found = self.series()
        reported = found['kronos_drain_remaining_seconds', (('host', 'a'),)]
        # One after the other, and a little while between.
        self.assertAlmostEqual(80, reported, delta=10)
        self.assertNotIn(('kronos_drain_remaining_seconds', (('host', 'c'),)), found)

    def test_broken_server_groups_show_and_cost_health(self):
        self.evaluate(policies=(self.policy(0.05),), broken_groups=2)
        found = self.series()
        self.assertEqual(2, found['kronos_broken_server_groups', (('aggregate', 'gpu'),)])
        self.assertEqual(90.0, found['kronos_health_score', (('aggregate', 'gpu'),)])

    def test_how_good_the_answers_were_is_reported(self):
        self.evaluate(policies=tuple(
            dataclasses.replace(self.policy(0.05), name=name, coverage=coverage, sample_age=age)
            for name, coverage, age in (('cpu', 0.75, 12.5), ('memory', 1.0, 30.0),
                                        ('steal', 0.9, None))))
        found, labels = self.series(), (('aggregate', 'gpu'),)
        self.assertEqual(0.75, found['kronos_policy_coverage_ratio', labels])
        self.assertEqual(30.0, found['kronos_policy_sample_age_seconds', labels])

    def test_the_last_audit_takes_the_place_of_the_one_before(self):
        audits = counters.Counters(self.database)
        audits.note_audit({'leaked': 2, 'doubled': 1}, 1000.0)
        audits.note_audit({'leaked': 0, 'doubled': 1}, 2000.0)
        found = self.series()
        self.assertEqual([0, 1], [found['kronos_audit_findings', (('kind', kind),)]
                                  for kind in ('leaked', 'doubled')])
        self.assertEqual(2000, found['kronos_last_audit_timestamp_seconds', ()])

    def test_what_is_kept_in_the_database_is_counted_and_so_is_its_size(self):
        with self.database.writer() as session:
            session.add(claim_models.CentralClaim(
                host='a', node='a', instance_uuid='vm1', vcpus=1, memory_mb=1, disk_gb=1,
                resize_target=0, created_at='2026-01-01T00:00:00+00:00'))
        found = self.series()
        self.assertEqual(1, found['kronos_claims', (('state', 'claimed'),)])
        # Before anything was dropped: what begins at 1 has no increase.
        self.assertEqual(0, found['kronos_notifications_dropped_total', ()])
        size = (self.directory / 'kronos.sqlite').stat().st_size
        self.assertAlmostEqual(size, found['kronos_control_database_size_bytes', ()],
                               delta=size / 2)

    def test_the_size_is_asked_of_a_database_whose_address_says_mariadb(self):
        asked = []

        def answer(statement):
            asked.append(str(statement))
            return 4096

        dialect = sqlalchemy.make_url('mariadb+pymysql://db/kronos').get_dialect()()
        session = mock.Mock(scalar=answer, execute=mock.MagicMock())
        session.execute.return_value.all.return_value = []
        session.get_bind.return_value.dialect = dialect
        database = mock.MagicMock()
        database.reader.return_value.__enter__.return_value = session
        self.assertEqual(4096, metric_queries.count_rows(database, clock.utcnow()).size)
        self.assertIn('information_schema', asked[-1])

    def test_what_is_as_it_should_be_has_no_series_of_its_own(self):
        said = ('kronos_paused', 'kronos_policy_without_data', 'kronos_failed_cycles_in_a_row',
                'kronos_broken_server_groups')
        counted = ('kronos_problems', 'kronos_hot_hosts', 'kronos_quarantined_servers',
                   'kronos_cooling_servers', 'kronos_resting_servers',
                   'kronos_notifications_waiting')
        for name in ('gpu', 'db'):
            self.evaluate(name, policies=(self.policy(0.05),))
        self.journal.heartbeat(clock.utcnow())
        self.assertEqual([], [key for key in self.series() if key[0] in (*said, *counted)])
        self.manage('pause', '--aggregate', 'gpu')
        self.evaluate('gpu', policies=(self.policy(None),), broken_groups=1)
        self.cycles.begin('gpu', 'one', clock.utcnow(), 1)
        self.cycles.fail(['gpu'], clock.utcnow(), 60.0)
        found = self.series()
        for name in said:
            self.assertEqual([('aggregate', 'gpu')], [
                labels[0] for each, labels in found if each == name], name)

    def test_how_far_an_open_plan_is_is_reported(self):
        self.evaluate('gpu', outcome=plans.PLANNED)
        self.carry_out(3, seconds=5)
        found = self.series()
        self.assertEqual(3, found['kronos_open_plan_moves', (
            ('aggregate', 'gpu'), ('purpose', 'balance'), ('state', 'executing'))])
        self.assertEqual(3, found['kronos_open_plan_ended_moves', (('aggregate', 'gpu'),)])

    def assertFew(self, aggregates, hosts):  # noqa: N802 - as testtools spells it
        """Fewer series than 40 and six for each host."""
        found = self.busy([f'rack{number}' for number in range(aggregates)], hosts)
        self.assertLess(18 * aggregates + 2 * hosts, found)
        self.assertLess(found, 40 + 6 * hosts)

    def test_of_the_fast_demo_there_are_few_series(self):
        self.assertFew(1, 6)

    def test_of_the_demo_there_are_few_series(self):
        self.assertFew(2, 8)

    def test_of_many_small_aggregates_there_are_few_series(self):
        self.assertFew(20, 120)

    def test_of_a_large_cloud_there_are_few_series(self):
        self.assertFew(10, 1000)

    def busy(self, names, hosts):
        """Return how many series there are while moves of all aggregates are in progress, one
        failed, and servers stay for as many reasons as in a demo."""
        self.configure(f'aggregates = {", ".join(names)}')
        self.conf.reload_config_files()
        policies = tuple(dataclasses.replace(self.policy(0.3), name=name, coverage=1.0,
                                             sample_age=1.0) for name in ('cpu', 'memory'))
        stayed = tuple(plans.Skip(reason=reason, instances=('vm',)) for reason in (
            'cooldown', 'threshold', 'no_gain', 'budget'))
        for name in names:
            for outcome in (plans.NO_DATA, plans.BALANCED, plans.COOLING, plans.PLANNED):
                self.evaluate(name, outcome, policies=policies, not_moved=stayed)
            self.run_plan(*((f'{name}-{number}', 'a', 'b') for number in range(4)), name=name)
        self.move_on(len(names))
        scores.Scores(self.database).replace('spread', {'cpu': 0.5, 'memory': 0.5}, {
            f'host{number}': {'cpu': 0.5, 'memory': 0.5} for number in range(hosts)},
            clock.utcnow())
        return len(self.series())

    def move_on(self, aggregates):
        """Let half of all moves end, one of them badly, and begin with one more of each plan."""
        now = clock.utcnow()
        begun = self.journal.dispatch(moves.Caps(
            total=3 * aggregates, per_source=3 * aggregates, per_destination=3 * aggregates),
            clock.utcnow)
        for number, move in enumerate(begun):
            taken = self.journal.claim(move.uuid, now)
            if number < aggregates:
                continue
            for state in AT_WORK:
                taken = self.journal.advance(taken, state, now, requested_at=now)
            self.journal.advance(taken, *(
                (moves.FAILED, now) if number == aggregates else (moves.COMPLETED, now)),
                finished_at=now, error_type='MigrationTimeout' if number == aggregates else None)

    def test_promtool_finds_nothing_to_say(self):
        if shutil.which('promtool') is None:
            self.skipTest('promtool is not installed')
        self.everything()
        checked = subprocess.run(['promtool', 'check', 'metrics'], input=self.scrape(),
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual((0, '', ''), (checked.returncode, checked.stdout, checked.stderr))

    def test_no_series_is_of_a_server(self):
        self.evaluate(outcome=plans.PLANNED, not_moved=(
            plans.Skip(reason='locked', instances=('vm-locked',)),))
        self.carry_out(1, seconds=5)
        self.assertNotIn('vm', json.dumps([key for key in self.series()]))

    def test_without_its_database_it_answers_and_says_so(self):
        url = self.start()
        self.manage('db', 'version', 'control')
        with self.database.writer() as session:
            session.connection().exec_driver_sql('DROP TABLE cycles')
        answer = requests.get(url, timeout=30)
        self.assertEqual(200, answer.status_code)
        self.assertIn('kronos_control_database_up 0.0', answer.text)

    def test_an_outage_of_its_database_is_logged_when_it_begins_and_when_it_ends(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        found = prometheus_collector.Collector(self.conf, self.database, self.database.utcnow)
        with self.database.writer() as session:
            session.connection().exec_driver_sql('ALTER TABLE cycles RENAME TO away')
        for _ in range(3):
            self.assertEqual(1, len(list(found.collect())))
        with self.database.writer() as session:
            session.connection().exec_driver_sql('ALTER TABLE away RENAME TO cycles')
        for _ in range(2):
            self.assertLess(1, len(list(found.collect())))
        begin, end = log.output.splitlines()
        self.assertIn('does not answer', begin)
        self.assertNotIn('SELECT', log.output)
        self.assertIn('answers again', end)

    def test_ended_by_a_signal_it_exits_with_0(self):
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        self.configure('aggregates = gpu', '[kronos_exporter]', f'port = {port}')
        process = subprocess.Popen([
            sys.executable, '-c', 'import sys; from kronos_nova.cmd import exporter; '
            'sys.exit(exporter.main())', f'--config-file={self.config}'],
            stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for _second in range(60):
            try:
                requests.get(f'http://127.0.0.1:{port}/metrics', timeout=30)
                break
            except requests.ConnectionError:
                time.sleep(1)
        process.terminate()
        self.assertEqual(0, process.wait(30))

    def test_a_port_that_is_taken_is_named_with_its_remedy(self):
        port = int(self.start().rpartition(':')[2].partition('/')[0])
        self.conf.set_override('port', port, 'kronos_exporter')
        error = self.assertRaises(exception.ConfigurationError, exporter.serve, self.conf)
        self.assertIn('[kronos_exporter] port', str(error))
        self.assertIn('port to a free port', str(error))

    def test_an_invalid_value_is_named_at_the_start_instead_of_failing_every_scrape(self):
        self.configure('aggregates = gpu, db', 'evaluation_interval = often', '[kronos_executor]',
                       'max_concurrent_migrations = many')
        self.conf([f'--config-file={self.config}'])
        error = self.assertRaises(exception.ConfigurationError, exporter.serve, self.conf)
        self.assertIn("[kronos] evaluation_interval: 'often' is no whole number", str(error))
        self.assertIn("[kronos_executor] max_concurrent_migrations: 'many' is", str(error))

    def test_an_invalid_value_that_the_exporter_does_not_use_changes_nothing(self):
        self.configure('aggregates = gpu, db', '[kronos_claims]', 'claim_expiry_time = often')
        self.conf([f'--config-file={self.config}'])
        self.assertIn('kronos_control_database_up 1.0', self.scrape())
