"""``kill -9`` at every boundary of a live migration, in a real cloud.

``KRONOS_KILL_POINTS`` limits how many points are tried.
"""

import itertools
import os
import sys
import time

import testtools

from tests.e2e import box
from tests.e2e.box import mortal
from tests.e2e.box.nova import Daemon
from tests.e2e.box.processes import wait_for

LIMIT = int(os.environ.get('KRONOS_KILL_POINTS', 1000))
CONVERGES_WITHIN = 180
FAILS = 'fail'


def points():
    """[(service, dotted path, moment, how the guest fares)]"""
    for service, paths in mortal.POINTS.items():
        for path, moment in itertools.product(paths, ('before', 'after')):
            if (path, moment) == (paths[0], 'before') and service == 'conductor':
                # Nothing was written down yet: only who asked for the migration can notice.
                continue
            returns = path.endswith(('_rollback_live_migration', '_revert_allocation'))
            yield service, path, moment, FAILS if returns else 'complete'


class KillTest(testtools.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cloud = box.Cloud(box.Settings(
            computes=2, kronos=True, migration_seconds=1.0, vcpus=64, nova_conf={
                'kronos': {'automation': 'off'},
                'kronos_allocations': {'reconcile_interval': 2, 'grace': 5, 'task_timeout': 5}}))
        cls.order = cls.cloud.root / 'death'
        os.environ['KRONOS_BOX_DEATH'] = str(cls.order)
        nova = cls.cloud.nova
        nova.conductors = [cls.mortal(each.name, 'conductor', nova.conf)
                           for each in nova.conductors]
        nova.computes = {name: cls.mortal(name, 'compute', nova.compute_conf)
                         for name in nova.computes}
        try:
            cls.cloud.start()
            cls.cloud.client.create_flavor('m1.small', vcpus=1, ram=64)
        except BaseException:
            cls.cloud.stop()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cloud.stop()
        super().tearDownClass()

    @classmethod
    def mortal(cls, name, service, conf):
        return Daemon(name, [sys.executable, '-m', 'tests.e2e.box.mortal', service],
                      cls.cloud.root, conf)

    def test_every_boundary(self):
        failed = []
        for service, path, moment, outcome in itertools.islice(points(), LIMIT):
            verdict = self.verdict(service, path, moment, outcome)
            print(f'{verdict:6} {service} killed {moment} {path.split(".", 2)[-1]}', flush=True)
            if verdict != 'ok':
                failed.append((path, moment, verdict))
        self.assertEqual([], failed)

    def verdict(self, service, path, moment, outcome):
        [server] = self.cloud.boot(f'{path.split(".")[-1]}-{moment}', host='compute1')
        self.cloud.nova.set_faults({'default': {'seconds': 1.0, 'outcome': outcome}})
        self.order.write_text(f'{path} {moment}')
        self.cloud.client.live_migrate(server, 'compute2')
        wait_for(lambda: not self.order.exists(), 120, f'no process reached {path}')
        source = self.cloud.nova.computes['compute1']
        if service == 'compute':
            wait_for(lambda: not source.process.alive(), 30, 'compute1 lives')
            source.start()
        until = time.monotonic() + CONVERGES_WITHIN
        while time.monotonic() < until:
            problem = self.problem(server)
            if problem is None:
                break
            time.sleep(1)
        self.cloud.wait_hosts()
        return problem or 'ok'

    def problem(self, server):
        """Return the difference from one allocation where it runs and none of a migration."""
        ask = self.cloud.client
        host = ask.host(server)
        held, _kind = ask.allocations(server)
        if list(held) != [host]:
            return f'on {host}, holds {held}'
        uuids = [each['uuid'] for each in ask.migrations(instance_uuid=server)]
        leaked = [held for held, _kind in map(ask.allocations, uuids) if held]
        if leaked:
            return f'migrations hold {leaked}'
        # One that ended or was given up: what it holds will not change any more.
        return None if self.is_over(server) else 'the migration is not over'

    def is_over(self, server):
        if self.cloud.client.server(server)['OS-EXT-STS:task_state'] is None:
            return True
        # Nova never ends the record of a queued migration whose source died.
        made = self.cloud.client.migrations(instance_uuid=server)
        newest = max(made, key=lambda m: m['id'], default={'status': None})
        return newest['status'] in ('completed', 'error', 'failed')
