"""Allocations against a placement of its own process on MariaDB, as in life."""

import concurrent.futures
import json
import os
import random
import subprocess
import time
import uuid

import testtools

from kronos_nova.placement import moves
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.client import PlacementClient
from tests.e2e.box.services import Services
from tests.e2e.box.settings import command

WRITERS = 16
SECONDS = float(os.environ.get('KRONOS_WRITERS_SECONDS', 60))
VERSION = {'OpenStack-API-Version': 'placement 1.38'}
SMALL = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}


class ServicesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.services = Services()
        self.services.__enter__()
        self.addCleanup(self.services.__exit__)
        self.client = PlacementClient(self.services.adapter)

    def host(self, number):
        provider = str(uuid.uuid4())
        ask = self.services.adapter
        ask.post('/resource_providers', json={'uuid': provider, 'name': f'host{number}'},
                 headers=VERSION)
        ask.put(f'/resource_providers/{provider}/inventories', headers=VERSION, json={
            'resource_provider_generation': 0,
            'inventories': {name: {'total': 100000} for name in SMALL}})
        return provider

    def give(self, allocations, consumer=None):
        held = self.client.consumer(consumer or str(uuid.uuid4()))
        self.client.post(AllocationSet.from_consumers(Consumer(
            uuid=held.uuid, allocations=allocations, generation=held.generation,
            project_id='a-project', user_id='u', consumer_type=INSTANCE)))
        return held.uuid

    def usage(self, provider, name):
        return self.services.adapter.get(f'/resource_providers/{provider}/usages',
                                         headers=VERSION).json()['usages'][name]


class WritersTest(ServicesTestCase):
    def test_many_writers_lose_nothing(self):
        """Each moves an instance of its own between the same hosts, and takes from one shared
        consumer what it gives to another."""
        hosts = [self.host(number) for number in range(4)]
        shared = [self.give({hosts[0]: {'VCPU': 100}}) for _ in range(WRITERS)]
        own = [self.give({hosts[0]: SMALL}) for _ in range(WRITERS)]
        until = time.monotonic() + SECONDS
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            jobs = [pool.submit(self.write, number, own[number], hosts, shared, until)
                    for number in range(WRITERS)]
            done = [job.result() for job in jobs]

        held = [self.client.consumer(each).allocations[hosts[0]]['VCPU'] for each in shared]
        where = [self.client.consumer(each).allocations for each in own]
        self.assertEqual(100 * WRITERS, sum(held))
        self.assertEqual([[SMALL]] * WRITERS, [list(each.values()) for each in where])
        on_first = sum(hosts[0] in each for each in where)
        self.assertEqual(100 * WRITERS + on_first, self.usage(hosts[0], 'VCPU'))
        self.assertEqual(WRITERS, sum(self.usage(each, 'MEMORY_MB') for each in hosts) // 512)
        print(f'{sum(done)} rounds by {WRITERS} writers in {SECONDS:.0f} s, none lost')

    def write(self, number, instance, hosts, shared, until):
        """Return how many rounds one writer made; what any change raises ends the test."""
        chance, rounds, source = random.Random(number), 0, hosts[0]
        client = PlacementClient(self.services.adapter)
        while time.monotonic() < until:
            destination = chance.choice([each for each in hosts if each != source])
            move = moves.Parties(instance=instance, migration=str(uuid.uuid4()), source=source,
                                 destination=destination, project_id='a-project', user_id='u')
            moves.start(client, move, {destination: SMALL})
            if chance.random() < 0.5:
                # As nova-compute does when a migration has succeeded.
                client.replace((move.migration,), lambda held: AllocationSet.from_consumers(
                    *(each.holding({}) for each in held.values())))
                source = destination
            else:
                moves.revert(client, move, lambda: False)
            client.replace(*_transfer(hosts[0], *chance.sample(shared, 2)))
            rounds += 1
        return rounds


def _transfer(provider, giver, taker):
    def change(held):
        vcpus = {each: held[each].allocations[provider]['VCPU'] for each in (giver, taker)}
        if vcpus[giver] == 1:
            return None
        return AllocationSet.from_consumers(
            held[giver].holding({provider: {'VCPU': vcpus[giver] - 1}}),
            held[taker].holding({provider: {'VCPU': vcpus[taker] + 1}}))

    return (giver, taker), change


class CommandTest(ServicesTestCase):
    """``kronos-manage allocations`` as an operator runs it, exit codes and all."""

    def setUp(self):
        super().setUp()
        self.hosts = [self.host(number) for number in range(2)]
        self.instance = str(uuid.uuid4())
        self.services.record(self.hosts, [(self.instance, 0)])
        self.conf = self.services.nova_conf()
        self.manage('db', 'sync', 'control')

    def manage(self, *arguments, expected=0):
        done = subprocess.run(
            [*command('kronos-nova', 'kronos-manage'), '--config-file', self.conf, *arguments],
            capture_output=True, text=True)
        self.assertEqual(expected, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def rows(self, *arguments, expected=0):
        return json.loads(self.manage('allocations', *arguments, '-f', 'json', expected=expected))

    def test_found_healed_and_undone(self):
        self.give({self.hosts[0]: SMALL, self.hosts[1]: SMALL}, self.instance)
        stranger = self.give({self.hosts[1]: SMALL})

        found = self.rows('audit', expected=3)
        self.assertEqual({(self.instance, 'doubled'), (stranger, 'unknown')},
                         {(each['Instance'], each['Kind']) for each in found})

        [planned] = self.rows('heal', expected=3)
        self.assertEqual('would heal', planned['State'])
        self.assertEqual(2, len(self.client.consumer(self.instance).allocations))

        [healed] = self.rows('heal', '--apply', expected=4)
        self.assertEqual((self.instance, 'healed'), (healed['Instance'], healed['State']))
        self.assertEqual({self.hosts[0]: SMALL}, self.client.consumer(self.instance).allocations)

        self.rows('heal', '--apply', '--unknown')
        self.assertEqual({}, self.client.consumer(stranger).allocations)
        self.assertEqual([], self.rows('audit'))

        self.assertEqual(['healed', 'healed'],
                         [each['State'] for each in self.rows('repairs')])
        self.manage('allocations', 'undo', healed['Repair'])
        self.assertEqual({each: SMALL for each in self.hosts},
                         self.client.consumer(self.instance).allocations)
        self.manage('allocations', 'undo', healed['Repair'], expected=1)

    def test_placement_that_does_not_answer_is_said(self):
        self.services.placement.process.kill()

        self.manage('allocations', 'audit', expected=1)
