"""Losses that hosts of an aggregate may suffer, and how far they are judged."""

import dataclasses

import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.room import failover
from kronos_nova.room import losses
from tests.unit.room import clouds


class LossTest(testtools.TestCase):
    def cloud(self, *servers):
        return clouds.cloud([
            clouds.host(name, domains={'room': room, 'rack': rack})
            for name, room, rack in (('a', 'x', '1'), ('b', 'x', '1'), ('c', 'y', '1'))], servers)

    def judged(self, snapshot, seconds=None, memory=None, names='abc'):
        """{name of a loss: what was judged}, in so many looks at the time as there are seconds."""
        judge = failover.failover_of(snapshot, ConstraintRules())
        left = iter(seconds or [1.0] * 99)
        memory = memory or losses.LossMemory()
        found = losses.judged(judge, losses.of_hosts(snapshot.hosts, {*names}), memory,
                              lambda: next(left))
        return {each.loss.name: each for each in losses.ordered(
            judge, found, memory, lambda: next(left)).values()}

    def verdicts(self, *args, **kwargs):
        return {name: each.verdict and each.verdict.verdict
                for name, each in self.judged(*args, **kwargs).items()}

    def test_each_host_is_lost_alone_and_each_domain_with_all_of_its_hosts(self):
        found = losses.of_hosts(self.cloud().hosts, {'a'})
        self.assertEqual([('', 'a', ('a',)), ('rack', 'x/1', ('a', 'b')),
                          ('room', 'x', ('a', 'b'))],
                         [(each.level, each.name, each.hosts) for each in found])

    def test_a_domain_may_be_lost_where_its_servers_fit_elsewhere(self):
        big = [clouds.server('one', 'a', vcpus=6), clouds.server('two', 'b', vcpus=6)]
        self.assertEqual(
            {'a': 'fits', 'b': 'fits', 'c': 'fits', 'x/1': 'does_not_fit', 'y/1': 'fits',
             'x': 'does_not_fit', 'y': 'fits'}, self.verdicts(self.cloud(*big)))

    def test_what_there_is_no_time_for_is_judged_first_in_the_next_round(self):
        snapshot, memory = self.cloud(clouds.server('one', 'a')), losses.LossMemory()
        self.assertEqual({'a': 'fits', 'b': None, 'c': None}, self.hosts(self.verdicts(
            snapshot, [1.0, 0.0, 0.0], memory)))
        self.assertEqual({'a': None, 'b': 'fits', 'c': None}, self.hosts(self.verdicts(
            snapshot, [1.0, 0.0, 0.0], memory)))

    @staticmethod
    def hosts(found):
        return {name: found[name] for name in 'abc'}

    def test_novas_order_is_judged_of_what_fits_while_there_is_time(self):
        found = self.judged(self.cloud(clouds.server('one', 'a')), [*[1.0] * 8, 0.0], names='ab')
        self.assertEqual([True, True, True, True],
                         [each.in_order for each in found.values()])
        found = self.judged(self.cloud(clouds.server('one', 'a')), [*[1.0] * 4, 0.0], names='ab')
        self.assertEqual([None] * 4, [each.in_order for each in found.values()])

    def test_a_placement_is_kept_while_it_holds_and_made_again_when_it_does_not(self):
        snapshot, memory = self.cloud(clouds.server('one', 'a', vcpus=6)), losses.LossMemory()
        before = self.judged(snapshot, memory=memory)['a'].verdict.placement
        self.assertEqual(before, self.judged(snapshot, memory=memory)['a'].verdict.placement)
        full = dataclasses.replace(snapshot, instances=(
            *snapshot.instances, clouds.server('two', before['one'], vcpus=6)))
        after = self.judged(full, memory=memory)['a'].verdict
        self.assertEqual('fits', after.verdict)
        self.assertNotEqual(before, after.placement)

    def test_without_time_for_a_program_nothing_is_claimed(self):
        """The largest first, each where least room is left: 7 goes to the host with 10 free, 6 and
        5 to the one with 13, and 4 finds no place. With 7 and 6 on one host all do."""
        hosts = [clouds.host('lost', 99), clouds.host('b', 13), clouds.host('c', 10)]
        snapshot = clouds.cloud(hosts, [
            clouds.server(f's{n}', 'lost', vcpus=size, memory_mb=1)
            for n, size in enumerate((6, 4, 5, 7))])
        judge = failover.failover_of(snapshot, ConstraintRules())
        lost = [judge.index('lost')]
        self.assertEqual(failover.NOT_FOUND, judge.judge(lost, seconds=0.0).verdict)
        self.assertEqual(failover.FITS, judge.judge(lost).verdict)
