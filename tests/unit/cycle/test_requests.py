"""What a plan is asked for."""

import testtools

from kronos_nova.cycle.requests import BALANCING
from kronos_nova.drain.planning import DrainRequest
from kronos_nova.objects import snapshot

DRAIN = DrainRequest(sources=frozenset('ab'), include_stopped=frozenset('a'),
                     avoid=frozenset('c'), give_up=frozenset({'tried'}))


def host(name, state='up', status='enabled', forced_down=False):
    return snapshot.Host(name=name, uuid=name, inventory={}, service=snapshot.Service(
        state=state, status=status, forced_down=forced_down))


def server(uuid, on):
    return snapshot.Instance(
        uuid=uuid, name=uuid, display_name=uuid, host=on, project_id='p', status='ACTIVE',
        vcpus=1, memory_mb=1, disk_gb=1)


class RequestTest(testtools.TestCase):
    def test_balancing_uses_enabled_hosts_and_empties_disabled_ones(self):
        for each, expected in ((host('a'), (True, False)),
                               (host('a', status='disabled'), (False, True)),
                               (host('a', state='down'), (False, False)),
                               (host('a', status='disabled', forced_down=True), (False, False))):
            self.assertEqual(expected, (BALANCING.takes(each), BALANCING.empties(each)))
        self.assertEqual(('ACTIVE',), BALANCING.statuses(server('vm', 'a')))

    def test_a_drain_empties_its_sources_and_nothing_else(self):
        for status in ('enabled', 'disabled'):
            self.assertTrue(DRAIN.empties(host('a', status=status)))
            self.assertFalse(DRAIN.takes(host('a', status=status)))
            self.assertFalse(DRAIN.empties(host('d', status=status)))
        self.assertFalse(DRAIN.empties(host('a', state='down')))
        self.assertFalse(DRAIN.empties(host('a', forced_down=True)))

    def test_hosts_that_are_emptied_later_take_nothing(self):
        self.assertEqual([False, True, False], [DRAIN.takes(each) for each in (
            host('c'), host('d'), host('d', status='disabled'))])

    def test_stopped_servers_leave_where_that_is_asked_for(self):
        self.assertEqual([('ACTIVE', 'SHUTOFF'), ('ACTIVE',), ('ACTIVE',), ()], [
            DRAIN.statuses(each) for each in (
                server('vm', 'a'), server('vm', 'b'), server('vm', 'd'), server('tried', 'a'))])
