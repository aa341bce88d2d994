"""Hosts are emptied at an operator's word, whatever is on them and whatever dies."""

import json
import os
import re
import subprocess
import threading
import time

import fixtures
from testtools import content

from kronos_nova.db.drains import Drains
from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.box.settings import PYTHONPATH
from tests.e2e.box.settings import command
from tests.e2e.executor import base
from tests.e2e.executor.test_daemons import POLICIES

EMPTY, NOT_YET, BLOCKED = 0, 3, 4
MOVE_SECONDS = 10


def seconds(text):
    """Seconds of a duration such as ``2 min 38 s``."""
    words = text.split()
    return sum(int(number) * {'h': 3600, 'min': 60, 's': 1}[unit]
               for number, unit in zip(words[::2], words[1::2], strict=True))


class DrainTestCase(base.ExecutorTestCase):
    computes, conductors, workers = 4, 2, 2
    nova_conf = {'kronos': {'automation': 'observe', 'evaluation_interval': 3600}}

    @classmethod
    def prepare(cls, conf):
        policies = cls.cloud.root / 'policies.yaml'
        policies.write_text(POLICIES)
        conf['kronos'].update(policies_file=policies, coordination_url=cls.cloud.database.url(
            'kronos').replace('mysql+pymysql', 'mysql').partition('?')[0])
        cls.cloud.configure(nova_conf=conf)

    def run_manage(self, *words):
        """(exit code, what it said)"""
        done = self._manage(words)
        return done.returncode, done.stdout + done.stderr

    def rows(self, *words, codes=(EMPTY,)):
        """The rows of a command that ends with one of the exit codes. Sentences for people are on
        standard error."""
        done = self._manage([*words, '-f', 'json'])
        self.assertIn(done.returncode, codes, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def _manage(self, words):
        return subprocess.run(
            [*command('kronos-nova', 'kronos-manage'), '--config-file',
             str(self.cloud.nova.conf), *words], capture_output=True, text=True,
            # The code of this source, as that of all services of the box.
            env={**os.environ, 'PYTHONPATH': PYTHONPATH})

    def act(self, uuid, action):
        self.cloud.client.compute('POST', f'/servers/{uuid}/action', json={action: None})

    def stop_server(self, uuid):
        self.act(uuid, 'os-stop')
        wait_for(lambda: self.cloud.client.server(uuid)['status'] == 'SHUTOFF', 60,
                 'it does not stop')

    def on(self, host):
        return {server['id'] for server in self.cloud.client.servers()
                if server['OS-EXT-SRV-ATTR:host'] == host}

    def audit(self):
        self.assert_allocations_exact()
        self.cloud.manage('allocations', 'audit', '--grace', '0')  # fails where it finds anything


class DrainTest(DrainTestCase):
    def server_like(self, host='compute1', **what):
        uuid = self.cloud.client.create(self.cloud.image, host=host, **what)
        self.cloud.client.wait_active([uuid], 60)
        self.addCleanup(self._delete, [uuid])
        return uuid

    def observe_some_moves(self):
        """Have the journal know how long moves take here."""
        servers = self.boot(4)
        self.cloud.manage('automation', 'set', 'auto')
        self.addCleanup(self.cloud.manage, 'automation', 'set', 'observe')
        self.carry_out(self.round_robin(servers))
        self._delete([uuid for uuid, _host in servers])

    def test_everything_leaves_but_what_cannot_and_that_is_named(self):
        self.orders(default={'seconds': MOVE_SECONDS})
        self.observe_some_moves()
        self.cloud.client.create_flavor('pinned', vcpus=1, ram=64,
                                        extra_specs={'kronos:move': 'never'})
        group = self.cloud.client.create_server_group('apart', 'anti-affinity')
        running = [uuid for uuid, _host in self.boot(6, 'compute1')]
        [(stopped, _host)] = self.boot(1, 'compute1')
        self.stop_server(stopped)
        [(locked, _host)] = self.boot(1, 'compute1')
        self.act(locked, 'lock')
        twins = [self.server_like(host, group=group) for host in self.hosts]
        pinned = self.server_like(flavor='pinned')

        code, said = self.run_manage('host', 'drain', 'compute1', '--check')
        self.assertEqual(BLOCKED, code, said)
        self.assertEqual({stopped, twins[0], pinned},
                         {*re.findall(r'blocked: .*\((.{36})\)', said)}, said)
        code, said = self.run_manage('host', 'drain', 'compute1', '--check', '--with-stopped')
        self.assertEqual({twins[0], pinned}, {*re.findall(r'blocked: .*\((.{36})\)', said)}, said)
        self.assertEqual('enabled', self.cloud.client.services()['compute1']['status'])

        code, said = self.run_manage('host', 'drain', 'compute1', '--with-stopped', '--wait',
                                     '--reason', 'new disks')
        self.assertEqual(BLOCKED, code, said)
        drain = Drains(self.database).latest('compute1')
        took = max(move.finished_at for move in self.journal.moves(limit=1000)
                   if move.source == 'compute1' and move.requested_at
                   and move.requested_at > drain.requested_at) - drain.requested_at
        expected = seconds(re.search(r'Expected: about (.*)\.', said)[1])
        self.addDetail('said', content.text_content(f'{said}\ntook {took}'))
        self.assertLess(abs(took.total_seconds() - expected), 0.25 * expected,
                        f'{expected} s were expected, it took {took}')
        self.assertEqual({twins[0], pinned}, self.on('compute1'))
        self.assertIn('new disks', self.cloud.client.services()['compute1']['disabled_reason'])
        self.assertEqual('SHUTOFF', self.cloud.client.server(stopped)['status'])
        self.assertEqual({'ACTIVE'}, {self.cloud.client.server(uuid)['status']
                                      for uuid in [*running, locked]})
        code, said = self.run_manage('host', 'status', 'compute1')
        self.assertEqual(BLOCKED, code)
        self.assertIn('server group', said)
        self._delete([twins[0], pinned])
        self.assertEqual(EMPTY, self.run_manage('host', 'status', 'compute1', '--wait')[0])
        wait_for(lambda: 'empty' in self.run_manage('host', 'status', 'compute1')[1], 60,
                 'the host is not reported as empty')
        self.assertEqual(EMPTY, self.run_manage('host', 'release', 'compute1')[0])
        self.assertEqual('enabled', self.cloud.client.services()['compute1']['status'])
        self.audit()

    def test_servers_of_other_hosts_make_room(self):
        """Each of the other hosts has room for the large server once its own server has left."""
        self.orders(default={'seconds': 2})
        for name, ram in (('large', 40000), ('medium', 30000)):
            self.cloud.client.create_flavor(name, vcpus=1, ram=ram)
        large = self.server_like(flavor='large')
        others = [self.server_like(host, flavor='medium') for host in self.hosts[1:]]
        code, said = self.run_manage('host', 'drain', 'compute1', '--wait')
        self.assertEqual(EMPTY, code, said)
        self.assertEqual(set(), self.on('compute1'))
        [host] = [host for host in self.hosts if large in self.on(host)]
        self.assertEqual({large}, self.on(host))
        self.assertEqual(1, sum(move.only_makes_room for move in self.journal.moves(limit=1000)
                                if move.instance_uuid in others))
        self.assertEqual(EMPTY, self.run_manage('host', 'release', 'compute1')[0])
        self.audit()

    def test_the_check_names_what_every_other_host_lacks(self):
        self.add_trait('compute1', 'CUSTOM_LICENCE')
        self.cloud.client.create_flavor('licensed', vcpus=1, ram=64, extra_specs={
            'trait:CUSTOM_LICENCE': 'required'})
        licensed = self.server_like(flavor='licensed')
        [(other, _host)] = self.boot(1, 'compute1')
        code, said = self.run_manage('host', 'drain', 'compute1', '--check')
        self.assertEqual(BLOCKED, code, said)
        self.assertIn('2 servers, 1 can leave', said)
        self.assertRegex(said, rf'blocked: .*{licensed}.*: no other host can hold it: compute2 '
                               'lacks the trait CUSTOM_LICENCE')
        self.assertNotIn(other, said)
        self.assertNotIn('deprecated', said)

    def add_trait(self, host, trait):
        client = self.cloud.client
        client.placement('PUT', f'/traits/{trait}')
        [uuid] = [uuid for uuid, name in client.providers().items() if name == host]
        path = f'/resource_providers/{uuid}/traits'
        known = client.placement('GET', path)
        client.placement('PUT', path, json={**known, 'traits': [*known['traits'], trait]})

    def test_it_goes_on_when_everything_is_killed_in_the_middle(self):
        self.orders(default={'seconds': 4})
        servers = [uuid for uuid, _host in self.boot(8, 'compute1')]
        self.assertEqual(0, self.run_manage('host', 'drain', 'compute1')[0])
        wait_for(lambda: any(move.state == moves.COMPLETED for move in self.journal.moves()
                             if move.instance_uuid in servers), 180, 'nothing moves')
        for conductor in self.cloud.nova.conductors:
            conductor.process.kill()
        time.sleep(3)
        for conductor in self.cloud.nova.conductors:
            conductor.start()
        wait_for(lambda: not self.on('compute1'), 300,
                 lambda: f'left: {len(self.on("compute1"))}', interval=1)
        for uuid in servers:
            done = [each['status'] for each in self.cloud.client.migrations(instance_uuid=uuid)]
            self.assertEqual(1, done.count('completed'), done)
        wait_for(lambda: self.run_manage('host', 'status', 'compute1')[0] == EMPTY, 60,
                 'it is not empty')
        self.assertEqual(EMPTY, self.run_manage('host', 'release', 'compute1')[0])
        self.audit()


class Capacity(fixtures.Fixture):
    """Samples the allocations of every host; ``exceeded`` and ``most`` (of the
    memory of a host, as a fraction) are the results."""

    def __init__(self, client):
        self.exceeded, self.most = [], 0.0
        self._client = client
        self._ended = threading.Event()

    def _setUp(self):
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 30)
        self.addCleanup(self._ended.set)

    def _watch(self):
        rooms = {uuid: self._rooms(uuid) for uuid in self._client.providers()}
        while not self._ended.wait(1):
            for uuid, room in rooms.items():
                used = self._client.placement(
                    'GET', f'/resource_providers/{uuid}/usages')['usages']
                self.most = max(self.most, used['MEMORY_MB'] / room['MEMORY_MB'])
                self.exceeded += [(uuid, name, amount) for name, amount in used.items()
                                  if amount > room[name]]

    def _rooms(self, uuid):
        found = self._client.placement('GET', f'/resource_providers/{uuid}/inventories')
        return {name: (each['total'] - each['reserved']) * each['allocation_ratio']
                for name, each in found['inventories'].items()}


class MaintenanceTest(DrainTestCase):
    computes = 8
    on_a_host = 4
    """So many servers have room there, three are there: there is little to spare."""

    def boot_large(self):
        self.cloud.client.create_flavor('large', vcpus=1, ram=65024 // self.on_a_host)
        uuids = [self.cloud.client.create(self.cloud.image, host=host, flavor='large')
                 for host in self.hosts for _number in range(self.on_a_host - 1)]
        self.cloud.client.wait_active(uuids, 300)
        self.addCleanup(self._delete, uuids)
        return uuids

    def test_every_host_is_emptied_once_and_no_server_moves_more_than_it_must(self):
        self.orders(default={'seconds': 1})
        servers = self.boot_large()
        done = self.cloud.root / 'serviced'
        hook = (f'echo "$KRONOS_HOST" >> {done}')
        with Capacity(self.cloud.client) as capacity:
            code, said = self.run_manage('maintenance', 'run', *self.hosts, '--hook', hook)
        self.addDetail('said', content.text_content(said))
        self.assertEqual(0, code, said)
        self.assertEqual([], capacity.exceeded)
        self.assertLess(0.9, capacity.most)
        self.assertEqual(sorted(self.hosts), sorted(done.read_text().split()))
        self.assertEqual({'enabled'}, {each['status']
                                       for each in self.cloud.client.services().values()})
        ended = [move for move in self.journal.moves(limit=1000)
                 if move.instance_uuid in servers]
        self.assertEqual({moves.COMPLETED}, {move.state for move in ended}, said)
        # Every server once, and those of the first host, which has nowhere final to go, twice.
        lowest = len(servers) + len(servers) // len(self.hosts)
        self.assertLessEqual(len(ended), 1.2 * lowest)
        self.audit()
