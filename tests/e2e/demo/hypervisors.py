"""The demo on real hypervisors: guests that run, and how they take it to be moved."""

import dataclasses
import math
import statistics
import time

import yaml

from tests.e2e import box
from tests.e2e.box.hypervisors import guests
from tests.e2e.box.hypervisors import heartbeats
from tests.e2e.box.processes import wait_for
from tests.e2e.box.settings import SOURCE
from tests.e2e.box.settings import BoxError
from tests.e2e.demo import evidence
from tests.e2e.demo import scenario

RECIPE = SOURCE / 'etc' / 'kronos' / 'policies' / 'cpu-memory.yaml'
FLAVOR = 'guest'
MEMORY_MB = 128
AFTER_SECONDS = 1.0
"""For so long after its end a move may be to blame that a guest is not heard."""

MOVES_SECONDS = 300
"""For all of a cloud's moves by Nova alone, of which each host begins one at a time."""

ALIVE_SECONDS = 5.0
"""Seconds without a heartbeat after which a guest is dead: it has 20 a second."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Real(scenario.Scenario):
    """Guests that QEMU runs. What a host starts with: the CPUs that each of its guests burns."""

    window_seconds = 20

    @property
    def queries(self):
        return {'cpu': (self._policy['imbalance_query'], self._policy['vm_profile_query'])}

    @property
    def _policy(self):
        """The shipped policy, without its wait of five minutes."""
        recipe = RECIPE.read_text().replace('[5m]', f'[{self.window_seconds}s]')
        return next(each for each in yaml.safe_load(recipe)['policies'] if each['name'] == 'cpu')

    def settings(self, **chosen):
        return box.Settings(computes=sum(map(len, self.racks.values())), kronos=True,
                            alerting=True, driver='libvirt',
                            # Those of a Nova without Kronos share a connection to placement, and
                            # get into each other's way: an instance ends in ERROR by it.
                            conductor_workers=1, **chosen)

    def boot(self, cloud):
        made = guests.Guests(cloud.client)
        cloud.client.create_flavor(FLAVOR, vcpus=1, ram=MEMORY_MB, disk=0)
        number = 0
        for rack, hosts in self.hosts.items():
            for host, shares in zip(hosts, self.racks[rack], strict=True):
                for share in shares:
                    number += 1
                    image = made.image(cpu=share, memory_mb=MEMORY_MB // 4, dirty_mb_s=1)
                    name = f'guest{number}'
                    yield cloud.client.create(image, name, flavor=FLAVOR, host=host), name

    def guests_on(self, cloud):
        """Host -> number of servers."""
        hosts = [server['OS-EXT-SRV-ATTR:host'] for server in cloud.client.servers()]
        return {host: hosts.count(host) for host in cloud.hypervisors.hosts}

    def policies(self, threshold):
        return yaml.safe_dump({'policies': [
            {**self._policy, 'weight': 1.0, 'threshold': threshold,
             'max_migrations_per_cycle': self.budget}]})


SCENARIO = Real(racks={'rack1': ((0.25, 0.2, 0.2, 0.15), (0.1,), ())}, threshold=0.15, budget=4,
                timeout=300.0)
"""Two of these hosts would have room on two processors, beside the services of the cloud."""


class Pulse:
    """Hears the guests of a cloud while it runs; a context manager."""

    def __init__(self, cloud):
        self._cloud, self._begun = cloud, None
        self._heartbeats = heartbeats.Heartbeats(
            {name: host.guests for name, host in cloud.hypervisors.hosts.items()})

    def __enter__(self):
        self._begun = time.monotonic()
        self._heartbeats.start()

    def __exit__(self, *_exc):
        self._heartbeats.stop()

    def wait(self, names, timeout):
        """Until each of these guests was heard.

        :raises BoxError: one was not
        """
        for uuid, name in names.items():
            wait_for(lambda uuid=uuid: self._heartbeats.of(uuid, self._begun), timeout,
                     f'{name} is not heard')

    def guests(self, names):
        """Name -> how it is, and for how long it was not heard at most.

        :param names: uuid -> name
        """
        return {name: self._guest(uuid) for uuid, name in names.items()}

    def _guest(self, uuid):
        now = time.monotonic()
        lately = self._heartbeats.of(uuid, now - ALIVE_SECONDS)
        host, strays = self._cloud.client.host(uuid), self._heartbeats.strays(uuid)
        return {'beats_on': lately[-1].host if lately else None, 'host': host,
                'longest_gap_seconds': self._gap(uuid, self._begun),
                # It ran twice, or lost what it had done.
                'strays': len(strays),
                'alive': bool(lately) and lately[-1].host == host and not strays}

    def of_move(self, move):
        """The cost of a move to the guest, and the bytes that were copied by libvirt's report to
        Nova."""
        if move['requested_at'] is None or move['finished_at'] is None:
            return {}
        started = time.time() - time.monotonic()
        begun, ended = (evidence.unix_time(at) - started
                        for at in (move['requested_at'], move['finished_at']))
        columns = 'memory_total, memory_processed, disk_total, disk_processed'
        rows = self._cloud.database.query(
            'nova_cell1', f'SELECT {columns} FROM migrations WHERE uuid = %s',
            move['migration_uuid'])
        return {'longest_gap_seconds': self._gap(move['instance_uuid'], begun,
                                                 ended + AFTER_SECONDS),
                'copied': rows[0] if rows else None}

    def compare(self, moves):
        """Each guest's last move once more, by Nova alone; and how both compare. Kronos is loaded
        again at the end, also after an error.

        Adds to these moves ``stock_nova_gap_seconds``.

        :returns: medians in seconds, and their ratio; None: no guest was moved
        :raises BoxError: a guest did not arrive, or was not heard on one of both ways
        """
        last = {move['server']: move for move in moves if move['state'] == 'completed'}
        if not last:
            return None
        try:
            self._cloud.load_kronos(False)
            self._move_by_nova({uuid: move['source'] for uuid, move in last.items()})
            times = self._move_by_nova({uuid: move['destination'] for uuid, move in last.items()})
            time.sleep(AFTER_SECONDS)
        finally:
            self._cloud.load_kronos(True)
        # Each over the time of its own move, as those of Kronos: others cost it something, too.
        for uuid, move in last.items():
            begun, ended = times[uuid]
            move['stock_nova_gap_seconds'] = self._gap(uuid, begun, ended + AFTER_SECONDS)
        names = 'longest_gap_seconds', 'stock_nova_gap_seconds'
        silent = [move['name'] for move in last.values() if None in map(move.get, names)]
        if silent:
            raise BoxError(f'not heard at all while they were moved: {", ".join(silent)}')
        ours, stock = (statistics.median(move[name] for move in last.values()) for name in names)
        return {'median_seconds': ours, 'stock_nova_median_seconds': stock,
                'ratio': round(ours / stock, 3)}

    def _move_by_nova(self, hosts):
        """All at once, as Kronos does.

        :param hosts: uuid -> where to
        :returns: uuid -> when it was asked for, and seen there; by time.monotonic()
        :raises BoxError: one did not arrive
        """
        begun, times = {}, {}
        for uuid, host in hosts.items():
            begun[uuid] = time.monotonic()
            self._cloud.client.live_migrate(uuid, host)

        def have_arrived():
            for uuid in hosts.keys() - times.keys():
                if self._has_arrived(uuid, hosts[uuid]):
                    times[uuid] = begun[uuid], time.monotonic()
            return len(times) == len(hosts)
        wait_for(have_arrived, MOVES_SECONDS, lambda: 'Nova has not moved ' + ', '.join(
            f'{uuid} to {host}' for uuid, host in hosts.items() if uuid not in times))
        return times

    def _has_arrived(self, uuid, host):
        """
        :raises BoxError: Nova has given it up
        """
        server = self._cloud.client.server(uuid)
        if server['OS-EXT-STS:task_state']:
            return False
        if server['OS-EXT-SRV-ATTR:host'] == host:
            return True
        why = server.get('fault', {}).get('message', 'it does not say why')
        raise BoxError(f'Nova has not moved {uuid} to {host}: {why}')

    def _gap(self, uuid, *times):
        """None where it was not heard at all."""
        gap = self._heartbeats.longest_gap(uuid, *times)
        return round(gap, 3) if math.isfinite(gap) else None
