"""Errors of the demo where something is missing or does not work."""

import io
import time
from unittest import mock

import requests
import testtools
from rich import console

from tests.e2e.box.hypervisors import heartbeats
from tests.e2e.box.prometheus import Monitoring
from tests.e2e.box.settings import BoxError
from tests.e2e.demo import hypervisors
from tests.e2e.demo import observe
from tests.e2e.demo import view
from tests.e2e.demo.__main__ import Demo
from tests.e2e.demo.__main__ import to_try


class Cloud:
    """Guests of which each is asked about in turn: what Nova says of it, and what it says next."""

    def __init__(self, **said):
        self.said, self.loaded = said, []
        self.hypervisors = mock.Mock(hosts={})
        self.client = self

    def load_kronos(self, wanted):
        self.loaded.append(wanted)

    def live_migrate(self, uuid, host):
        self.said[uuid] = [(host, None, {}), *self.said[uuid]]

    def server(self, uuid):
        host, task_state, more = self.said[uuid].pop()
        return {'OS-EXT-SRV-ATTR:host': host, 'OS-EXT-STS:task_state': task_state, **more}


class PictureTest(testtools.TestCase):
    def imbalance(self, loads):
        cloud = mock.Mock()
        cloud.monitoring.query.return_value = [({'host': host}, load)
                                               for host, load in loads.items()]
        cloud.database.query.return_value = []
        plan = mock.Mock(queries={'cpu': ('', '')}, hosts={'rack': ['a', 'b', 'c']})
        return observe.Observer(cloud, plan).look().imbalance['rack']['cpu']

    def test_hosts_of_which_one_tells_nothing_are_not_called_balanced(self):
        self.assertEqual(0.75, self.imbalance({'a': 1.0, 'b': 0.5, 'c': 0.25}))
        self.assertIsNone(self.imbalance({'b': 0.5, 'c': 0.5}))
        self.assertIsNone(self.imbalance({}))


class LinesTest(testtools.TestCase):
    def lines(self):
        cloud = mock.Mock(root='/tmp/cloud')
        cloud.api.url = 'http://127.0.0.1:1'
        cloud.monitoring.alerts_url.return_value = 'http://127.0.0.1:2/classic/alerts'
        cloud.alerting.url = 'http://127.0.0.1:3'
        cloud.identity.credentials.return_value = {
            'OS_USERNAME': 'admin', 'OS_PASSWORD': 'two words', 'OS_PROJECT_NAME': 'admin'}
        with mock.patch('tests.e2e.demo.__main__.command',
                        lambda _package, name: ['/env/bin/python', f'/env/bin/{name}']):
            return [line.strip() for line in to_try(cloud)]

    def test_printed_commands_can_be_pasted(self):
        lines = self.lines()
        self.assertIn("export OS_USERNAME=admin OS_PASSWORD='two words' OS_PROJECT_NAME=admin",
                      lines)
        self.assertIn('/env/bin/python /env/bin/openstack --os-kronos-endpoint '
                      'http://127.0.0.1:1 kronos status', lines)

    def test_printed_addresses_have_pages(self):
        addresses = [line.split()[0] for line in self.lines() if line.startswith('http')]
        self.assertIn('http://127.0.0.1:2/classic/alerts', addresses)
        self.assertIn('http://127.0.0.1:3/api/v2/alerts', addresses)

    def test_the_outcome_of_an_aggregate_is_that_of_its_last_evaluation(self):
        out = io.StringIO()
        view.Plain(console.Console(file=out)).show(observe.Picture(
            loads={}, imbalance={'rack': {'cpu': 0.52}}, guests={}, moves=[],
            cycles={'rack': 'balanced'}), 0.1)
        self.assertIn('rack: imbalance now cpu 0.52 (threshold 0.10); last evaluation: balanced',
                      out.getvalue())


class AlertsAddressTest(testtools.TestCase):
    def address(self, **answer):
        monitoring = Monitoring.__new__(Monitoring)
        monitoring.url = 'http://127.0.0.1:2'
        with mock.patch.object(requests, 'get', **answer):
            return monitoring.alerts_url()

    def test_it_is_the_page_that_prometheus_has(self):
        for status, path in ((200, '/alerts'), (404, '/classic/alerts')):
            self.assertEqual(f'http://127.0.0.1:2{path}',
                             self.address(return_value=mock.Mock(status_code=status)))

    def test_it_is_the_usual_one_of_a_prometheus_that_does_not_answer(self):
        self.assertEqual('http://127.0.0.1:2/alerts',
                         self.address(side_effect=requests.ConnectionError))


def moved(uuid, gap=0.5):
    return {'server': uuid, 'name': uuid, 'state': 'completed', 'source': 'a', 'destination': 'b',
            'longest_gap_seconds': gap}


class ComparisonTest(testtools.TestCase):
    def compare(self, cloud, moves, hear=lambda _beats, _uuid: None):
        pulse = hypervisors.Pulse(cloud)
        beats = pulse._heartbeats._beats
        with mock.patch.object(hypervisors, 'AFTER_SECONDS', 0.2), \
                mock.patch.object(time, 'sleep', lambda _seconds: [hear(beats, uuid)
                                                                   for uuid in cloud.said]):
            return pulse.compare(moves)

    def test_one_that_nova_gives_up_ends_it_at_once_and_kronos_is_back(self):
        cloud = Cloud(vm=[('b', None, {'fault': {'message': 'no route'}})])
        error = self.assertRaises(BoxError, self.compare, cloud, [moved('vm')])
        self.assertIn('Nova has not moved vm to a: no route', str(error))
        self.assertEqual([False, True], cloud.loaded)

    def test_one_that_never_arrives_ends_it_in_time(self):
        cloud = Cloud(vm=[('b', 'migrating', {})] * 100)
        with mock.patch.object(hypervisors, 'MOVES_SECONDS', 0):
            error = self.assertRaises(BoxError, self.compare, cloud, [moved('vm')],
                                      lambda _beats, _uuid: None)
        self.assertIn('Nova has not moved vm to a', str(error))

    def test_one_that_was_not_heard_is_named(self):
        self.assertIn('not heard at all while they were moved: vm', str(self.assertRaises(
            BoxError, self.compare, Cloud(vm=[]), [moved('vm', gap=None)], hear)))

    def test_medians_are_of_the_guests_that_were_moved(self):
        found = self.compare(Cloud(vm=[], other=[]), [moved('vm'), moved('other', gap=0.7)], hear)
        self.assertEqual(0.6, found['median_seconds'])
        self.assertLess(0, found['stock_nova_median_seconds'])

    def test_whatever_goes_wrong_is_reported_in_the_result(self):
        demo = Demo.__new__(Demo)
        demo._screen, demo._pulse = mock.Mock(), mock.Mock()
        demo._pulse.compare.side_effect = ConnectionError('gone')
        self.assertEqual({'not_heard': None, 'not_compared': 'ConnectionError: gone'},
                         demo._compare([]))


def hear(beats, uuid):
    now = time.monotonic()
    beats.setdefault(uuid, []).append(heartbeats.Beat(now, 1, 'b'))
