"""Plans for the hours to come, where these can be predicted."""

import dataclasses

import numpy as np
import testtools

from kronos_nova import exception
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle.forecast_columns import HOUR
from kronos_nova.cycle.forecast_columns import ForecastCache
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.cycle.steps import still_valid
from kronos_nova.objects import metrics as objects_of_metrics
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from tests.unit.cycle import test_hourly_history
from tests.unit.cycle import test_steps as clouds

BEGIN = 1_800_000_000 // (24 * HOUR) * 24
"""An hour at which a day begins."""


class Cloud(test_hourly_history.Hourly):
    """A source whose servers do the same every day, but for what a test says."""

    def __init__(self, loads, place):
        super().__init__(loads)
        self.loads, self.place = loads, place
        self.now = (BEGIN + 7) * HOUR + 600
        self.said = {}

    def query(self, query):
        self.asked.append(query.kind)
        if query.kind == 'forecast':
            return Vector(tuple(Sample({self.label(query): name}, value, self.now)
                                for name, value in self.said.items()))
        hour = self.now // HOUR
        names = self.loads if query.kind == 'vm_profile' else clouds_hosts(self.place)
        value = self.value if query.kind == 'vm_profile' else self.of_host
        return Vector(tuple(Sample({'uuid': name, 'host': name}, value(name, hour), self.now)
                            for name in names))

    def query_range(self, query, times):
        self.names = list(self.loads if 'vm' in query.promql else clouds_hosts(self.place))
        answer = super().query_range(query, times)
        return dataclasses.replace(answer, series=tuple(
            dataclasses.replace(each, labels={'uuid': each.labels['uuid'],
                                              'host': each.labels['uuid']})
            for each in answer.series))

    @staticmethod
    def label(query):
        return 'uuid' if 'vm' in query.promql else 'host'

    def value(self, name, hour):
        return self.loads[name](hour) if name in self.loads else self.of_host(name, hour)

    def of_host(self, host, hour):
        return sum(self.loads[name](hour) for name, on in self.place.items() if on == host)


def clouds_hosts(place):
    return sorted({*place.values(), 'h0', 'h1', 'h2'})


def level(load):
    return lambda hour: load


def office(load):
    """From nine o'clock on, for eight hours."""
    return lambda hour: load if 9 <= hour % 24 < 17 else .02


def wandering(seed):
    """Somewhere else every hour, and no two days alike."""
    steps = np.random.default_rng(seed).normal(0, .004, 400)
    walk = .05 + np.abs(np.cumsum(steps))
    return lambda hour: float(walk[(hour - BEGIN + 300) % 400])


class ForecastColumnsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.loads = {f'vm{number}': office(.2) for number in range(4)} | {
            f'quiet{number}': level(.02) for number in range(4)}
        self.place = {name: 'h0' if name.startswith('vm') else 'h1' for name in self.loads}
        self.policy = {**clouds.POLICY, 'threshold': .3, 'forecast': {}}
        self.options = EngineOptions(aggregates=('agg',), include_unassigned_hosts=False,
                                     restraint=Restraint(1.0))
        self.source = Cloud(self.loads, self.place)
        self.forecast_cache, self.under_way = ForecastCache(), ()
        self.hosts = tuple(map(clouds.host, ('h0', 'h1', 'h2')))

    def ports(self):
        return PlannerPorts(source=self.source, clock=lambda: 0.0, now=self.source.now,
                            forecast_cache=self.forecast_cache)

    def snapshot(self):
        return objects.Snapshot(
            taken_at='', hosts=self.hosts,
            instances=tuple(clouds.instance(name, host) for name, host in self.place.items()),
            aggregates=(objects.Aggregate(name='agg', uuid='agg', hosts=('h0', 'h1', 'h2')),),
            moves_under_way=self.under_way)

    def policies(self):
        return PolicySet(policies=(Policy(**self.policy),))

    def plan(self, history=None, **options):
        report, = plan_cycle(self.snapshot(), self.policies(),
                             dataclasses.replace(self.options, **options), self.ports(),
                             history).aggregates
        return report

    def forecast(self, **options):
        report = self.plan(**options)
        return report.policies[0].forecast

    def test_what_will_be_too_much_at_nine_is_moved_at_seven(self):
        report = self.plan()
        self.assertEqual('planned', report.outcome)
        found = report.policies[0]
        self.assertLess(found.imbalance_before, .1)
        self.assertEqual(('used', ''), (found.forecast.state, found.forecast.detail))
        self.assertAlmostEqual(.8, found.forecast.imbalance, delta=.02)
        self.assertAlmostEqual(0, found.forecast.error, delta=.01)
        self.assertGreater(found.forecast.present_error, .05)
        self.assertIn('cpu in 2 h 0.8', report.moves[0].reason)
        self.assertAlmostEqual(found.imbalance_before, report.combined_before)
        self.policy['forecast'] = None
        self.assertEqual('balanced', self.plan().outcome)

    def test_servers_of_another_cloud_with_the_same_names_have_no_part_in_it(self):
        """Both clouds have their series in one Prometheus, with the names of hosts."""
        real = self.source.query_range

        def of_two_clouds(query, times):
            found = real(query, times).series
            own = [dataclasses.replace(each, labels={
                'uuid': each.labels['uuid'], 'host': self.place[each.labels['uuid']]})
                for each in found]
            return objects_of_metrics.Matrix(series=(*own, *(dataclasses.replace(
                each, labels={**each.labels, 'host': 'r2-h7'},
                points=tuple((at, .9) for at, _value in each.points)) for each in own)))

        self.source.query_range = of_two_clouds
        self.test_what_will_be_too_much_at_nine_is_moved_at_seven()

    def name_hosts(self):
        """Let the series of the past name the hosts of servers."""
        real = self.source.query_range

        def query_range(query, times):
            return objects_of_metrics.Matrix(series=tuple(dataclasses.replace(each, labels={
                'uuid': each.labels['uuid'],
                'host': self.place.get(each.labels['uuid'], each.labels['uuid'])})
                for each in real(query, times).series))
        self.source.query_range = query_range

    def test_the_past_is_known_of_all_aggregates_whichever_was_evaluated_first(self):
        """An evaluation reads only the hosts of its aggregates from Nova."""
        self.name_hosts()
        other = objects.Snapshot(
            taken_at='', hosts=(clouds.host('h3'),), instances=(clouds.instance('other', 'h3'),),
            aggregates=(objects.Aggregate(name='agg', uuid='agg', hosts=('h3',)),))
        for about_hosts in (False, True):
            if about_hosts:
                self.policy |= {'vm_profile_query': None, 'vm_profile_fallback': 'host_average'}
            self.forecast_cache = ForecastCache()
            self.place['other'], self.loads['other'] = 'h3', office(.2)
            report, = plan_cycle(other, self.policies(), self.options, self.ports()).aggregates
            self.assertEqual('used', report.policies[0].forecast.state)
            del self.place['other'], self.loads['other']
            found = self.forecast()
            self.assertEqual(('used', ''), (found.state, found.detail))

    def test_servers_that_share_memory_are_forecast_as_they_count_now(self):
        """The servers of a host add up to more than it uses, because of KSM. Their loads are scaled
        down now, and have to be in the hours to come."""
        real = self.source.of_host
        self.source.of_host = lambda host, hour: .7 * real(host, hour)
        found = self.plan().policies[0]
        self.assertEqual('used', found.forecast.state)
        self.assertAlmostEqual(.7 * .8, found.forecast.imbalance, delta=.03)

    def test_the_past_of_hosts_of_several_sizes_is_in_shares_of_each(self):
        """A fifth of a host of 32 CPUs is a twentieth of one of 128."""
        self.hosts = tuple(dataclasses.replace(clouds.host(name), inventory={
            'VCPU': objects.ResourceInventory(total=vcpus, allocation_ratio=4.0)})
            for name, vcpus in (('h0', 32), ('h1', 128), ('h2', 128)))
        report = self.plan()
        found = report.policies[0].forecast
        self.assertEqual(('used', ''), (found.state, found.detail))
        self.assertAlmostEqual(.8, found.imbalance, delta=.02)
        self.assertAlmostEqual(0, found.error, delta=.01)
        last = report.moves[-1]
        self.assertEqual('h0', last.source)
        moved = len(report.moves)
        self.assertIn(f'cpu in 2 h {.8 - .2 * (moved - 1):.3f} to {.8 - .2 * moved:.3f}',
                      last.reason.replace('imbalance ', ''))

    def test_the_past_of_a_moved_server_is_in_shares_of_its_former_host(self):
        """A fifth of a host of 32 CPUs is a twentieth of one of 128."""
        self.hosts = tuple(dataclasses.replace(clouds.host(name), inventory={
            'VCPU': objects.ResourceInventory(total=vcpus, allocation_ratio=4.0)})
            for name, vcpus in (('h0', 32), ('h1', 128), ('h2', 128)))
        self.loads['moved'] = office(.04)
        self.place['moved'] = 'h2'
        self.name_hosts()
        real = self.source.query_range

        def query_range(query, times):
            moved_at = (BEGIN + 6) * HOUR
            found = []
            for each in real(query, times).series:
                if each.labels['uuid'] != 'moved':
                    found.append(each)
                    continue
                found.append(dataclasses.replace(
                    each, labels={**each.labels, 'host': 'h0'}, points=tuple(
                        (at, 4 * value) for at, value in each.points if at <= moved_at)))
                found.append(dataclasses.replace(each, points=tuple(
                    (at, value) for at, value in each.points if at > moved_at)))
            return objects_of_metrics.Matrix(series=tuple(found))
        self.source.query_range = query_range
        found = self.forecast()
        self.assertEqual('used', found.state)
        self.assertAlmostEqual(.8 - .04, found.imbalance, delta=.01)
        self.assertAlmostEqual(0, found.error, delta=.01)

    def test_a_host_that_will_be_full_is_relieved_before_also_within_the_threshold(self):
        self.policy['threshold'] = .97
        self.loads |= {name: office(.24) for name in self.loads if name.startswith('vm')}
        report = self.plan()
        self.assertFalse(report.policies[0].is_above_threshold)
        self.assertEqual({'relieve'}, {move.phase for move in report.moves})
        self.loads |= {name: office(.2) for name in self.loads if name.startswith('vm')}
        self.forecast_cache = ForecastCache()
        self.assertEqual('balanced', self.plan().outcome)

    def test_of_a_name_that_several_servers_share_nothing_is_known(self):
        self.policy |= {'vm_profile_label_type': 'display_name',
                        'vm_profile_fallback': 'flavor_vcpu_ratio'}
        self.loads['web'] = office(.2)
        self.assertEqual('too little of the last days is known', self.forecast().detail)

    def test_what_is_in_progress_will_not_load_the_host_that_it_leaves(self):
        self.under_way = (objects.MoveUnderWay(
            instance_uuid='vm0', source='h0', destination='h1'),)
        self.assertAlmostEqual(.6, self.forecast().imbalance, delta=.02)

    def test_what_is_further_away_than_the_horizon_is_not_planned_for(self):
        self.policy['forecast'] = {'horizon_hours': 2}
        self.assertEqual('balanced', self.plan().outcome)

    def test_the_worst_hour_counts_and_at_five_all_is_well(self):
        self.source.now = (BEGIN + 17) * HOUR + 60
        self.assertEqual('balanced', self.plan().outcome)
        self.assertEqual('used', self.forecast().state)

    def test_days_without_a_pattern_are_planned_as_they_are(self):
        for number, name in enumerate(self.loads):
            self.loads[name] = wandering(number)
        found = self.forecast()
        self.assertEqual('not_used', found.state)
        self.assertIn('off by', found.detail)
        self.assertIsNotNone(found.error)
        self.assertIsNone(found.imbalance)
        with_forecast = self.plan().moves
        self.policy['forecast'] = None
        self.assertEqual(self.plan().moves, with_forecast)

    def test_a_day_after_clocks_were_changed_it_still_tells(self):
        """Jobs by local time come an hour later then; Prometheus' hours know nothing of that."""
        summer = self.loads['vm0']
        self.loads |= {name: lambda hour: summer(hour - (hour >= BEGIN - 20))
                       for name in self.loads if name.startswith('vm')}
        report = self.plan()
        self.assertEqual('used', report.policies[0].forecast.state)
        self.assertIn('cpu in 3 h 0.7', report.moves[0].reason)

    def test_it_is_switched_on_again_when_the_pattern_is_back(self):
        states, regular = [], office(.2)
        wanders = {name: wandering(number) for number, name in enumerate(self.loads)}
        for name in wanders:
            if name.startswith('vm'):
                self.loads[name] = lambda hour, name=name: (
                    wanders[name] if BEGIN - 60 <= hour < BEGIN + 24 else regular)(hour)
        for hour in (-65, 20, 24 * 3 + 7):
            self.source.now = (BEGIN + hour) * HOUR + 600
            states.append(self.forecast().state)
        self.assertEqual(['used', 'not_used', 'used'], states)

    def test_a_server_without_a_past_is_taken_for_what_it_is(self):
        self.loads['new'] = lambda hour: .1 if hour >= BEGIN + 7 else float('nan')
        self.place['new'] = 'h2'
        self.assertEqual('planned', self.plan().outcome)
        self.assertAlmostEqual(.8 - .08, self.forecast().imbalance, delta=.02)

    def test_a_cloud_without_a_past_is_planned_as_it_is(self):
        for name, load in list(self.loads.items()):
            self.loads[name] = lambda hour, load=load: (
                load(hour) if hour >= BEGIN - 3 else float('nan'))
        found = self.forecast()
        self.assertEqual(('not_used', None), (found.state, found.error))
        self.assertIn('too little', found.detail)

    def test_what_cannot_be_read_is_said_and_the_present_planned(self):
        self.source.error = exception.MetricsTimeout(source='Prometheus', problem='is slow')
        found = self.forecast()
        self.assertEqual(('not_used', 'Prometheus: is slow'), (found.state, found.detail))

    def test_a_history_in_another_unit_is_said_and_the_present_planned(self):
        """It tells itself perfectly: nothing that came shows that it is wrong."""
        usual = self.source.query_range
        for factor in (100, 16, .05):
            self.source.query_range = lambda query, times, factor=factor: dataclasses.replace(
                usual(query, times), series=tuple(dataclasses.replace(each, points=tuple(
                    (at, value * factor) for at, value in each.points))
                    for each in usual(query, times).series))
            self.forecast_cache = ForecastCache()
            report = self.plan()
            found = report.policies[0].forecast
            self.assertEqual(('balanced', 'not_used'), (report.outcome, found.state))
            self.assertIn('unit', found.detail)
            self.assertTrue(any('unit' in each for each in report.warnings))

    def test_history_is_read_once_an_hour(self):
        self.plan()
        self.source.asked.clear()
        self.plan()
        self.assertEqual(['imbalance', 'vm_profile'], self.source.asked)
        self.source.now += HOUR
        self.plan()
        self.assertEqual(2, sum(isinstance(each, tuple) for each in self.source.asked))

    def test_no_move_fills_a_host_now_for_the_sake_of_later(self):
        """Two hosts are even in two hours; until then one of them is full."""
        self.loads['batch'] = lambda hour: .9 if hour % 24 < 9 else .0
        self.place['batch'] = 'h2'
        report = self.plan()
        moved = {move.destination for move in report.moves}
        self.assertNotIn('h2', moved)

    def test_without_a_profile_hosts_are_forecast_and_servers_have_their_part(self):
        self.policy |= {'vm_profile_query': None, 'vm_profile_fallback': 'host_average'}
        report = self.plan()
        self.assertEqual('planned', report.outcome)
        self.assertAlmostEqual(.8, report.policies[0].forecast.imbalance, delta=.02)
        self.assertIn('h0', {move.source for move in report.moves})

    def let_the_query_know_what_comes(self):
        """Let its answer for each hour of the past be the highest load of the six after it."""
        usual, ask = self.source.value, self.source.query_range

        def highest(name, hour):
            ahead = hour + 1    # what a query says is kept with the hour that has ended
            return max(usual(name, ahead + lead) for lead in range(6))

        def query_range(query, times):
            self.source.value = highest if query.kind == 'forecast' else usual
            try:
                return ask(query, times)
            finally:
                self.source.value = usual
        self.source.query_range = query_range

    def test_a_query_of_ones_own_is_planned_by_and_held_against_what_came(self):
        self.policy['forecast'] = {'vm_query': 'vm_expected', 'history_query': 'vm_hourly'}
        self.source.said = {name: .2 if name.startswith('vm') else .02 for name in self.loads}
        self.let_the_query_know_what_comes()
        report = self.plan()
        found = report.policies[0].forecast
        self.assertEqual('used', found.state)
        self.assertAlmostEqual(0, found.error, delta=.01)
        self.assertIn('cpu within 6 h', report.moves[0].reason)

    def test_a_query_of_ones_own_that_knows_nothing_is_not_planned_by(self):
        self.policy['forecast'] = {'vm_query': 'vm_expected'}
        self.source.said = dict.fromkeys(self.loads, .5)
        self.source.loads['vm0'] = level(.3)
        found = self.forecast()
        self.assertEqual('not_used', found.state)

    def test_hosts_may_be_forecast_by_a_query_of_ones_own(self):
        self.policy['forecast'] = {'host_query': 'predict'}
        self.source.said = {'h0': .8, 'h1': .08, 'h2': 0.0}
        self.let_the_query_know_what_comes()
        report = self.plan()
        found = report.policies[0].forecast
        self.assertEqual('used', found.state)
        self.assertAlmostEqual(0, found.error, delta=.01)
        self.assertAlmostEqual(.8, found.imbalance, delta=.02)
        self.assertIn('h0', {move.source for move in report.moves})
        self.assertIn('cpu within 6 h 0.8', report.moves[0].reason)

    def test_a_query_of_hosts_that_says_the_present_is_not_planned_by(self):
        self.policy['forecast'] = {'host_query': 'predict'}
        self.source.said = {'h0': .8, 'h1': .08, 'h2': 0.0}
        found = self.forecast()
        self.assertEqual('not_used', found.state)
        self.assertAlmostEqual(found.present_error, found.error, delta=.01)

    def test_without_restraint_load_is_spread_as_it_is(self):
        found = self.forecast(restraint=Restraint())
        self.assertEqual('not_used', found.state)
        self.assertIn('restraint is 0', found.detail)

    def test_relief_comes_before_it_hurts(self):
        self.policy |= {'mode': 'relieve', 'high': .7, 'target': .6}
        report = self.plan()
        self.assertEqual({'relieve'}, {move.phase for move in report.moves})
        self.policy['forecast'] = None
        self.assertEqual('balanced', self.plan().outcome)

    def test_a_quantile_plans_for_more(self):
        rng = np.random.default_rng(1)
        noise = rng.normal(0, .02, 400)
        regular = office(.2)
        self.loads['vm0'] = lambda hour: regular(hour) + abs(float(noise[hour - BEGIN + 300]))
        likely = self.forecast().imbalance
        self.policy['forecast'] = {'quantile': .95}
        self.assertGreater(self.forecast().imbalance, likely)

    def test_an_approved_plan_for_later_is_still_good(self):
        report = self.plan()
        found = still_valid(self.snapshot(), self.policies(), self.options, self.ports(),
                            PlanningHistory(), report)
        self.assertEqual(({}, ''), (found.wrong, found.waits_for))

    def test_a_report_is_read_again_as_it_was_written(self):
        report = self.plan()
        self.assertEqual(report.policies, AggregateReport.from_json(report.to_json()).policies)
