"""Guests with a set load; real exporters; the recipes; and the scores of Kronos."""

import json
import os
import subprocess
import time

import sqlalchemy as sa

from kronos_nova import clock
from kronos_nova import policies
from kronos_nova.db import models
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.endpoint import Endpoint
from kronos_nova.objects import metrics
from kronos_nova.objects.metrics import MetricQuery
from tests.e2e.box.processes import wait_for
from tests.e2e.box.settings import SOURCE
from tests.e2e.box.settings import command
from tests.e2e.hypervisors import base

RECIPES = SOURCE / 'etc/kronos/policies'
TOLD = {'compute1': (0.5, 0.25), 'compute2': (0.4,)}
"""CPUs that the guests of each host are to burn. Together they leave room on two."""

CPUS = os.cpu_count()
WINDOW = os.environ.get('KRONOS_E2E_WINDOW', '60s')
"""In the place of the recipes' five minutes, so that the test need not last that long."""

GUEST_TOLERANCE, HOST_TOLERANCE = 0.04, 0.1 / CPUS
"""CPUs of a guest, and part of a host: 2 and 5 % of a host of two CPUs. A guest's kernel and QEMU
itself have work of their own; on the host there are also nova-compute, libvirtd and the
exporters."""


def seconds(duration):
    return int(duration[:-1]) * {'s': 1, 'm': 60}[duration[-1]]


class RecipesTest(base.HypervisorTestCase):
    nova_conf = {'kronos': {'automation': 'observe', 'evaluation_interval': 5}}

    @classmethod
    def prepare(cls, conf):
        """The usual recipe, with nothing but its window changed."""
        cls.policies = cls.cloud.root / 'policies.yaml'
        cls.policies.write_text(in_window((RECIPES / 'cpu-memory.yaml').read_text()))
        conf['kronos']['policies_file'] = cls.policies
        cls.cloud.configure(nova_conf=conf)

    def test_scores_are_what_guests_were_set_to_burn(self):
        shares = {}
        for host, wanted in TOLD.items():
            for share in wanted:
                [uuid] = self.boot(1, host, cpu=share, beat_ms=500)
                shares[self.domain(uuid)] = share
        for host in self.hypervisors.values():
            host.share.come_first()
        self.wait_for_a_whole_window(shares)
        self.check_hosts()
        self.check_configuration(len(shares))
        self.check_other_recipes(set(shares))

    def wait_for_a_whole_window(self, shares):
        """Guests burn less than their set load while they wait for a processor: at their start, and
        whenever this machine is too busy."""
        time.sleep(seconds(WINDOW))
        deadline = time.monotonic() + 2 * seconds(WINDOW)
        while True:
            try:
                return self.check_guests(shares)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(5)

    def check_guests(self, shares):
        """Check that a guest's weight is its set load, in CPUs."""
        policy = next(each for each in policies.load(self.policies).active if each.name == 'cpu')
        weights = self.ask(policy.vm_profile_query, policy.vm_profile_label, metrics.VM_PROFILE)
        print(f'guests: set to {shares} CPUs, weights {weights}')
        self.assertEqual(shares.keys(), weights.keys())
        for domain, share in shares.items():
            self.assertAlmostEqual(share, weights[domain], delta=GUEST_TOLERANCE, msg=domain)

    def check_hosts(self):
        """Check that a host's score, as the conductor keeps it, is the set load of its guests."""
        since = clock.utcnow()
        wait_for(lambda: len(self.scores(since)) == len(TOLD), 60, 'there was no cycle')
        scores = self.scores(since)
        print(f'hosts: set to {TOLD} of {CPUS} CPUs, scores {scores}')
        for host, shares in TOLD.items():
            self.assertAlmostEqual(sum(shares) / CPUS, scores[host], delta=HOST_TOLERANCE, msg=host)

    def scores(self, since):
        """{host: score of the policy "cpu"} of cycles after that"""
        with self.database.reader() as session:
            return {row.host: row.value for row in session.scalars(sa.select(models.ScoreRow).where(
                models.ScoreRow.policy == 'cpu', models.ScoreRow.at > since))}

    def check_configuration(self, guests):
        """kronos-test-config finds a series of every host and guest."""
        done = subprocess.run(
            [*command('kronos-nova', 'kronos-test-config'), '--config-file',
             str(self.cloud.nova.conf), '-f', 'json'], capture_output=True, text=True)
        queries = json.loads(done.stdout)['queries']
        self.assertEqual(
            [(policy, kind, 'healthy', matched) for policy in ('cpu', 'memory')
             for kind, matched in (('host_capacity', len(TOLD)), ('imbalance', len(TOLD)),
                                   ('vm_profile', guests))],
            sorted((each['policy'], each['kind'], each['health'], each['matched'])
                   for each in queries), queries)

    def check_other_recipes(self, domains):
        for name in ('count', 'pack-cpu-memory', 'pressure'):
            for policy in policies.parse(in_window((RECIPES / f'{name}.yaml').read_text())).active:
                hosts = self.ask(policy.imbalance_query, policy.host_label, metrics.IMBALANCE)
                self.assertEqual(TOLD.keys(), hosts.keys(), policy.name)
                guests = self.ask(policy.vm_profile_query, policy.vm_profile_label,
                                  metrics.VM_PROFILE)
                self.assertEqual(domains, guests.keys(), policy.name)

    def ask(self, promql, label, kind):
        client = prometheus.PrometheusClient(Endpoint(url=self.cloud.monitoring.url))
        vector = client.query(MetricQuery('test', kind, promql))
        values = {sample.labels[label]: sample.value for sample in vector.samples}
        self.assertEqual(len(vector.samples), len(values), 'one series each')
        return values


def in_window(recipe):
    return recipe.replace('[5m]', f'[{WINDOW}]')
