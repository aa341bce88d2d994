"""nova-compute is killed again and again while servers are booted and moved.

    python -m tests.e2e.claims_kill --kills 100

After every kill the file of claims must open, every instance that Nova counts on the host must have
its claim once nova-compute is back, and no claim that belongs to nobody may be older than the
expiry. Exits with 1 when something is wrong, and says what.
"""

import argparse
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

VICTIM = 'compute1'
EXPIRY_SECONDS = 20
CLEANING_SECONDS = 75    # the expiry is looked at every minute at the latest
UPDATE_SECONDS = 5


class Killing:
    """One box, one victim among its hosts, servers that come, move and go."""

    def __init__(self, cloud, seed):
        self.cloud = cloud
        self.random = random.Random(seed)
        self.file = cloud.nova.computes[VICTIM].state_path / 'claim.sqlite'
        self.problems = []
        self.servers = set()
        self.flavor = cloud.client.create_flavor('victim', vcpus=1, ram=512)

    def rows(self):
        """{instance uuid: time of the claim}; reads the file as anybody may."""
        with sqlite3.connect(f'file:{self.file}?mode=ro', uri=True, timeout=5) as connection:
            verdict = connection.execute('PRAGMA integrity_check').fetchone()[0]
            if verdict != 'ok':
                self.problems.append(f'the file is damaged: {verdict}')
            return {uuid: datetime.datetime.fromisoformat(made) for uuid, made in
                    connection.execute('SELECT instance_uuid, created_at FROM claims')}

    def counted(self):
        """Uuids of the instances that Nova says are on the victim."""
        return {server['id'] for server in self.cloud.client.servers()
                if server['OS-EXT-SRV-ATTR:host'] == VICTIM and
                server['status'] not in ('SHELVED_OFFLOADED', 'DELETED')}

    def round(self):
        self.stir()
        time.sleep(self.random.uniform(0, 3))
        victim = self.cloud.nova.computes[VICTIM]
        victim.process.kill()
        self.rows()
        victim.start()
        self.wait_up()
        self.compare()

    def stir(self):
        """Boots, moves to and from the victim, and deletions, none of them waited for."""
        nova = self.cloud.client
        alive = {server['id']: server for server in nova.servers()}
        self.servers &= set(alive)
        idle = [uuid for uuid in self.servers if alive[uuid]['OS-EXT-STS:task_state'] is None]
        for uuid in [uuid for uuid in idle if alive[uuid]['status'] == 'ERROR'] + idle[8:]:
            with contextlib.suppress(exceptions.NotFound):
                nova.delete(uuid)
            self.servers.discard(uuid)
        for _number in range(3):
            self.servers.add(nova.create(self.cloud.image, flavor=self.flavor))
        active = [uuid for uuid in idle if alive[uuid]['status'] == 'ACTIVE'
                  and uuid in self.servers]
        for uuid in active[:2]:
            at_home = alive[uuid]['OS-EXT-SRV-ATTR:host'] == VICTIM
            with contextlib.suppress(exceptions.ClientException):    # the host may look down
                nova.live_migrate(uuid, 'compute2' if at_home else VICTIM)

    def wait_up(self):
        """Until the victim has said that it is back, after this start."""
        began = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)

        def is_back():
            service = self.cloud.client.services()[VICTIM]
            said = datetime.datetime.fromisoformat(service['updated_at'])
            return service['state'] == 'up' and said >= began
        processes.wait_for(is_back, 180, f'{VICTIM} does not come back', interval=1)

    def compare(self):
        """No claim lost that Nova counts: given two audits to find what was under way."""
        def missing():
            return self.counted() - set(self.rows())
        deadline = time.monotonic() + 3 * UPDATE_SECONDS + 15
        while missing() and time.monotonic() < deadline:
            time.sleep(1)
        if lost := missing():
            self.problems.append(f'no claim for {sorted(lost)}')

    def finish(self):
        """When all is quiet and the expiry is over, only claims of instances are left."""
        time.sleep(EXPIRY_SECONDS + CLEANING_SECONDS)
        known = self.counted() | {
            migration['instance_uuid'] for migration in self.cloud.client.migrations()
            if VICTIM in (migration['source_compute'], migration['dest_compute'])
            and migration['status'] not in (*client.MIGRATION_ENDED, 'done')}
        orphans = set(self.rows()) - known
        if orphans:
            self.problems.append(f'claims of nobody, older than the expiry: {sorted(orphans)}')


def main(argv=None):
    parser = argparse.ArgumentParser(prog='python -m tests.e2e.claims_kill', description=__doc__)
    parser.add_argument('--kills', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args(argv)
    settings = box.Settings(computes=2, kronos=True, conductor_workers=1, nova_conf={
        'DEFAULT': {'update_resources_interval': UPDATE_SECONDS},
        'kronos_claims': {'claim_expiry_time': EXPIRY_SECONDS}})
    with box.Cloud(settings, progress=lambda text: print(text, flush=True)) as cloud:
        killing = Killing(cloud, args.seed)
        for number in range(1, args.kills + 1):
            killing.round()
            print(f'{number} kills, {len(killing.rows())} claims, '
                  f'{len(killing.problems)} problems', flush=True)
        killing.finish()
    print(json.dumps({'kills': args.kills, 'problems': killing.problems}))
    return 1 if killing.problems else 0


if __name__ == '__main__':
    sys.exit(main())
