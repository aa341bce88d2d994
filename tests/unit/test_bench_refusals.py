"""The bench of refusals asks Nova's own filters, and the same thing every time."""

import dataclasses
import types

import fixtures
import testtools

from bench import refusals
from bench.days import scenario as scenarios
from bench.refusals import kinds
from bench.refusals import world
from bench.refusals.judge import Judge
from bench.refusals.world import MixedWorld
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.objects.dry_run import NO_ROOM_YET
from kronos_nova.objects.dry_run import ROOM
from kronos_nova.objects.dry_run import Before
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.plan import PlannedMove
from tests.unit.test_bench_days import THRESHOLD
from tests.unit.test_bench_days import scene

SAMPLES = 18
"""Samples of five minutes of the short day."""

KINDS = {kind.name: kind for kind in kinds.KINDS}
EVERYTHING = frozenset(kind.carried_by for kind in kinds.KINDS)


def machine(*has, devices=0):
    return kinds.Machine(has=frozenset(has), devices=devices)


def judge(kind, *machines, vms=1):
    """A judge of servers of 2 VCPUs and 4 GiB of one kind, on hosts of 10 cores."""
    return Judge(kinds.Mix((KINDS[kind],) * vms, machines), scene([0] * vms, [0] * vms))


class JudgeTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())

    def test_each_need_is_met_by_the_hosts_that_carry_it_alone(self):
        for kind in kinds.KINDS:
            found = judge(kind.name, machine(*EVERYTHING, devices=1),
                          machine(*EVERYTHING - {kind.carried_by}))
            self.assertEqual('', found.lack(0, 0, ()), kind.name)
            lack = found.lack(0, 1, ())
            self.assertEqual(bool(kind.carried_by) and kind.name != 'two-nodes', bool(lack),
                             (kind.name, lack))

    def test_two_nodes_need_a_host_that_reports_its_nodes(self):
        found = judge('two-nodes', machine())
        self.assertEqual('NUMATopologyFilter', found.lack(0, 0, ()))

    def test_devices_and_cores_are_used_up(self):
        found = judge('gpu', machine('devices', 'new disks', devices=2), vms=3)
        self.assertEqual(['', '', 'PciPassthroughFilter'], [
            found.lack(vm, 0, tuple(range(vm))) for vm in range(3)])
        found = judge('pinned', machine('pinned cores'), vms=3)
        self.assertEqual(['', '', 'placement: PCPU'], [
            found.lack(vm, 0, tuple(range(vm))) for vm in range(3)])
        self.assertEqual('', found.lack(2, 0, (0,)))

    def test_new_images_need_a_new_qemu(self):
        self.assertEqual('ImagePropertiesFilter', judge('new-qemu', machine()).lack(0, 0, ()))


class WeekTest(testtools.TestCase):
    def test_nova_refuses_what_was_not_asked_for(self):
        scenario = scene([1, 1], [0, 0])
        mix = kinds.Mix((kinds.PLAIN, kinds.KINDS[1]), (machine('trait'), machine()))
        mixed = MixedWorld(scenario, THRESHOLD, Judge(mix, scenario))
        self.assertEqual(0, mixed.place[1])
        self.assertEqual(('', f'placement: {kinds.TRAIT}'), (mixed.lack(0, 1), mixed.lack(1, 1)))

    def test_what_was_refused_before_is_not_planned_now(self):
        args = types.SimpleNamespace(hosts=8, vms=60, days=1, threshold=0.25, load=0.5, fill=0.85)
        week = scenarios.week(8, 60, 0.5, 0, 1)
        self.useFixture(fixtures.MonkeyPatch(
            'bench.days.scenario.week', lambda *given: dataclasses.replace(
                week, demand=week.demand[:SAMPLES], dies=week.dies.clip(max=SAMPLES))))
        found = {}
        for way, options in refusals.ways(0.0, 'spread').items():
            counts, tally, _seconds = refusals.lived(args, 0, way, options)
            self.assertGreater(tally['moves'], 5)
            self.assertEqual(counts.requests, tally['moves'] + counts.refused.total())
            found[way] = counts
        before, now = found[refusals.BEFORE], found[refusals.CHECKED]
        self.assertEqual((0, set()), (now.refused.total(), now.left_alone))
        self.assertGreater(before.refused.total(), 0)
        self.assertNotEqual(set(), before.left_alone)
        self.assertLess(now.questions + now.requests, before.questions + before.requests)

    def test_before_the_checks_no_future_state_was_asked_about(self):
        scenario = scene([1, 1, 1], [0, 0, 0])
        mix = kinds.Mix((KINDS['gpu'],) * 3, (machine('devices', devices=2),) * 2)
        mixed = MixedWorld(scenario, THRESHOLD, Judge(mix, scenario))
        self.assertEqual([0, 1, 0], mixed.place.tolist())
        answers = {}
        for way in (world.Cloud, world.CloudBefore):
            counts = world.Counts()
            cloud = way(mixed, counts)
            move = PlannedMove(order=2, phase='spread', instance_uuid=cloud.vms[0],
                               source=cloud.hosts[0], destination=cloud.hosts[1], memory_mb=1,
                               combined_after=0.0, reason='')
            leaving = Before(leaving=(cloud.read().instances[1],))
            waits = dataclasses.replace(move, depends_on=(1,))
            answers[way] = [cloud.ask(move, None, None),
                            cloud.ask(move, None, None, Before(alike=1)),
                            cloud.ask(waits, None, None, leaving), counts.questions]
        self.assertEqual([AGREED, Verdict(refused='PciPassthroughFilter'), Verdict(without=ROOM),
                          3], answers[world.Cloud])
        self.assertEqual([AGREED, AGREED, Verdict(unasked=NO_ROOM_YET), 2],
                         answers[world.CloudBefore])

    def test_what_misses_the_goals_is_said(self):
        def row(way, refused, left_alone, calls):
            return (way, 1000, refused, refused, left_alone, 0, 0, calls, 0.1, 0.0)

        self.assertEqual([], list(refusals.failures([
            row('before', 3, 1, 2.0), row('host_checks', 0, 0, 2.0)])))
        self.assertEqual(3, len(list(refusals.failures([
            row('before', 0, 0, 1.0), row('host_checks', 1, 1, 2.0)]))))
