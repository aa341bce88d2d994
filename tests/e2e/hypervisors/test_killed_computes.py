"""nova-compute is killed in the middle of a copy, and started again."""

from tests.e2e.box.processes import wait_for
from tests.e2e.hypervisors import faulty


class KilledComputesTest(faulty.FaultyTestCase):
    nova_conf = {**faulty.FaultyTestCase.nova_conf,
                 'DEFAULT': {'rpc_response_timeout': 20, 'long_rpc_timeout': 60}}

    def begin(self, **work):
        [uuid] = self.boot(1, 'compute1', **work)
        self.start([faulty.planned(uuid)])
        return uuid

    def kill(self, name):
        self.cloud.nova.computes[name].process.kill()

    def restart(self, name):
        self.cloud.nova.computes[name].start()

    def assert_sound(self, uuid):
        """Wherever it ended, it runs once, as Nova says, and nothing is left elsewhere."""
        self.wait_ended(300)
        wait_for(lambda: self.cloud.client.server(uuid)['OS-EXT-STS:task_state'] is None, 120,
                 lambda: f'it is {self.cloud.client.server(uuid)}')
        host = self.cloud.client.host(uuid)
        print(f'{self.id()}: at {host}')
        self.assert_runs_on(uuid, host)
        return host

    def test_the_source_is_away_when_the_guest_arrives(self):
        uuid = self.begin(memory_mb=32)
        wait_for(lambda: self.is_copying(uuid), 60, 'nothing is copied')
        self.kill('compute1')
        wait_for(lambda: uuid in self.domains()['compute2'], 120, 'it does not arrive')
        self.restart('compute1')
        self.assertEqual('compute2', self.assert_sound(uuid))

    def test_the_source_is_back_while_it_is_copied(self):
        uuid = self.begin(memory_mb=64, dirty_mb_s=2 * faulty.BANDWIDTH_MIB)
        wait_for(lambda: self.is_copying(uuid), 60, 'nothing is copied')
        self.kill('compute1')
        self.restart('compute1')
        self.assertEqual('compute1', self.assert_sound(uuid))

    def test_the_destination_while_it_is_copied(self):
        uuid = self.begin(memory_mb=64)
        wait_for(lambda: self.is_copying(uuid), 60, 'nothing is copied')
        self.kill('compute2')
        self.restart('compute2')
        self.assert_sound(uuid)
