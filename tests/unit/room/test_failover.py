"""Restart of the servers of a host that fails on the others."""

import testtools

from bench import failover as referee
from kronos_nova import exception
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.room import failover
from tests.unit.room import clouds


def judge(snapshot, *hosts, known=None):
    judge = failover.failover_of(snapshot, ConstraintRules())
    return judge.judge([judge.index(name) for name in hosts], known)


class VerdictTest(testtools.TestCase):
    def test_servers_restart_where_there_is_room(self):
        found = judge(clouds.cloud([clouds.host('a'), clouds.host('b')],
                                   [clouds.server('one', 'a'), clouds.server('two', 'b')]), 'a')

        self.assertEqual((failover.FITS, {'one': 'b'}), (found.verdict, found.placement))

    def test_free_room_in_pieces_restarts_no_large_server(self):
        """Eight hosts with an eighth free, and a server of half a host."""
        hosts = [clouds.host(f'h{n}') for n in range(8)]
        small = [clouds.server(f's{n}', f'h{n}', vcpus=7, memory_mb=14336) for n in range(1, 8)]

        found = judge(clouds.cloud(hosts, [clouds.server('half', 'h0', 4, 8192), *small]), 'h0')

        self.assertEqual(failover.DOES_NOT, found.verdict)
        self.assertEqual(
            {'half': 'it needs 8192 MEMORY_MB, and of 7 hosts that may take it none has more than '
                     '2048 free with room for the rest of it'}, found.left)

    def test_members_that_are_kept_apart_need_a_host_each(self):
        snapshot = clouds.cloud(
            [clouds.host(name) for name in 'abc'],
            [clouds.server('one', 'a'), clouds.server('two', 'b'), clouds.server('three', 'c')],
            server_groups=(clouds.group('anti-affinity', 'one', 'two', 'three'),))

        found = judge(snapshot, 'a')

        self.assertEqual((failover.DOES_NOT, {'one': 'no other host may take it'}),
                         (found.verdict, found.left))

    def test_members_that_are_kept_together_restart_on_one_host(self):
        hosts = [clouds.host('a'), clouds.host('b', 3), clouds.host('c', 3), clouds.host('d')]
        servers = [clouds.server(f's{n}', 'a', vcpus=2) for n in range(2)]
        snapshot = clouds.cloud(hosts, servers,
                                server_groups=(clouds.group('affinity', 's0', 's1'),))

        self.assertEqual({'s0': 'd', 's1': 'd'}, judge(snapshot, 'a').placement)
        self.assertEqual(failover.DOES_NOT, judge(snapshot, 'a', 'd').verdict)

    def test_a_soft_group_keeps_no_server_from_restarting(self):
        snapshot = clouds.cloud(
            [clouds.host('a'), clouds.host('b')],
            [clouds.server('one', 'a'), clouds.server('two', 'b')],
            server_groups=(clouds.group('soft-anti-affinity', 'one', 'two'),))

        self.assertEqual({'one': 'b'}, judge(snapshot, 'a').placement)

    def test_a_server_that_nova_does_not_evacuate_is_named(self):
        snapshot = clouds.cloud([clouds.host('a'), clouds.host('b')],
                                [clouds.server('one', 'a', status='PAUSED'),
                                 clouds.server('two', 'a', status='SHUTOFF')])

        found = judge(snapshot, 'a')

        self.assertEqual((failover.DOES_NOT, {'one': 'Nova evacuates no server that is PAUSED'}),
                         (found.verdict, found.left))

    def test_two_hosts_may_fail_together(self):
        snapshot = clouds.cloud([clouds.host('a'), clouds.host('b'), clouds.host('c')],
                                [clouds.server('one', 'a', 5), clouds.server('two', 'b', 5)])

        self.assertEqual(failover.FITS, judge(snapshot, 'a').verdict)
        self.assertEqual(failover.DOES_NOT, judge(snapshot, 'a', 'b').verdict)

    def test_a_known_placement_is_kept_as_long_as_it_holds(self):
        hosts = [clouds.host(name) for name in 'abc']
        one = clouds.server('one', 'a')

        known = {'one': 'c'}
        self.assertEqual(known, judge(clouds.cloud(hosts, [one]), 'a', known=known).placement)
        full = clouds.server('full', 'c', 8)
        self.assertEqual({'one': 'b'},
                         judge(clouds.cloud(hosts, [one, full]), 'a', known=known).placement)

    def test_a_host_that_is_not_there_is_refused(self):
        self.assertRaises(exception.HostNotFound, judge, clouds.cloud([clouds.host('a')]), 'x')


class NovasOrderTest(testtools.TestCase):
    def fits(self, snapshot):
        judge = failover.failover_of(snapshot, ConstraintRules())
        return judge.fits_in_novas_order((judge.index('a'),))

    def test_the_newest_takes_the_room_that_an_older_one_needs(self):
        """The scheduler sends the small server to the emptiest host, the only one for the other."""
        hosts = [clouds.host('a'), clouds.host('b', 6), clouds.host('c', 8)]
        servers = [clouds.server('large', 'a', 8, launched_at=1.0),
                   clouds.server('small', 'a', 1, launched_at=2.0)]
        snapshot = clouds.cloud(hosts, servers)

        self.assertEqual(failover.FITS, judge(snapshot, 'a').verdict)
        self.assertFalse(self.fits(snapshot))
        self.assertTrue(self.fits(clouds.cloud(hosts, [
            servers[0], clouds.server('small', 'a', 1, launched_at=0.5)])))

    def test_a_group_that_is_kept_together_restarts_nowhere(self):
        """Nova looks for a host on which its members are, and that one has failed."""
        servers = [clouds.server('one', 'a'), clouds.server('two', 'a')]
        snapshot = clouds.cloud([clouds.host('a'), clouds.host('b')], servers,
                                server_groups=(clouds.group('affinity', 'one', 'two'),))

        self.assertEqual(failover.FITS, judge(snapshot, 'a').verdict)
        self.assertFalse(self.fits(snapshot))


class RefereeTest(testtools.TestCase):
    def test_no_verdict_is_wrong(self):
        """By an integer program that shares nothing with the verdicts."""
        verdicts = []
        for seed in range(6):
            for found in referee.judged(seed):
                self.assertFalse(referee.is_wrong(found), (seed, found))
                verdicts.append(found.ours)
        self.assertEqual({failover.FITS, failover.DOES_NOT}, set(verdicts))
