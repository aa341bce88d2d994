"""Failure domains, from the metadata of aggregates."""

import testtools

from kronos_nova.objects import domains
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Service


def aggregate(name, hosts, **metadata):
    return Aggregate(name=name, uuid=name, hosts=hosts, metadata=metadata)


AGGREGATES = (aggregate('left', ('a1', 'a2'), room='a', rack='r1'),
              aggregate('right', ('b1',), room='b', rack='r1'),
              aggregate('gpu', ('a2', 'b1', 'c1'), gpu='yes', rack=' r2 '),
              aggregate('empty', ('c1',), room=' '))


def host(name, found):
    return Host(name=name, uuid=name, inventory={}, domains=found,
                service=Service(state='up', status='enabled'))


class DomainsTest(testtools.TestCase):
    def test_hosts_have_the_values_of_their_aggregates_the_largest_domain_first(self):
        found = domains.domains_of_hosts(AGGREGATES, ['room', 'rack'])
        self.assertEqual({'a1': {'room': 'a', 'rack': 'r1'}, 'a2': {'room': 'a', 'rack': 'r1'},
                          'b1': {'room': 'b', 'rack': 'r1'}, 'c1': {'rack': 'r2'}}, found)
        self.assertEqual(['room', 'rack'], list(found['b1']))

    def test_without_keys_there_are_none(self):
        self.assertEqual({}, domains.domains_of_hosts(AGGREGATES, []))

    def test_what_contradicts_is_stated(self):
        found = domains.stated(AGGREGATES, ['rack'])
        self.assertEqual({'a1': {'rack': ('r1',)}, 'a2': {'rack': ('r1', 'r2')},
                          'b1': {'rack': ('r1', 'r2')}, 'c1': {'rack': ('r2',)}}, found)

    def test_a_rack_of_one_room_is_not_that_of_another(self):
        found = domains.domains_of_hosts(AGGREGATES, ['room', 'rack'])
        places = {name: domains.place(host(name, found[name]), 'rack') for name in found}
        self.assertEqual({'a1': ('a', 'r1'), 'a2': ('a', 'r1'), 'b1': ('b', 'r1'), 'c1': ('r2',)},
                         places)
        self.assertIsNone(domains.place(host('c1', found['c1']), 'room'))

    def test_the_domains_of_a_host_are_one_line(self):
        self.assertEqual('room=a, rack=r1', domains.names({'room': 'a', 'rack': 'r1'}))
