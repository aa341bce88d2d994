"""One host has another clock than all others: a controller, a compute host, the database or
Prometheus, by an hour or a day, from before a plan is made, in the middle of a move, or until the
middle of a move.

The clocks are those of the real processes (``box.shifted_clock``). Prometheus is a program of Go
that asks the kernel without the C library; a proxy shifts the times of its questions and answers.
Each test prints its row of the matrix.
"""

import json
import os
import time
import urllib.parse

import ddt

from kronos_nova import clock
from kronos_nova.objects import move as moves
from tests.e2e.box import shifted_clock
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base
from tests.e2e.executor import proxy
from tests.e2e.executor.test_daemons import POLICIES

OFF = {'a day behind': -86400, 'an hour behind': -3600, 'an hour ahead': 3600,
       'a day ahead': 86400}
WHO = 'controller', 'compute', 'database', 'prometheus'
WHEN = 'from the start', 'from mid-move', 'until mid-move'
HELD_SECONDS = int(os.environ.get('KRONOS_E2E_CLOCK_SECONDS', 25))
"""For how long the clock is wrong. Nova finds services down at once, as it compares dates."""
GRACE_SECONDS = 120
"""Seconds by which a wait may end later than its options say."""
MOVE_SECONDS = 6
INTERVAL, COOLDOWN = 5, 10
SERVERS = 6
SAID = {'controller': 'The clock of this host', 'database': 'The clock of this host',
        'prometheus': 'compare the clocks'}
"""Texts of a conductor's log or of the status. A compute host's clock is no matter for Kronos, nor
for Nova, whose conductors write when a compute host was last seen."""


class ShiftedPrometheus(proxy.Proxy):
    """A Prometheus whose clock is ``ahead`` by so many seconds."""

    ahead = 0

    def path(self, path):
        parts = urllib.parse.urlsplit(path)
        given = urllib.parse.parse_qsl(parts.query)
        return parts._replace(query=urllib.parse.urlencode([
            (name, float(value) - self.ahead if name in ('start', 'end', 'time') else value)
            for name, value in given])).geturl()

    def content(self, content):
        answer = json.loads(content)
        data = answer.get('data')
        if not self.ahead or not isinstance(data, dict) or 'result' not in data:
            return content
        for series in data['result']:
            for point in (*series.get('values', ()), *filter(None, [series.get('value')])):
                point[0] += self.ahead
        return json.dumps(answer).encode()


@ddt.ddt
class ClockMatrixTest(base.ExecutorTestCase):
    computes, conductors, workers = 4, 2, 1
    executor = {'max_retries': 3, 'migration_timeout': 120}
    nova_conf = {'kronos': {'automation': 'auto', 'evaluation_interval': INTERVAL,
                            'cooldown': COOLDOWN}}

    @classmethod
    def setUpClass(cls):
        if shifted_clock.compiler() is None:
            raise cls.skipException(
                'a C compiler is needed to shift the clock of a process: install gcc')
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.prometheus.cleanUp()

    @classmethod
    def prepare(cls, conf):
        policies = cls.cloud.root / 'policies.yaml'
        policies.write_text(POLICIES)
        cls.prometheus = ShiftedPrometheus(cls.cloud.monitoring.url)
        cls.prometheus.setUp()
        conf['kronos'].update(policies_file=policies, coordination_url=cls.cloud.database.url(
            'kronos').replace('mysql+pymysql', 'mysql').partition('?')[0])
        conf['kronos_prometheus'] = {'url': cls.prometheus.url}
        cls.cloud.configure(nova_conf=conf)
        library = shifted_clock.build(cls.cloud.root)
        processes = {'controller': cls.cloud.nova.conductors[0].process,
                     'compute': cls.cloud.nova.computes['compute1'].process,
                     'database': cls.cloud.database.process}
        cls.clocks = {}
        for who, process in processes.items():
            cls.clocks[who] = shifted_clock.ShiftedClock(library, cls.cloud.root / f'clock-{who}')
            process.env.update(cls.clocks[who].environment)

    def setUp(self):
        super().setUp()
        self.orders(default={'seconds': MOVE_SECONDS})
        self.automation('observe')
        for who in WHO:
            self.addCleanup(self.set_clock, who, 0)
        self.addCleanup(self.automation, 'observe')

    def automation(self, level):
        self.cloud.manage('automation', 'set', level)

    def set_clock(self, who, seconds):
        if who == 'prometheus':
            self.prometheus.ahead = seconds
        else:
            self.clocks[who].set(seconds)

    def moves_of(self, servers):
        return [each for each in self.journal.moves(limit=1000) if each.instance_uuid in servers]

    def is_moving(self, servers):
        return any(each.migration_uuid and each.state == moves.MIGRATING
                   for each in self.moves_of(servers))

    def is_spread(self, servers):
        placed = [server['OS-EXT-SRV-ATTR:host'] for server in self.cloud.client.servers()
                  if server['id'] in servers]
        most = max(placed.count(host) for host in self.hosts)
        return most - min(placed.count(host) for host in self.hosts) <= 2 and (
            not self.journal.aggregates_with_open_plans())

    def said(self, who, marks):
        """Return whether the wrong clock was named since then."""
        for daemon, mark in marks.items():
            with daemon.process.log.open(errors='replace') as log:
                log.seek(mark)
                if SAID[who] in log.read():
                    return True
        return SAID[who] in self.cloud.manage('status', '-f', 'json', check=False)

    @ddt.idata((who, off, when) for who in WHO for off in OFF for when in WHEN)
    @ddt.unpack
    def test_no_healthy_move_fails(self, who, off, when):
        # A host without a server has no series, so each has one.
        servers = [uuid for uuid, _host in (*self.boot(len(self.hosts)),
                                            *self.boot(SERVERS, self.hosts[0]))]
        marks = {each: each.process.log.stat().st_size for each in self.cloud.nova.conductors}
        began = time.monotonic()
        if when != 'from mid-move':
            self.set_clock(who, OFF[off])
        if when == 'until mid-move':    # with the clock wrong nothing may begin, then or later
            time.sleep(HELD_SECONDS)
        self.automation('auto')
        begins_within = 30 if when == 'until mid-move' else 90
        if when != 'from the start':
            self.wait_for_a_move(servers, begins_within, is_needed=when == 'from mid-move')
        if when == 'from mid-move':
            self.set_clock(who, OFF[off])
        if when != 'until mid-move':
            time.sleep(HELD_SECONDS)
        is_said = who not in SAID or self.said(who, marks)
        self.set_clock(who, 0)
        right = time.monotonic()
        wait_for(lambda: self.is_spread(servers), COOLDOWN + SERVERS * MOVE_SECONDS + GRACE_SECONDS,
                 lambda: f'load is not spread: {self.moves_of(servers)}', interval=1)
        done = self.moves_of(servers)
        print(f'\nCLOCK {who} {off} {when}: {[each.state for each in done]} '
              f'{[each.error for each in done if each.error]}, '
              f'{"said" if is_said else "not said"}, spread {time.monotonic() - right:.0f} s after '
              f'it was right, {time.monotonic() - began:.0f} s in all', flush=True)
        # A jump of the database's clock makes moves that wait too old; another plan makes them.
        may_end = {moves.COMPLETED, moves.ABANDONED} if who == 'database' else {moves.COMPLETED}
        self.assertEqual(set(), {each.state for each in done} - may_end)
        self.assertEqual(set(), {*servers} & {*self.cooldowns.quarantined(clock.utcnow())})
        self.assert_asked_once_a_try(done)
        self.assert_allocations_exact(GRACE_SECONDS)
        self.assertTrue(is_said)

    def wait_for_a_move(self, servers, seconds, is_needed):
        until = time.monotonic() + seconds
        while not self.is_moving(servers):
            if time.monotonic() > until:
                self.assertFalse(is_needed, 'nothing begins')
                return
            time.sleep(0.3)
