"""A host is lost, and its servers are evacuated through Nova in the order that Masakari has."""

import contextlib
import os
import random

from keystoneauth1 import exceptions

from tests.e2e.box.processes import wait_for
from tests.e2e.executor import test_drain

TIMES = int(os.environ.get('KRONOS_E2E_LOSSES', 20))
"""Losses of which it is said that all servers restart in Nova's own order; hosts are lost one after
the other, each among other servers, until there were as many."""
SIZES = (2048, 4096, 8192, 16384, 24576)
SERVERS = 14
ORDER = "In Nova's order"


class LossTestCase(test_drain.DrainTestCase):
    """Hosts of which servers are evacuated."""

    def setUp(self):
        super().setUp()
        for memory in SIZES:
            self.cloud.client.create_flavor(f'm{memory}', vcpus=1, ram=memory)
            self.addCleanup(self.cloud.client.compute, 'DELETE', f'/flavors/m{memory}')

    def populate(self, chance):
        """Boot servers of random sizes until hosts are rather full, and two that are apart."""
        free = dict.fromkeys(self.hosts, 62000)
        # Of an old group the scheduler remembers where deleted members were.
        group = self.cloud.client.create_server_group('apart', 'anti-affinity')
        uuids = [self.cloud.client.create(self.cloud.image, flavor='m2048', host=host,
                                          group=group) for host in self.hosts[:3]]
        for _number in range(SERVERS):
            memory, host = chance.choice(SIZES), chance.choice(self.hosts)
            if free[host] - 2048 >= memory:
                free[host] -= memory
                uuids.append(self.cloud.client.create(self.cloud.image, flavor=f'm{memory}',
                                                      host=host))
        self.cloud.client.wait_active(uuids, 180)
        return uuids

    def judge(self, host):
        [found] = self.rows('failover', host, codes=(0, 4))
        return found

    def lose(self, host):
        compute = self.cloud.nova.computes[host]
        compute.process.kill()
        self.force_down(host, True)
        return compute

    def force_down(self, host, wanted):
        service = self.cloud.client.services()[host]
        self.cloud.client.compute('PUT', f'/os-services/{service["id"]}',
                                  json={'forced_down': wanted})

    def open(self, host):
        """Wait until nova-compute has cleaned up after the evacuations, before which Nova lets no
        one say that it is up."""
        def is_open():
            with contextlib.suppress(exceptions.BadRequest):
                self.force_down(host, False)
            return self.cloud.client.services()[host]['state'] == 'up'
        wait_for(is_open, 120, 'it does not come back', interval=1.0)

    def evacuate(self, host, named=None):
        """Evacuate one server after the other, the newest first; those that did not restart.

        :param named: uuid of each to its destination; by default Nova's scheduler chooses
        """
        servers = sorted((each for each in self.cloud.client.servers()
                          if each['OS-EXT-SRV-ATTR:host'] == host),
                         key=lambda each: each['created'], reverse=True)
        left = []
        for server in servers:
            self.cloud.client.compute('POST', f'/servers/{server["id"]}/action',
                                      json={'evacuate': {'host': named[server['id']]} if named
                                            else {}})

            def ended(uuid=server['id']):
                states = {each['status'] for each in self.cloud.client.migrations(
                    instance_uuid=uuid, migration_type='evacuation')}
                # Read last: it is where it is once its migration has ended.
                found = self.cloud.client.server(uuid)
                is_over = states <= {'done', 'error', 'failed'} and (
                    states or found['status'] == 'ERROR')
                return is_over and not found['OS-EXT-STS:task_state'] and found
            found = wait_for(ended, 120, 'an evacuation does not end', interval=0.3)
            # From microversion 2.95 on Nova leaves it stopped there.
            if found['OS-EXT-SRV-ATTR:host'] == host or found['status'] not in (
                    'ACTIVE', 'SHUTOFF'):
                left.append((server['id'], found['OS-EXT-SRV-ATTR:host'], found['status'],
                             found.get('fault')))
        return left


class FailoverTest(LossTestCase):
    def test_all_restart_wherever_that_was_said(self):
        chance, promised = random.Random(22), 0
        for number in range(2 * TIMES):
            uuids = self.populate(chance)
            host = self.hosts[number % len(self.hosts)]
            said = self.judge(host)
            compute = self.lose(host)
            left = self.evacuate(host)
            print(f'\nLOSS {number + 1}: {host} with {said["Servers"]} servers, {said["Verdict"]}, '
                  f'in the order of Nova {said[ORDER]}; {len(left)} did not restart',
                  flush=True)
            if said[ORDER] == 'yes':
                promised += 1
                self.assertEqual([], left, said)
            if said['Verdict'] == 'not all restart':
                self.assertNotEqual([], left, said)
            compute.start()
            self.open(host)
            self._delete(uuids)
            self.assert_allocations_exact()
            if promised == TIMES:
                break
        self.assertEqual(TIMES, promised)
