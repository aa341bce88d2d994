"""Cycles with metrics that contradict Nova or each other."""

import dataclasses

from kronos_nova.cooldown import PastMove
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cycle import steps
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.load.belief import BeliefRules
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from tests.unit.cycle import test_steps as clouds

MIB_PER_GIB = 1024


def sized(name, vcpus, memory_gib=64):
    return dataclasses.replace(clouds.host(name), inventory={
        'VCPU': objects.ResourceInventory(total=vcpus, allocation_ratio=4.0),
        'MEMORY_MB': objects.ResourceInventory(total=memory_gib * MIB_PER_GIB,
                                               allocation_ratio=4.0)})


class CloudTest(clouds.PipelineTest):
    """One aggregate; the tests that come with it are not run again."""

    def report(self, imbalance, profile, **options):
        self.source.answers |= {'imbalance': imbalance, 'vm_profile': profile}
        return self.plan(**options)


for _name in dir(clouds.PipelineTest):
    if _name.startswith('test_'):
        setattr(CloudTest, _name, None)


class SizesTest(CloudTest):
    """A host of 128 CPUs and one of 32."""

    def setUp(self):
        super().setUp()
        self.hosts = {'h0': sized('h0', 128), 'h1': sized('h1', 32)}

    def test_a_share_of_a_big_host_is_more_of_a_small_one(self):
        report = self.report({'h0': 0.6, 'h1': 0.0}, dict.fromkeys('abcd', 0.1))
        move, = report.moves
        scores = {score.host: score.after for score in report.host_scores}
        self.assertAlmostEqual(0.5, scores['h0'])
        self.assertAlmostEqual(0.4, scores['h1'])
        self.assertIn('load of h1 cpu 0.000 to 0.400', move.reason)

    def test_a_share_of_a_small_host_is_less_of_a_big_one(self):
        for uuid in 'abcd':
            self.change(uuid, host='h1')
        report = self.report({'h0': 0.0, 'h1': 0.6}, dict.fromkeys('abcd', 0.12))
        scores = {score.host: score.after for score in report.host_scores}
        moved = len(report.moves)
        self.assertLess(1, moved)
        self.assertAlmostEqual(0.6 - 0.12 * moved, scores['h1'])
        self.assertAlmostEqual(0.03 * moved, scores['h0'])

    def moved_lately(self, share, **hosts):
        """Plan while the series of server d, which has moved from h0 to h1, still names h0."""
        class Source(clouds.Recorded):
            def query(self, query):
                found = super().query(query)
                if query.kind != 'vm_profile':
                    return found
                return Vector(tuple(
                    Sample({**sample.labels, 'host': 'h0'}, sample.value, clouds.NOW)
                    for sample in found.samples))

        self.change('d', host='h1')
        self.source = Source(imbalance=hosts, vm_profile=dict.fromkeys('abc', 0.05) | {'d': share})
        return self.plan()

    def test_a_series_of_the_former_host_is_a_share_of_that_host(self):
        """It uses 12.8 CPUs, which are 0.4 of h1 and 0.1 of h0."""
        self.hosts['h2'] = sized('h2', 32)
        report = self.moved_lately(0.1, h0=0.2, h1=0.8, h2=0.0)
        self.assertIn('load of h1 cpu 0.800 to 0.400; load of h2 cpu 0.000 to 0.400',
                      report.moves[0].reason)

    def test_a_server_uses_no_more_than_the_smaller_host_to_which_it_has_moved(self):
        report = self.moved_lately(0.5, h0=0.2, h1=1.0)
        self.assertEqual((), report.warnings)
        self.assertIn('load of h1 cpu 1.000 to 0.000; load of h0 cpu 0.200 to 0.450',
                      report.moves[0].reason)

    def test_a_host_without_a_size_is_left_out_and_named(self):
        self.hosts['h2'] = dataclasses.replace(sized('h2', 64), inventory={
            'MEMORY_MB': objects.ResourceInventory(total=64 * MIB_PER_GIB)})
        self.change('d', host='h2')
        report = self.report({'h0': 0.6, 'h1': 0.0, 'h2': 0.9}, dict.fromkeys('abcd', 0.1))
        self.assertEqual({('h0', 'h1')}, {(move.source, move.destination)
                                          for move in report.moves})
        self.assertEqual(['cpu: the size of h2 is not known, because placement has no inventory of '
                          'VCPU there: left out of the plan'], list(report.warnings))

    def test_a_measure_that_names_no_resource_has_no_data(self):
        self.policy['name'] = 'load'
        report = self.report({'h0': 0.6, 'h1': 0.0}, dict.fromkeys('abcd', 0.1))
        self.assertEqual(('no_data', ()), (report.outcome, report.moves))
        self.assertIn('vm_profile_unit: score', report.policies[0].detail)


class QueriesTest(CloudTest):
    def test_belief_and_sizes_cost_one_query_a_policy_at_most(self):
        asked, answer = [], self.source.query

        def query(query):
            asked.append((query.policy, query.kind))
            return answer(query)

        self.source.query = query
        even = {'h0': 0.4, 'h1': 0.0, 'h2': 0.0}, dict.fromkeys('abcd', 0.1)
        self.report(*even)
        self.assertEqual([('cpu', 'imbalance'), ('cpu', 'vm_profile')], sorted(asked))
        asked.clear()
        self.policy['host_capacity_query'] = 'cores'
        self.source.answers['host_capacity'] = dict.fromkeys(('h0', 'h1', 'h2'), 1.0)
        self.report(*even)
        self.assertEqual([('cpu', 'host_capacity'), ('cpu', 'imbalance'), ('cpu', 'vm_profile')],
                         sorted(asked))


class GuardTest(CloudTest):
    """Guests that add up to more memory than their hosts use, beside a policy that is fine."""

    def setUp(self):
        super().setUp()
        self.hosts = {name: sized(name, 64) for name in ('h0', 'h1', 'h2')}
        for uuid in 'abcd':
            self.change(uuid, memory_mb=16 * MIB_PER_GIB)
        self.change('b', host='h2')

    def plan_by_cpu(self, memory_of_hosts, **options):
        """Plan by the policy cpu, beside a policy memory that has no data."""
        memory = {**self.policy, 'name': 'memory', 'weight': 0.5}
        self.policy |= {'weight': 0.5}
        answers = {('cpu', 'imbalance'): {'h0': .8, 'h1': .1, 'h2': .1},
                   ('cpu', 'vm_profile'): dict.fromkeys('abcd', .1) | {'a': .5},
                   ('memory', 'imbalance'): memory_of_hosts,
                   ('memory', 'vm_profile'): dict.fromkeys('abcd', .9)}

        class Source:
            def query(self, query):
                label = 'uuid' if query.kind == 'vm_profile' else 'host'
                return Vector(tuple(Sample({label: name}, value, clouds.NOW) for name, value
                                    in answers[query.policy, query.kind].items()))

        ports = clouds.PlannerPorts(source=Source(), clock=self.clock, now=clouds.NOW)
        report, = clouds.plan_cycle(
            self.snapshot(), clouds.PolicySet(policies=(
                clouds.Policy(**self.policy), clouds.Policy(**memory))),
            dataclasses.replace(self.options, **options), ports).aggregates
        states = {policy.name: policy.state for policy in report.policies}
        self.assertEqual({'cpu': 'ok', 'memory': 'no_data'}, states)
        return report

    def test_a_full_host_is_still_protected_by_its_score(self):
        report = self.plan_by_cpu({'h0': .3, 'h1': .9, 'h2': .2})
        self.assertIn('resident memory', report.policies[1].detail)
        self.assertEqual({'h0', 'h2'}, {move.destination for move in report.moves})

    def test_a_host_is_not_left_out_by_a_policy_that_is_left_out(self):
        report = self.plan_by_cpu({'h0': .3, 'h2': .2}, min_coverage=0.5)
        self.assertAlmostEqual(0.7, report.policies[0].imbalance_before)
        self.assertIn('h1', {move.destination for move in report.moves})


class UnitTest(CloudTest):
    """Profiles in another unit than the scores."""

    @staticmethod
    def shares(factor):
        return {uuid: 0.2 * factor for uuid in 'abcd'}

    def test_servers_that_are_next_to_nothing_of_their_hosts_have_no_data(self):
        for factor in (0.01, 0.001, 2.0**-20):
            report = self.report({'h0': 0.8, 'h1': 0.0, 'h2': 0.0}, self.shares(factor))
            self.assertEqual(('no_data', ()), (report.outcome, report.moves))
            self.assertIn('vm_profile_query and imbalance_query are in different units',
                          report.policies[0].detail)

    def test_memory_in_huge_pages_is_named(self):
        self.policy['name'] = 'memory'
        report = self.report({'h0': 0.9, 'h1': 0.9, 'h2': 0.9}, self.shares(0.01))
        self.assertIn('add free huge pages to what is available', report.policies[0].detail)

    def test_the_query_for_sizes_is_named(self):
        self.policy['host_capacity_query'] = 'cores'
        self.source.answers['host_capacity'] = dict.fromkeys(('h0', 'h1', 'h2'), 16000.0)
        report = self.report({'h0': 0.8, 'h1': 0.0, 'h2': 0.0}, self.shares(16))
        self.assertIn('vm_profile_query and host_capacity_query', report.policies[0].detail)

    def test_packing_does_not_fill_hosts_by_such_a_profile(self):
        self.policy |= {'mode': 'pack', 'capacity_query': 'fill', 'capacity_threshold': 0.9}
        self.source.answers['capacity'] = {'h0': 0.8, 'h1': 0.5, 'h2': 0.0}
        self.change('d', host='h1')
        report = self.report({'h0': 0.8, 'h1': 0.5, 'h2': 0.0}, self.shares(0.01))
        self.assertEqual(('no_data', ()), (report.outcome, report.moves))

    def test_the_score_stays_in_force_for_other_policies(self):
        for name in self.hosts:
            self.hosts[name] = sized(name, 16)
        self.source.answers['imbalance'] = {'h0': 0.8, 'h1': 0.85, 'h2': 0.0}
        self.source.answers['vm_profile'] = self.shares(0.01)
        for uuid in 'abcd':
            self.change(uuid, vcpus=2)
        ports = clouds.PlannerPorts(source=self.source, clock=self.clock, now=clouds.NOW)
        (_name, load), = steps.measured(
            self.snapshot(), clouds.PolicySet(policies=(clouds.Policy(**self.policy),)),
            self.options, ports)
        guard, = load.guards
        self.assertEqual([0.8, 0.85, 0.0], guard.scores.tolist())

    def test_idle_servers_on_idle_hosts_are_in_the_right_unit(self):
        report = self.report({'h0': 0.05, 'h1': 0.04, 'h2': 0.04}, self.shares(0.0001))
        self.assertEqual(('balanced', ()), (report.outcome, report.warnings))

    def test_shares_in_percent_are_out_of_range(self):
        report = self.report({'h0': 0.8, 'h1': 0.0, 'h2': 0.0}, self.shares(100))
        self.assertEqual((), report.moves)
        said = ' '.join(report.warnings)
        self.assertIn('the profiles of all of its servers are out of range (0 to 1 of the host). '
                      'Both queries', said)
        self.assertNotIn('a profile of 0', said)

    def test_two_series_of_each_server_are_named(self):
        class Source:
            def query(self, query):
                if query.kind != 'vm_profile':
                    return Vector(tuple(Sample({'host': name}, value, clouds.NOW) for name, value
                                        in (('h0', .8), ('h1', .0), ('h2', .0))))
                return Vector(tuple(Sample({'uuid': uuid, 'replica': replica}, .2, clouds.NOW)
                                    for uuid in 'abcd' for replica in 'xy'))

        self.source = Source()
        said = ' '.join(self.plan().warnings)
        self.assertIn('all of its servers have several series: aggregate vm_profile_query by uuid',
                      said)
        self.assertNotIn('a profile of 0', said)

    def test_no_series_of_any_server_is_said(self):
        report = self.report({'h0': 0.8, 'h1': 0.0, 'h2': 0.0}, {})
        self.assertEqual(('no_move', ()), (report.outcome, report.moves))
        self.assertEqual(('cpu: monitoring knows none of the 4 servers, and none is moved: is the '
                          'exporter up, and does uuid hold the uuid of servers?',),
                         report.warnings)
        self.policy['vm_profile_fallback'] = 'host_average'
        self.assertIn('all take vm_profile_fallback host_average',
                      self.report({'h0': 0.8, 'h1': 0.0, 'h2': 0.0}, {}).warnings[0])
        for uuid in 'abcd':
            self.change(uuid, launched_at=clouds.NOW - 60)
        self.assertEqual((), self.report({'h0': 0.8, 'h1': 0.0, 'h2': 0.0}, {}).warnings)


class HistoryTest(CloudTest):
    def test_a_host_that_failed_is_believed_after_two_good_evaluations(self):
        good = {'h0': 0.8, 'h1': 0.0, 'h2': 0.0}, dict.fromkeys('abcd', 0.2)
        bad = self.report(good[0], {'a': 0.2})
        failing = frozenset((each.policy, each.host) for each in bad.unbelieved if each.is_failing)
        self.assertEqual({('cpu', 'h0')}, failing)
        after = self.report(*good, history=PlanningHistory(doubted={'agg': failing}))
        self.assertEqual(((), ['h0']), (after.moves, [each.host for each in after.unbelieved]))
        self.assertFalse(after.unbelieved[0].is_failing)
        self.assertEqual((), self.report(*good).unbelieved)

    def test_a_new_server_needs_no_series_yet(self):
        for uuid in 'bcd':
            self.change(uuid, launched_at=clouds.NOW - 60)
        report = self.report({'h0': 0.8, 'h1': 0.0, 'h2': 0.0}, {'a': 0.2})
        self.assertEqual((), report.unbelieved)


class KnownServersTest(CloudTest):
    """Two evaluations, with the moves of the first plan between them. Server u has no series."""

    def setUp(self):
        super().setUp()
        self.instances = {uuid: clouds.instance(uuid, 'h0') for uuid in 'abcdu'}
        self.scores, self.profile = {'h0': 0.9, 'h1': 0.0, 'h2': 0.0}, dict.fromkeys('abcd', 0.2)
        self.history = PlanningHistory()

    def evaluate(self):
        return self.report(self.scores, self.profile, history=self.history)

    def carry_out(self, *moves, seconds=100.0):
        """Carry out moves, each (uuid of a server, its destination)."""
        past = []
        for uuid, destination in moves:
            source, share = self.instances[uuid].host, self.profile.get(uuid, 0.0)
            self.scores[source] -= share
            self.scores[destination] += share
            self.change(uuid, host=destination)
            past.append(PastMove(instance_uuid=uuid, source=source, destination=destination,
                                 ended_at=clouds.NOW - seconds, is_own=True))
        self.history = dataclasses.replace(self.history, moves=(*self.history.moves, *past))

    def planned(self):
        report = self.evaluate()
        self.assertEqual('planned', report.outcome)
        return [(move.instance_uuid, move.destination) for move in report.moves]

    def test_moves_off_a_host_do_not_hide_its_load(self):
        moves = self.planned()
        self.assertLess(1, len(moves))
        self.carry_out(*moves)
        for seconds in (100.0, 5000.0):
            self.history = PlanningHistory(moves=tuple(
                dataclasses.replace(move, ended_at=clouds.NOW - seconds)
                for move in self.history.moves))
            report = self.evaluate()
            self.assertEqual(((), ()), (report.unbelieved, report.warnings))

    def test_servers_that_arrive_with_their_series_are_known_at_once(self):
        self.instances |= {'e': clouds.instance('e', 'h1')}
        self.profile['e'] = 0.1
        self.scores['h1'] = 0.1
        self.carry_out(('a', 'h1'), ('e', 'h0'))
        self.history = PlanningHistory(moves=tuple(
            move for move in self.history.moves if move.instance_uuid == 'e'))
        self.assertEqual((), self.evaluate().unbelieved)

    def test_a_server_that_only_its_former_host_reports_is_not_known_on_the_new_one(self):
        source = self.source

        class Source:
            def query(self, query):
                found = source.query(query)
                return found if query.kind != 'vm_profile' else Vector(tuple(
                    Sample({**sample.labels, 'host': 'h0'}, sample.value, clouds.NOW)
                    for sample in found.samples))

        self.instances |= {'v': clouds.instance('v', 'h1')}
        self.carry_out(*((uuid, 'h1') for uuid in 'abcd'))
        self.source.answers |= {'imbalance': self.scores, 'vm_profile': self.profile}
        self.source = Source()
        self.assertEqual({'h0', 'h1'}, {each.host for each in self.plan(self.history).unbelieved})

    def test_an_exporter_that_stops_after_moves_is_noticed(self):
        self.carry_out(('a', 'h1'), ('b', 'h2'))
        self.assertEqual((), self.evaluate().unbelieved)
        del self.profile['d']
        self.assertEqual(['h0'], [each.host for each in self.evaluate().unbelieved])

    def test_servers_that_left_an_emptied_host_do_not_count_there(self):
        self.carry_out(('a', 'h1'), ('b', 'h2'))
        self.history = PlanningHistory(moves=tuple(
            dataclasses.replace(move, has_emptied=True) for move in self.history.moves))
        self.assertEqual(['h0'], [each.host for each in self.evaluate().unbelieved])

    def test_a_server_that_has_just_arrived_is_no_sign_that_all_profiles_are_wrong(self):
        self.profile['v'] = 0.0
        self.instances['v'] = clouds.instance('v', 'h1', launched_at=clouds.NOW - 60)
        self.scores['h1'] = 0.3
        self.assertEqual((), self.evaluate().unbelieved)

    def test_a_server_that_is_held_and_has_a_series_is_known(self):
        self.history = PlanningHistory(instances={'a': 30.0, 'b': 30.0})
        self.assertEqual((), self.evaluate().unbelieved)


class OwnHeatTest(CloudTest):
    def test_servers_stay_on_a_host_that_is_hot_by_itself(self):
        del self.policy['threshold']
        self.policy |= {'mode': 'relieve', 'high': 0.9, 'target': 0.75}
        report = self.report({'h0': 0.95, 'h1': 0.2, 'h2': 0.2}, dict.fromkeys('abcd', 0.001))
        self.assertEqual(('no_move', ()), (report.outcome, report.moves))
        self.assertIn('load of the host, not of its servers', ' '.join(report.warnings))


    def test_spreading_leaves_servers_on_a_host_that_is_hot_by_itself(self):
        for restraint in (Restraint(), Restraint(1.0)):
            report = self.report({'h0': 0.95, 'h1': 0.1, 'h2': 0.1}, dict.fromkeys('abcd', 0.01),
                                 restraint=restraint)
            self.assertEqual(('no_move', ()), (report.outcome, report.moves))
            self.assertEqual(('h0: cpu is 0.95, of which its servers use 0.04: it is load of the '
                              'host, not of its servers. Nothing is moved off it.',),
                             report.warnings)

    def test_other_hosts_are_evened_out_all_the_same(self):
        for uuid in 'cd':
            self.change(uuid, host='h1')
        report = self.report({'h0': 0.95, 'h1': 0.7, 'h2': 0.1},
                             {'a': 0.01, 'b': 0.01, 'c': 0.3, 'd': 0.3})
        self.assertEqual([('h1', 'h2')], [(move.source, move.destination)
                                          for move in report.moves])
        self.assertIn('load of the host, not of its servers', report.warnings[0])

    def test_servers_of_which_little_is_known_are_not_called_little(self):
        """Two of its servers have no series, and may be what makes it hot."""
        report = self.report({'h0': 0.95, 'h1': 0.1, 'h2': 0.1}, {'a': 0.04, 'b': 0.03},
                             belief=BeliefRules(least_known=0.5))
        self.assertNotIn('load of the host', ' '.join(report.warnings))

    def test_relief_does_not_call_unknown_servers_little(self):
        del self.policy['threshold']
        self.policy |= {'mode': 'relieve', 'high': 0.9, 'target': 0.75}
        report = self.report({'h0': 0.95, 'h1': 0.2, 'h2': 0.2}, {'a': 0.001, 'b': 0.001},
                             belief=BeliefRules(least_known=0.5))
        self.assertNotIn('load of the host', ' '.join(report.warnings))


class RegionsTest(CloudTest):
    def test_series_of_another_clouds_hosts_do_not_count(self):
        class Source:
            def query(self, query):
                if query.kind != 'vm_profile':
                    return Vector(tuple(Sample({'host': name}, value, clouds.NOW) for name, value
                                        in (('h0', .8), ('h1', .0), ('h2', .0))))
                return Vector(tuple(Sample({'uuid': uuid, 'host': host}, value, clouds.NOW)
                                    for uuid in 'abcd'
                                    for host, value in (('h0', .2), ('r2-h7', .9))))

        self.source = Source()
        report = self.plan()
        self.assertEqual('planned', report.outcome)
        self.assertIn('cpu 0.800 to 0.600', report.moves[0].reason)

    def test_a_server_that_only_another_clouds_host_has_is_not_known(self):
        class Source:
            def query(self, query):
                if query.kind != 'vm_profile':
                    return Vector(tuple(Sample({'host': name}, value, clouds.NOW) for name, value
                                        in (('h0', .8), ('h1', .0), ('h2', .0))))
                return Vector(tuple(Sample({'uuid': uuid, 'host': host}, .2, clouds.NOW)
                                    for uuid, host in (*((uuid, 'h0') for uuid in 'abc'),
                                                       ('d', 'r2-h7'))))

        self.source = Source()
        report = self.plan(belief=BeliefRules(least_known=0.5))
        self.assertEqual(('d',), self.stayed(report)['no_profile'])
        self.assertNotIn('d', {move.instance_uuid for move in report.moves})


class OtherBalancerTest(CloudTest):
    """Kronos moved a and b from h0 to h1, and both were moved back."""

    def history(self, backs):
        tries = [PastTry(instance_uuid=uuid, source='h0', destination='h1', memory_mb=1,
                         seconds=10.0, failed=False) for uuid in 'ab']
        forth = [PastMove(instance_uuid=uuid, source='h0', destination='h1',
                          ended_at=clouds.NOW - 900) for uuid in 'ab']
        back = [PastMove(instance_uuid=uuid, source='h1', destination='h0',
                         ended_at=clouds.NOW - 600) for uuid in backs]
        return PlanningHistory(tries=tuple(tries), moves=(*forth, *back))

    def said(self, backs):
        return [warning for warning in self.plan(self.history(backs)).warnings
                if 'another balancer' in warning]

    def test_migrations_that_undo_those_of_kronos_are_reported(self):
        warning, = self.said('aba')
        self.assertIn('3 live migrations', warning)
        self.assertIn('(a) from h1 to h0', warning)

    def test_moves_of_kronos_that_are_undone_before_they_are_checked_are_its_own_too(self):
        """The journal has no end of such a move: it is tried again."""
        history = self.history('aba')
        forth = [dataclasses.replace(each, is_own=True) for each in history.moves[:2]]
        history = dataclasses.replace(history, tries=(), moves=(*forth, *history.moves[2:]))
        self.assertEqual(1, len([warning for warning in self.plan(history).warnings
                                 if '3 live migrations' in warning]))

    def test_an_operator_may_move_two_servers_back(self):
        self.assertEqual([], self.said('ab'))

    def test_migrations_of_other_servers_are_no_sign(self):
        self.assertEqual([], self.said('cdcdc'))
