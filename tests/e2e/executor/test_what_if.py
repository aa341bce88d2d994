"""The load that is said of a cloud as it would be is what is measured once that has happened."""

import random
import re
import time

from tests.e2e.box.processes import wait_for
from tests.e2e.executor import test_failover

MEMORY = """
policies:
- name: memory
  mode: spread
  weight: 1.0
  imbalance_query: 1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes
  vm_profile_query: >-
    libvirt_domain_info_memory_usage_bytes / on (host) group_left node_memory_MemTotal_bytes
  vm_profile_label: uuid
  vm_profile_label_type: uuid
  threshold: 0.05
  max_migrations_per_cycle: 20
"""
"""A load without noise: of two plans that are as good as each other noise chooses one."""
CPU = """
- name: cpu
  mode: spread
  weight: 1.0
  imbalance_query: >-
    sum by (host) (rate(node_cpu_seconds_total{mode="user"}[10s])) / on (host) machine_cpu_cores
  vm_profile_query: >-
    rate(libvirt_domain_info_cpu_time_seconds_total[10s]) / on (host) group_left machine_cpu_cores
  vm_profile_label: uuid
  vm_profile_label_type: uuid
  threshold: 0.05
"""
MEASURES = {
    'cpu': 'sum by (host) (rate(node_cpu_seconds_total{mode="user"}[10s])) / on (host) '
           'machine_cpu_cores',
    'memory': '1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes'}
SETTLED = 20
"""Seconds after which rates of 10 seconds know of nothing earlier."""
POINTS = 0.02
SERVERS = 12
UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f-]{27}')


class WhatIfTestCase(test_failover.LossTestCase):
    policies = MEMORY
    nova_conf = {'kronos': {'automation': 'observe', 'evaluation_interval': 5, 'cooldown': 0,
                            'instance_cooldown': 1, 'server_grace': 0}}

    @classmethod
    def prepare(cls, conf):
        super().prepare(conf)
        (cls.cloud.root / 'policies.yaml').write_text(cls.policies)

    def setUp(self):
        super().setUp()
        self.cloud.client.create_flavor('busy', vcpus=12, ram=8192)
        self.addCleanup(self.cloud.client.compute, 'DELETE', '/flavors/busy')

    def boot_busy(self, hosts):
        """Servers whose load is constant, each of another, on hosts in turn."""
        chance = random.Random(48)
        uuids = [self.cloud.client.create(self.cloud.image, flavor='busy',
                                          host=hosts[number % len(hosts)])
                 for number in range(SERVERS)]
        self.cloud.client.wait_active(uuids, 180)
        self.addCleanup(self._delete, uuids)
        self.cloud.monitoring.set_load({uuid: {
            'cpu': chance.uniform(0.1, 0.9), 'memory': chance.uniform(0.2, 0.9)}
            for uuid in uuids})
        time.sleep(SETTLED)

    def what_if(self, *words):
        return self.rows('room', 'what-if', *words)

    def measured(self):
        return {(policy, labels['host']): value for policy, promql in MEASURES.items()
                for labels, value in self.cloud.monitoring.query(promql)}

    def assert_measured(self, said, hosts):
        """:param hosts: name of each host to how it was called in the question"""
        time.sleep(SETTLED)
        figures = {(each['policy'], each['host']): each for each in said if each['host']}
        measured, wrong = self.measured(), {}
        for policy in {policy for policy, _host in figures}:
            for host, name in hosts.items():
                wanted, found = figures[policy, name], measured[policy, host]
                print(f'{policy} of {host}: said {wanted}, is {found:.4f}', flush=True)
                if abs(wanted['said'] - found) > POINTS:
                    wrong[policy, host] = (wanted, found)
        self.assertEqual({}, wrong)

    def loads(self, column, *words):
        return [{'policy': each['Policy'], 'host': each['Host'], 'said': each[column]}
                for each in self.what_if('--hosts', *words)]


class AddedHostTest(WhatIfTestCase):
    def test_a_host_is_added(self):
        new, *others = reversed(self.hosts)
        aside = self.cloud.client.create_aggregate('aside', [new])
        self.boot_busy(others)
        said = self.loads('Planned', '--add', f'1:like={others[0]}')
        self.assertLess(0.1, max(each['said'] for each in said
                                 if each['host'] == f'{others[0]}+1'))
        self.cloud.client.compute('POST', f'/os-aggregates/{aside}/action',
                                  json={'remove_host': {'host': new}})
        self.cloud.manage('automation', 'set', 'auto')
        self.addCleanup(self.cloud.manage, 'automation', 'set', 'observe')
        wait_for(lambda: self.on(new), 120, 'nothing is moved onto the new host')
        self.wait_ended(180)
        self.cloud.manage('automation', 'set', 'observe')
        self.assert_measured(said, {**{host: host for host in others}, new: f'{others[0]}+1'})


class LostHostTest(WhatIfTestCase):
    policies = MEMORY.replace('weight: 1.0', 'weight: 0.5') + CPU.replace('1.0', '0.5')

    def test_a_host_is_lost(self):
        self.boot_busy(self.hosts)
        lost, *others = self.hosts
        said = self.loads('Changed', '--lose', lost)
        named = {UUID.search(each['Server'])[0]: each['Destination']
                 for each in self.what_if('--lose', lost, '--moves') if each['For'] == 'restart'}
        self.assertEqual(self.on(lost), named.keys())
        compute = self.lose(lost)
        self.assertEqual([], self.evacuate(lost, named))
        for uuid in named:
            self.act(uuid, 'os-start')
        self.cloud.client.wait_active(list(named), 60)
        self.assert_measured(said, {host: host for host in others})
        compute.start()
        self.open(lost)
