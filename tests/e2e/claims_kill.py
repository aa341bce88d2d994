"""nova-compute is killed again and again while servers are booted and moved.

    python -m tests.e2e.claims_kill --kills 100

After every kill the file of claims must open and still have those of the servers that Nova counts
on the host; once nova-compute is back, every instance that Nova counts there must have its claim,
and no claim without an owner may be older than the expiry. Exits with 1 when something is
wrong, and says what.
"""

import argparse
import collections
import contextlib
import datetime
import json
import random
import sqlite3
import sys
import time

from keystoneauth1 import exceptions

from tests.e2e import box
from tests.e2e.box import client
from tests.e2e.box import processes

HOSTS = 3
EXPIRY_SECONDS = 20
CLEANING_SECONDS = 75    # the expiry is looked at every minute at the latest
UPDATE_SECONDS = 5
PAUSE_SECONDS = 3
MIGRATION_SECONDS = 1
SERVERS = 24


class Killing:
    """One box, all of whose hosts are killed in turns, and servers that come, move and go."""

    def __init__(self, cloud, seed):
        self.cloud = cloud
        self.random = random.Random(seed)
        self.problems = []
        self.kills = 0
        self.moving = set()
        self.flavor = cloud.client.create_flavor('victim', vcpus=1, ram=512)

    def rows(self, host):
        """{instance uuid: time of the claim}; reads the file as anybody may."""
        path = self.cloud.nova.computes[host].state_path / 'claim.sqlite'
        with sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5) as connection:
            verdict = connection.execute('PRAGMA integrity_check').fetchone()[0]
            if verdict != 'ok':
                self.problems.append(f'the file of {host} is damaged: {verdict}')
            return {uuid: datetime.datetime.fromisoformat(made) for uuid, made in
                    connection.execute('SELECT instance_uuid, created_at FROM claims')}

    def counted(self, host):
        """Uuids of the instances that Nova says are on a host."""
        return {server['id'] for server in self.cloud.client.servers()
                if server['OS-EXT-SRV-ATTR:host'] == host and server['status'] != 'DELETED'}

    def round(self):
        self.stir()
        hosts = sorted(self.cloud.nova.computes)
        self.random.shuffle(hosts)
        killed = {host: self.kill(host) for host in hosts}
        for host, when in killed.items():
            self.wait_up(host, when)
        for host in hosts:
            self.compare(host)

    def kill(self, host):
        """At any moment; :returns: when it was started again"""
        before = set(self.rows(host))
        time.sleep(self.random.uniform(0, PAUSE_SECONDS))
        victim = self.cloud.nova.computes[host]
        victim.process.kill()
        self.kills += 1
        if lost := before & self.counted(host) - set(self.rows(host)):
            self.problems.append(f'the kill lost the claims on {host} of {sorted(lost)}')
        began = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        victim.start()
        return began

    def stir(self):
        """Boots, moves and deletions, none of them waited for."""
        nova = self.cloud.client
        servers = nova.servers()
        active = [server for server in servers
                  if (server['status'], server['OS-EXT-STS:task_state']) == ('ACTIVE', None)]
        self.random.shuffle(active)
        for server in self.broken(servers) + active[SERVERS:]:
            with contextlib.suppress(exceptions.NotFound):
                nova.delete(server['id'])
        for server in active[:6]:
            elsewhere = sorted({*self.cloud.nova.computes} - {server['OS-EXT-SRV-ATTR:host']})
            with contextlib.suppress(exceptions.ClientException):    # the host may look down
                nova.live_migrate(server['id'], self.random.choice(elsewhere))
        for _number in range(6):
            nova.create(self.cloud.image, flavor=self.flavor)

    def broken(self, servers):
        """Servers in ERROR, and those whose move the last round's kills have left hanging."""
        before, self.moving = self.moving, {
            server['id'] for server in servers
            if server['OS-EXT-STS:task_state'] == 'migrating'}
        return [server for server in servers
                if server['status'] == 'ERROR' or server['id'] in before & self.moving]

    def wait_up(self, host, began):
        """Until a host has said that it is back, after this start."""
        def is_back():
            service = self.cloud.client.services()[host]
            said = service['updated_at']    # None until it has reported once
            return (service['state'] == 'up' and said is not None
                    and datetime.datetime.fromisoformat(said) >= began)
        processes.wait_for(is_back, 180, f'{host} does not come back', interval=1)

    def compare(self, host):
        """Check that no claim that Nova counts is lost, and none without an owner is kept."""
        if lost := self.lasting(lambda: self.counted(host) - set(self.rows(host))):
            self.problems.append(f'no claim on {host} for {sorted(lost)}')
        if orphans := self.lasting(lambda: self.orphans(host)):
            self.problems.append(f'claims without an owner on {host}, older than the expiry: '
                                 f'{sorted(orphans)}')

    def lasting(self, find):
        """Return the findings of ``find`` that remain when the audits had their time."""
        deadline = time.monotonic() + 3 * UPDATE_SECONDS + 15
        while (found := find()) and time.monotonic() < deadline:
            time.sleep(1)
        return found

    def orphans(self, host):
        """Uuids with a claim that has expired, and neither an instance nor a migration here."""
        expired = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=EXPIRY_SECONDS)
        rows = {uuid for uuid, made in self.rows(host).items() if made < expired}
        return rows - self.counted(host) - {
            migration['instance_uuid'] for migration in self.cloud.client.migrations()
            if host in (migration['source_compute'], migration['dest_compute'])
            and migration['status'] not in (*client.MIGRATION_ENDED, 'done')}

    def finish(self):
        """Return when all is quiet and the expiry is over, every claim is old enough to be
        judged."""
        time.sleep(EXPIRY_SECONDS + CLEANING_SECONDS)
        for host in self.cloud.nova.computes:
            self.compare(host)


def main(argv=None):
    parser = argparse.ArgumentParser(prog='python -m tests.e2e.claims_kill', description=__doc__)
    parser.add_argument('--kills', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args(argv)
    settings = box.Settings(
        computes=HOSTS, kronos=True, conductor_workers=1, migration_seconds=MIGRATION_SECONDS,
        nova_conf={'DEFAULT': {'update_resources_interval': UPDATE_SECONDS},
                   'kronos_claims': {'claim_expiry_time': EXPIRY_SECONDS}})
    with box.Cloud(settings, progress=lambda text: print(text, flush=True)) as cloud:
        killing = Killing(cloud, args.seed)
        while killing.kills < args.kills:
            killing.round()
            claims = sum(len(killing.rows(host)) for host in cloud.nova.computes)
            print(f'{killing.kills} kills, {claims} claims, {len(killing.problems)} problems',
                  flush=True)
        killing.finish()
        moves = collections.Counter(each['status'] for each in cloud.client.migrations())
    print(json.dumps({'kills': killing.kills, 'moves': moves, 'problems': killing.problems}))
    return 1 if killing.problems else 0


if __name__ == '__main__':
    sys.exit(main())
