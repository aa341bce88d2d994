"""The cost of loading the plugin: two clouds at once, one with and one without, taking turns."""

import collections
import concurrent.futures
import statistics
import time
from typing import Any

from bench import report

TOLERANCE = 1.05
SETTLE = 10.0
KINDS = ('boot', 'live migration')
WITH, WITHOUT = 'with', 'without'


def register(subparsers):
    parser = subparsers.add_parser(
        'overhead', help='boots and live migrations with and without the plugin, side by side')
    parser.add_argument('--repeat', type=int, default=20, help='operations of each kind (20)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from tests.e2e import box
    plugin = {'kronos': {'automation': 'off', 'atomic_moves': 'all'}}
    common: dict[str, Any] = {'computes': 2, 'migration_seconds': 0.0, 'conductor_workers': 1}
    clouds = {WITHOUT: box.Cloud(box.Settings(**common)),
              WITH: box.Cloud(box.Settings(**common, kronos=True, nova_conf=plugin))}
    with clouds[WITHOUT], clouds[WITH]:
        benches = {name: Side(cloud) for name, cloud in clouds.items()}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            idle = dict(zip(benches, pool.map(Side.idle_statements, benches.values()),
                            strict=True))
        for number in range(args.repeat):
            for side in benches.values():
                side.operate(f'server{number}')
    rows = [_row(kind, name, benches[name], idle[name]) for kind in KINDS for name in benches]
    columns = ('operation', 'plugin', 'n', 'median s', 'p90 s', 'placement requests',
               'of them writes', 'database statements')
    return report.Report(
        tables=(report.Table('one operation', columns, rows),),
        failures=tuple(_failures(benches)),
        notes=('Two clouds run at once and take turns, an operation each. A live migration '
               'copies nothing. Statements are those of an operation less what '
               'the idle cloud sends in the same time; means.',))


class Side:
    """One of the two clouds, with what was measured on it."""

    def __init__(self, cloud):
        self.cloud = cloud
        self.seconds = collections.defaultdict(list)
        self.statements = collections.defaultdict(list)
        self.requests = collections.defaultdict(list)
        self.writes = collections.defaultdict(list)
        cloud.client.poll_seconds = 0.05
        cloud.client.create_flavor('m1.small', 1, 512)
        # The first of everything opens connections and fills caches.
        self._migrate(self._boot('warm-up'))

    def idle_statements(self):
        """Return the database statements per second of a cloud in which nothing is to be done."""
        time.sleep(SETTLE)
        before = self.cloud.database.statements()
        time.sleep(2 * SETTLE)
        return (self.cloud.database.statements() - before) / (2 * SETTLE)

    def operate(self, name):
        server = self._measure('boot', self._boot, name)
        self._measure('live migration', self._migrate, server)

    def _measure(self, kind, work, argument):
        placement, database = self.cloud.placement, self.cloud.database
        _entries, offset = placement.requests_since()
        statements, begun = database.statements(), time.monotonic()
        result = work(argument)
        self.seconds[kind].append(time.monotonic() - begun)
        self.statements[kind].append(database.statements() - statements)
        entries, _offset = placement.requests_since(offset)
        mine = [entry for entry in entries if '/allocation' in entry['path']]
        self.requests[kind].append(len(mine))
        self.writes[kind].append(sum(entry['method'] != 'GET' for entry in mine))
        return result

    def _boot(self, name):
        [server] = self.cloud.boot(name, host='compute1')
        return server

    def _migrate(self, server):
        client = self.cloud.client
        client.live_migrate(server, 'compute2')
        ended = client.migration_ended(server)
        if ended['status'] != 'completed':
            raise RuntimeError(f'the live migration of {server} ended as {ended["status"]}')


def _row(kind, name, side, idle):
    seconds = side.seconds[kind]
    statements = [count - idle * took
                  for count, took in zip(side.statements[kind], seconds, strict=True)]
    return (kind, name, len(seconds), statistics.median(seconds),
            statistics.quantiles(seconds, n=10)[8], statistics.mean(side.requests[kind]),
            statistics.mean(side.writes[kind]), statistics.mean(statements))


def _failures(sides):
    for kind in KINDS:
        medians = {name: statistics.median(side.seconds[kind]) for name, side in sides.items()}
        quotient = medians[WITH] / medians[WITHOUT]
        if quotient > TOLERANCE:
            yield (f'{kind}: the median with the plugin is {quotient:.2f} times that without, '
                   f'target {TOLERANCE:.2f}')
