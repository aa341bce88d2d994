"""Stored measurements of evaluations: the hosts as they were, and the imbalance over time."""

import dataclasses
import datetime

import testtools

from kronos_nova.db import evaluations
from kronos_nova.db import retention
from kronos_nova.objects import host_load
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures
from tests.unit.record import reports


def a_report(imbalance=0.3, outcome=plans.BALANCED, name='gpu'):
    return plans.AggregateReport(
        name=name, outcome=outcome, mode='spread', planner='spread', policies=(
            plans.PolicyReport(name='cpu', state='ok', weight=0.5, threshold=0.1,
                               imbalance_before=imbalance, imbalance_after=imbalance),
            plans.PolicyReport(name='memory', state='no_data', weight=0.5, threshold=0.1)))


class LoadsTest(testtools.TestCase):
    def test_hosts_have_what_the_report_and_the_cloud_say_of_them(self):
        cloud = reports.a_cloud(hosts=4, instances=8)
        [aggregate] = reports.a_report(cloud).aggregates
        loads = {load.name: load for load in host_load.HostLoads(cloud).of_aggregate(aggregate)}
        self.assertEqual(['cmp0', 'cmp1', 'cmp2', 'cmp3'], list(loads))
        self.assertEqual(host_load.HostLoad(
            name='cmp0', state='up', servers=2, servers_after=1,
            scores={'cpu': (0.9, 0.6000000000000001)}), loads['cmp0'])
        self.assertEqual((2, 3), (loads['cmp3'].servers, loads['cmp3'].servers_after))
        self.assertEqual('disabled', loads['cmp2'].state)
        self.assertEqual((0.9, 0.6), host_load.from_json(
            host_load.to_json([loads['cmp0']]))[0].scores['cpu'])

    def test_hosts_have_their_failure_domains(self):
        cloud = reports.a_cloud(hosts=4, instances=8)
        cloud = dataclasses.replace(cloud, hosts=tuple(dataclasses.replace(
            host, domains={'room': 'a', 'rack': 'r1'} if host.name == 'cmp0' else {})
            for host in cloud.hosts))
        [aggregate] = reports.a_report(cloud).aggregates
        loads = host_load.from_json(host_load.to_json(
            host_load.HostLoads(cloud).of_aggregate(aggregate)))
        self.assertEqual([{'room': 'a', 'rack': 'r1'}, {}, {}, {}],
                         [load.domains for load in loads])


class EvaluationsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.kept = evaluations.Evaluations(self.database)
        self.clock = fixtures.Clock()

    def keep(self, imbalance, loads=(), **report):
        self.kept.save(a_report(imbalance, **report), list(loads), self.clock())
        self.clock.go(60)

    def since(self, aggregate, start):
        return self.kept.between(aggregate, start, self.clock())

    def test_of_the_hosts_the_latest_is_kept_and_of_the_imbalance_all(self):
        begun = self.clock()
        for value in (0.5, 0.2):
            self.keep(value, [host_load.HostLoad(name='a', state='up', servers=3, servers_after=3,
                                                 scores={'cpu': (value, value)})])
        self.keep(0.9, name='other')
        at, [load] = self.kept.hosts('gpu')
        self.assertEqual((begun + datetime.timedelta(seconds=60), (0.2, 0.2)),
                         (at, load.scores['cpu']))
        self.assertEqual([{'cpu': (0.5, 0.1)}, {'cpu': (0.2, 0.1)}],
                         [each.policies for each in self.since('gpu', begun)])
        self.assertEqual(1, len(self.since('gpu', begun + datetime.timedelta(seconds=1))))

    def test_nothing_is_known_of_what_was_never_evaluated(self):
        self.assertEqual((None, []), self.kept.hosts('gpu'))
        self.assertEqual([], self.since('gpu', self.clock()))

    def test_what_is_thinned_keeps_its_peaks_and_its_order(self):
        for value in (0.1, 0.1, 0.9, 0.1, 0.2, 0.1, 0.1):
            self.keep(value)
        found = self.since('gpu', self.clock() - datetime.timedelta(hours=1))
        thin = evaluations.thinned(found, 3)
        self.assertEqual([0.9, 0.2, 0.1], [each.policies['cpu'][0] for each in thin])
        self.assertEqual(sorted(each.at for each in thin), [each.at for each in thin])
        self.assertEqual(found, evaluations.thinned(found, 7))
        self.assertEqual([], evaluations.thinned([], 7))

    def test_what_is_too_old_goes(self):
        self.keep(0.1)
        self.clock.go(15 * 86400)
        self.keep(0.2)
        days = retention.Days(**{name: 0 for name in (
            'plans', 'moves', 'events', 'reports', 'repairs', 'quarantines', 'tasks',
            'operations', 'notifications', 'sums')}, evaluations=14)
        self.assertEqual(1, retention.Retention(self.database, days).step(
            self.clock())['evaluations'])
        self.assertEqual(1, len(self.since(
            'gpu', datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))))
