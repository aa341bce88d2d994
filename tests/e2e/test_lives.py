"""The lives of plans and drains, as an operator meets them on a cloud of real services."""

import datetime
import json
import pathlib
import subprocess
import sys
import time

import fixtures
import requests
import testtools

from kronos_nova.objects import plan as plans
from tests.e2e import box
from tests.e2e.box import auth
from tests.e2e.box import processes
from tests.e2e.box.settings import SOURCE
from tests.e2e.box.settings import command

INTERVAL = 15
THRESHOLD = 0.1
POLICIES = f"""policies:
  - name: memory
    mode: spread
    weight: 1.0
    threshold: {THRESHOLD}
    imbalance_query: 1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes
    vm_profile_query: |
      libvirt_domain_info_memory_usage_bytes
        / on (host) group_left () node_memory_MemTotal_bytes
"""
SHARE = 0.125
"""The part of a host that a server of the flavor has."""
QUERIES = 'prometheus_http_requests_total{code="200",handler="/api/v1/query"}'


class LifeTestCase(testtools.TestCase):
    """A cloud of one aggregate ``rack``, at the level ``automation``."""

    computes, automation, kronos, executor = 3, 'approve', {}, {}

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        policies = self.folder / 'policies.yaml'
        policies.write_text(POLICIES)
        self.cloud = box.Cloud(box.Settings(
            computes=self.computes, kronos=True, migration_seconds=1.0, nova_conf={
                'kronos': {'policies_file': policies, 'aggregates': 'rack',
                           'evaluation_interval': INTERVAL, 'automation': self.automation,
                           'cooldown': 0, 'restraint': 0, **self.kronos},
                'kronos_executor': {'poll_interval': 0.5, **self.executor}}))
        self.addCleanup(self.cloud.stop)
        self.cloud.start()
        self.cloud.client.create_flavor('m1.small', vcpus=1,
                                        ram=int(SHARE * self.cloud.settings.memory_mb))

    def populate(self, **loads):
        """Boot servers, host=(load of each), and create the aggregate. The uuids by host.

        A cycle reads the servers of an aggregate after the aggregate. The aggregate is created when
        all servers are ACTIVE and have metrics, so every plan, the first one too, is for all of
        them.
        """
        names = {host: [f'{host}-{number}' for number in range(len(of_host))]
                 for host, of_host in loads.items()}
        self.load({name: load for host, of_host in loads.items()
                   for name, load in zip(names[host], of_host, strict=True)})
        found = {host: self.cloud.boot(*names[host], host=host) for host in names}
        self.cloud.monitoring.wait_series('libvirt_domain_info_memory_usage_bytes',
                                          sum(map(len, names.values())))
        self.cloud.client.create_aggregate('rack', self.cloud.settings.hosts())
        return found

    def load(self, memory):
        self.cloud.monitoring.set_load(
            {name: {'cpu': 0.1, 'memory': share} for name, share in memory.items()})

    def run_manage(self, *arguments, timeout=300):
        """(exit code, what was printed) of a command."""
        done = subprocess.run(
            [*command('kronos-nova', 'kronos-manage'), '--config-file', str(self.cloud.nova.conf),
             *arguments], env=self.environment, capture_output=True, text=True, timeout=timeout)
        print(done.stderr, file=sys.stderr)
        return done.returncode, done.stdout

    @property
    def environment(self):
        return {'PYTHONPATH': str(SOURCE), 'PATH': '/usr/bin:/bin', 'HOME': str(self.folder)}

    def rack(self):
        status = json.loads(self.cloud.manage('status', '-f', 'json', check=False))
        [row] = [row for row in status['aggregates'] if row['name'] == 'rack']
        return row

    def imbalance(self):
        """The imbalance that Prometheus reports by now."""
        found = self.cloud.monitoring.query(
            '1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes')
        values = [value for _labels, value in found]
        return max(values) - min(values)

    def plan(self, uuid):
        return json.loads(self.cloud.manage('plan', 'show', uuid, '-f', 'json'))

    def newest(self, state, *, after=None, timeout=8 * INTERVAL):
        """Wait for a plan in a state, other than the one with the uuid ``after``."""
        def found():
            listed = json.loads(self.cloud.manage('plan', 'list', '-f', 'json'))
            return [each['UUID'] for each in listed
                    if each['State'] == state and each['UUID'] != after][:1]
        [uuid] = processes.wait_for(
            found, timeout, lambda: f'no plan is {state}: {self.cloud.manage("plan", "list")}',
            interval=0.5)
        return uuid

    def ended(self, uuid, timeout=120):
        processes.wait_for(lambda: self.plan(uuid)['state'] not in plans.OPEN, timeout,
                           lambda: f'the plan does not end: {self.plan(uuid)}', interval=0.5)
        return self.plan(uuid)


class SupersededTest(LifeTestCase):
    def test_a_proposal_gives_way_when_a_drained_host_comes_back_empty(self):
        self.populate(compute1=[.95] * 4, compute2=[.4] * 4, compute3=[.3, .3])
        self.assertEqual(0, self.run_manage('host', 'drain', 'compute3', '--wait')[0])
        # By now the two others are planned for: what was proposed before had a third host.
        old = self.proposed_without('compute3')
        self.assertEqual(0, self.run_manage('host', 'release', 'compute3')[0])
        begun = time.monotonic()
        processes.wait_for(lambda: self.plan(old)['state'] == plans.SUPERSEDED, 3 * INTERVAL,
                           lambda: f'the old plan stays: {self.plan(old)}', interval=0.5)
        self.assertLessEqual(time.monotonic() - begun, INTERVAL + 5)
        self.assertIn('it would end at a combined imbalance of', self.plan(old)['left_out'])
        new = self.newest(plans.PROPOSED, after=old)
        self.assertIn('compute3', {move['destination'] for move in self.plan(new)['moves']})
        self.assertEqual(0, self.run_manage('plan', 'approve', new)[0])
        self.assertEqual(plans.DONE, self.ended(new)['state'])
        processes.wait_for(lambda: self.imbalance() <= THRESHOLD, 4 * INTERVAL,
                           lambda: f'the imbalance is {self.imbalance()}', interval=1)

    def proposed_without(self, host):
        """The uuid of a plan that waits and has no move to or from a host."""
        def found():
            listed = json.loads(self.cloud.manage('plan', 'list', '-f', 'json'))
            for each in listed:
                if each['State'] == plans.PROPOSED:
                    hosts = {name for move in self.plan(each['UUID'])['moves']
                             for name in (move['source'], move['destination'])}
                    return host not in hosts and each['UUID']
        return processes.wait_for(found, 8 * INTERVAL, lambda: self.cloud.manage('plan', 'list'),
                                  interval=0.5)


class CutTest(LifeTestCase):
    """Moves go one after the other, so that a plan can be cut between two."""

    computes = 4
    executor = {'max_concurrent_migrations': 1}

    def test_a_plan_that_is_cut_or_approved_in_part_leaves_nothing_worse(self):
        self.populate(compute1=[.9] * 4, compute2=[.9] * 4, compute3=[.2], compute4=[.2])
        for first in (True, False):
            uuid = self.newest(plans.PROPOSED)
            found, before = self.plan(uuid), self.imbalance()
            self.assertEqual(10, self.servers_in(found))
            self.assertGreater(before, THRESHOLD)
            self.explain_groups(found)
            if first:
                self.assertGreater(len(found['moves']), 1)
                self.run_manage('plan', 'approve', uuid)
                self.cut(uuid)
            else:
                self.assertEqual(0, self.run_manage(
                    'plan', 'approve', uuid, *self.first_that_help(found))[0])
                ended = self.ended(uuid)
                self.assertEqual(plans.DONE, ended['state'], ended)
            time.sleep(3)    # until Prometheus has seen it
            self.assertLessEqual(self.imbalance(), before + 1e-3)

    def servers_in(self, found):
        """The number of servers that a plan moves or has a reason not to move."""
        return len(found['moves']) + sum(each['count'] for each in found['not_moved'])

    def first_that_help(self, found):
        """Options that approve as few moves from the beginning as lower the imbalance. Of two moves
        that lower it only together, one alone would not be worth its copy."""
        before = found['policies'][0]['imbalance_before']
        last = next(move['order'] for move in found['moves']
                    if move['combined_after'] < before - 1e-6)
        return [part for order in range(1, last + 1) for part in ('--only', str(order))]

    def explain_groups(self, found):
        """Every move says what it is for, and each prefix outside a group is no worse."""
        groups, [policy] = {}, found['policies']
        for move in found['moves']:
            if move['group'] is None:
                self.assertNotIn('helps only together', move['reason'])
            else:
                groups.setdefault(move['group'], []).append(move)
                self.assertIn('helps only together with move', move['reason'])
        for number, move in enumerate(found['moves'], 1):
            inside = any(each['order'] > number for each in groups.get(move['group'], ()))
            if not inside:
                self.assertLessEqual(move['combined_after'], policy['imbalance_before'] + 1e-6)

    def cut(self, uuid):
        """Stop a plan once its first move has ended; resume when all is quiet."""
        def first_ended():
            plan = self.rack()['plan']
            return plan and plan['states'].get('completed')
        processes.wait_for(first_ended, 60, lambda: f'no move ended: {self.plan(uuid)}',
                           interval=0.2)
        self.assertEqual(0, self.run_manage('stop', '--let-finish')[0])
        self.ended(uuid)
        self.assertEqual(0, self.run_manage('resume')[0])


class QueriesTest(LifeTestCase):
    """One evaluation an interval, and its queries counted by Prometheus itself."""

    computes = 2
    kronos = {'evaluation_interval': 2 * INTERVAL}

    def asked(self):
        for line in requests.get(f'{self.cloud.monitoring.url}/metrics', timeout=10).iter_lines():
            name, _space, value = line.decode().rpartition(' ')
            if name == QUERIES:
                return int(float(value))
        return 0

    def evaluated(self):
        """(when the last evaluation ended, queries until now), at rest."""
        return self.rack()['evaluated_at'], self.asked()

    def next_evaluation(self, known):
        def found():
            now = self.evaluated()
            return now[0] != known[0] and now
        found = processes.wait_for(found, 4 * INTERVAL, 'nothing is evaluated', interval=0.2)
        return found[0], found[1] - known[1]

    def test_an_approved_plan_costs_no_query_of_its_own(self):
        self.populate(compute1=[.9] * 4, compute2=[.1])
        uuid = self.newest(plans.PROPOSED)
        _at, usual = self.next_evaluation(self.evaluated())
        known = self.evaluated()
        self.assertEqual(0, self.run_manage('plan', 'approve', uuid)[0])
        _at, checked = self.next_evaluation(known)
        self.assertEqual((2, 2), (usual, checked))
        self.assertEqual(plans.DONE, self.ended(uuid)['state'])


class WaitingDrainTest(LifeTestCase):
    computes, automation = 3, 'off'

    def test_a_drain_names_the_migration_that_it_waits_for(self):
        servers = self.populate(compute1=[.3], compute2=[.3])
        [here], [there] = servers['compute1'], servers['compute2']
        self.cloud.nova.set_faults({'default': {'seconds': 1.0},
                                    'instances': {there: {'outcome': 'hang'}}})
        self.cloud.client.live_migrate(there, 'compute1')
        self.cloud.client.migration(there, ('running',))
        code, said = self.run_manage('host', 'drain', 'compute1')
        self.assertEqual(0, code, said)
        expected = f"the end of Nova's migration of server {there} from compute2 to compute1"
        processes.wait_for(lambda: expected in self.drain('compute1')['waits_for'], 60,
                           lambda: f'it is not named: {self.drain("compute1")}', interval=0.5)
        self.cloud.nova.set_faults({'default': {'seconds': 1.0}})
        self.assertEqual(0, self.run_manage('host', 'status', '--wait', 'compute1')[0])
        self.assertEqual('', self.drain('compute1')['waits_for'])
        self.assertNotIn('compute1', {self.cloud.client.host(each) for each in (here, there)})

    def drain(self, host):
        _code, said = self.run_manage('host', 'status', '-f', 'json', host)
        [found] = json.loads(said)
        return found['drain']


class MaintenanceTest(LifeTestCase):
    computes, automation = 8, 'auto'
    kronos = {'restraint': 1}

    def test_a_rack_is_filled_again_after_its_maintenance(self):
        self.populate(**{f'compute{n}': [.3, .6] for n in range(1, 9)})
        command_line = [*command('kronos-nova', 'kronos-manage'), '--config-file',
                        str(self.cloud.nova.conf), 'maintenance', 'run', '--aggregate', 'rack',
                        '--batch', '2', '--hook', 'sleep 2']
        runner = subprocess.Popen(command_line, env=self.environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(runner.stdout.close)
        self.addCleanup(runner.kill)
        shown = processes.wait_for(self.half_way, 300, lambda: self.show(), interval=1)
        self.assertRegex(shown, r'[1-7] of 8 hosts serviced, running until about ')
        said, _nothing = runner.communicate(timeout=600)
        released = datetime.datetime.now(datetime.UTC)
        self.assertEqual(0, runner.returncode, said)

        def is_settled():
            row = self.rack()
            # An evaluation that was made after the last release, and the one after that.
            is_new = row['evaluated_at'] and datetime.datetime.fromisoformat(
                row['evaluated_at']) > released
            return is_new and (self.imbalance() <= THRESHOLD or (
                row['reason'] if row['outcome'] != plans.PLANNED else ''))
        settled = processes.wait_for(is_settled, 2 * INTERVAL + 10, lambda: f'{self.rack()}',
                                     interval=1)
        print('settled:', settled, self.imbalance(), file=sys.stderr)

    def show(self):
        return self.run_manage('maintenance', 'show')[1]

    def half_way(self):
        said = self.show()
        return 'until about' in said and said


class ReplayTest(LifeTestCase):
    """The recording has the options in force, restraint among them."""

    computes, automation = 3, 'observe'
    kronos = {'restraint': 1}

    def test_a_recording_is_planned_with_the_restraint_of_the_installation(self):
        self.populate(compute1=[.9, .7, .5, .3, .2], compute2=[.3], compute3=[.2])
        snapshot = self.folder / 'snapshot'

        def is_lasting():
            found = self.plan(self.newest(plans.OBSERVED))
            return found['times_made'] >= 3 and found
        planned = processes.wait_for(is_lasting, 16 * INTERVAL, self.cloud.manage, interval=2)
        self.record(snapshot)
        as_it_was, said = self.replay(snapshot)
        self.assertTrue(said.startswith('Options as recorded, with restraint 1.'), said)
        keys = ('instance_uuid', 'source', 'destination')
        self.assertEqual([[move[key] for key in keys] for move in planned['moves']],
                         [[move[key] for key in keys] for move in as_it_was['moves']])

    def record(self, folder):
        conf = self.folder / 'api.conf'
        conf.write_text(
            f'[kronos_nova]\nauth_type = admin_token\ntoken = {auth.TOKEN}\n'
            f'endpoint = {self.cloud.nova_api.url}\n'
            f'endpoint_override = {self.cloud.nova_api.url}/v2.1\n'
            f'placement_endpoint_override = {self.cloud.placement.url}\n')
        subprocess.run([*command('kronos-nova', 'kronos-record'), str(folder), '--config-file',
                        str(self.cloud.nova.conf), '--config-file', str(conf)],
                       env=self.environment, check=True, timeout=120)

    def replay(self, folder):
        """(the report of the rack, the text for people)"""
        replayed = [*command('kronos-nova', 'kronos-replay'), str(folder)]
        found = json.loads(subprocess.check_output([*replayed, '-f', 'json'], timeout=120,
                                                   env=self.environment))
        said = subprocess.check_output(replayed, text=True, timeout=120, env=self.environment)
        return found['aggregates'][0], said
