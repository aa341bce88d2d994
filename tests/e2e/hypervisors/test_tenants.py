"""Actions of owners on servers that are moved; and a conductor dies meanwhile."""

import os
import signal

from kronos_nova import clock
from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base as executor_base
from tests.e2e.hypervisors import faulty

AWKWARD = '<a href="&amp;">\'"\\ {{ $(x) `y` %s %(z)s ]]> --'
"""Data of a guest, its name too: they are in its XML, in logs and labels."""

SOON = 0.01


class TenantsTest(faulty.FaultyTestCase):
    # A guest that is deleted just when it arrives is Nova's own to find and end, later.
    nova_conf = {**faulty.FaultyTestCase.nova_conf,
                 'DEFAULT': {'max_concurrent_live_migrations': 1,
                             'running_deleted_instance_poll_interval': 10}}

    def assert_abandoned(self, move):
        ended = self.ended(move)
        self.assertEqual((moves.ABANDONED, 'PlanOutdated'), (ended.state, ended.error_type), ended)
        self.assertIn('it was deleted while it was moved', ended.error)
        self.assertNotIn(move.instance_uuid, self.cooldowns.quarantined(clock.utcnow()))

    def assert_gone(self, uuid):
        for name, host in self.hypervisors.items():
            wait_for(lambda host=host: uuid not in host.virsh('list', '--all', '--uuid'), 60,
                     f'{uuid} is at {name}')
            wait_for(lambda name=name: not self.has_files(name, uuid), 60,
                     f'files of {uuid} at {name}')
            wait_for(lambda name=name: uuid not in self.claimed(name), 90,
                     f'claim of {uuid} at {name}')
        self.assert_allocations_exact(120)

    def test_one_is_deleted_in_mid_copy_and_one_that_waits_for_it(self):
        uuids = self.boot(2, 'compute1', **faulty.RESTLESS)
        plan = self.start([faulty.planned(uuid, order) for order, uuid in enumerate(uuids, 1)])
        wait_for(lambda: sorted(self.migration_status(uuid) or '' for uuid in uuids) ==
                 ['queued', 'running'], 60, 'none is queued')
        for uuid in uuids:
            self.cloud.client.delete(uuid)
        for move in self.journal.moves(plan):
            self.assert_abandoned(move)
            self.assert_gone(move.instance_uuid)

    def test_one_is_deleted_when_it_arrives(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=32)
        move = self.move(uuid)
        wait_for(lambda: uuid in self.domains()['compute2'], 120, 'it does not arrive', SOON)
        self.cloud.client.delete(uuid)
        # Nova may call it an error first, or have completed it.
        self.ended(move)
        self.assert_gone(uuid)

    def test_one_ends_by_itself(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        os.kill(self.qemu(self.source, uuid), signal.SIGTERM)
        self.assert_failed(self.ended(move), 'has ended at compute1')
        self.assert_stopped(uuid)

    def test_one_is_given_an_awkward_name_in_mid_copy(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        self.cloud.client.compute('PUT', f'/servers/{uuid}', json={'server': {'name': AWKWARD}})
        self.cloud.client.compute('POST', f'/servers/{uuid}/metadata',
                                  json={'metadata': {'a b': AWKWARD, '.': ''}})
        self.assertEqual(moves.COMPLETED, self.ended(move).state)
        self.assert_runs_on(uuid, 'compute2')
        self.assert_well_done(self.carry_out([
            executor_base.planned(uuid, 'compute2', 'compute1', 1)]))
        self.assert_runs_on(uuid)

    def test_the_conductor_dies_in_mid_copy(self):
        [uuid] = self.boot(1, 'compute1', memory_mb=64)
        move = self.move(uuid)
        [conductor] = self.cloud.nova.conductors
        conductor.process.kill()
        conductor.start()
        self.assertEqual(moves.COMPLETED, self.ended(move).state)
        self.assert_runs_on(uuid, 'compute2')


class TenantsOfASharedFolderTest(TenantsTest):
    storage = 'shared'
