"""The findings of ``kronos-test-config``, on a real Prometheus, for policies as they were shipped
once: each of these clouds was taken for balanced, or for half as busy as it is."""

import json
import pathlib
import shutil

from tests.functional.metrics import machines
from tests.functional.metrics import recipe_matrix
from tests.functional.metrics import test_propose

OLD = pathlib.Path(__file__).with_name('old_recipes')


class LiveCasesTest(test_propose.ProposeTestCase):
    def check(self, recipe, cloud):
        """({check: (state, detail)}, {(policy, query): finding}) of a recipe on a cloud."""
        self.use(cloud, cloud.server(self))
        shutil.copy(OLD / f'{recipe}.yaml', self.folder / 'policies.yaml')
        found = json.loads(self.run_command('-f', 'json')[1])
        return ({row['check']: (row['state'], row['detail']) for row in found['checks']},
                {(row['policy'], row['kind']): row for row in found['queries']})

    def by_address(self, **given):
        return machines.Machines(test_propose.three(
            name=lambda n: f'{test_propose.NAMES[n]}.example.com',
            nodename=lambda n: test_propose.NAMES[n], instance=lambda n: f'192.0.2.{n + 11}',
            **given), machines.inovex)

    def test_a_scrape_by_two_jobs_that_halves_every_server_is_named(self):
        cloud = machines.Machines(test_propose.three(jobs=2), machines.inovex)
        checks, queries = self.check('cpu-memory', cloud)
        found = queries['cpu', 'vm_profile']
        self.assertEqual('warning', found['state'])
        self.assertIn('node_exporter is scraped by several jobs, and the query counts each: of '
                      'instance-00000001 it has another value with job="node" alone',
                      found['detail'])
        self.assertEqual('failed', queries['memory', 'imbalance']['state'])
        self.assertIn('more than one series', checks['loads'][1])

    def test_a_scrape_at_two_addresses_is_named_where_the_query_counts_both(self):
        cloud = machines.Machines(test_propose.three(
            instance=lambda n: f'{test_propose.NAMES[n]}.mgmt',
            second=lambda n: f'{test_propose.NAMES[n]}.tun'), machines.inovex)
        self.use(cloud, cloud.server(self))
        (self.folder / 'policies.yaml').write_text("""
            policies:
              - name: cpu
                mode: spread
                weight: 1.0
                threshold: 0.15
                imbalance_query: |
                  1 - avg by (host) (label_replace(
                      rate(node_cpu_seconds_total{mode="idle"}[5m]),
                      "host", "$1", "instance", "([^.:]+).*"))
                vm_profile_query: |
                  max by (domain, host) (label_replace(
                      rate(libvirt_domain_info_cpu_time_seconds_total[5m]),
                      "host", "$1", "instance", "([^.:]+).*"))
                    / on (host) group_left ()
                  count by (host) (label_replace(node_cpu_seconds_total{mode="idle"},
                      "host", "$1", "instance", "([^.:]+).*"))
                vm_profile_label: domain
                vm_profile_label_type: name
            """)
        found = json.loads(self.run_command('-f', 'json')[1])
        profile, = (row for row in found['queries'] if row['kind'] == 'vm_profile')
        self.assertEqual('warning', profile['state'])
        self.assertIn('node_exporter is scraped at several addresses, and the query counts each: '
                      r'of instance-00000001 it has another value with instance!~"cmp1\\.tun:9100',
                      profile['detail'])

    def test_exporters_that_name_hosts_differently_are_not_balanced(self):
        """node_exporter by name, libvirt by address: every host has 0 servers."""
        cloud = machines.Machines(test_propose.three(
            labels=lambda n: {'instance': f'{test_propose.NAMES[n]}:9100'},
            instance=lambda n: f'192.0.2.{n + 11}'), machines.inovex)
        for each in cloud.machines:
            each.cpus, each.memory = 16, 64 * machines.GIB
        checks, _queries = self.check('count', cloud)
        state, detail = checks['loads']
        self.assertEqual('failed', state)
        self.assertIn('joins series that name hosts differently', detail)
        problem, = self.propose()[1]['proposal']['problems']
        self.assertIn('libvirt exporter: no label of libvirt_up has the name of a host', problem)

    def test_addresses_get_a_join(self):
        checks, queries = self.check('cpu-memory', self.by_address())
        self.assertEqual('failed', checks['loads'][0])
        for policy in ('cpu', 'memory'):
            self.assertIn('* on (kronos_address) group_left (host)',
                          queries[policy, 'imbalance']['proposal'])

    def test_a_label_that_one_query_drops_is_no_proposal(self):
        """The CPU query aggregates by instance, so fqdn is lost; the join works in all."""
        checks, queries = self.check('cpu-memory', self.by_address(
            labels=lambda n: {'fqdn': f'{test_propose.NAMES[n]}.example.com'},
            libvirt_labels=lambda n: {'fqdn': f'{test_propose.NAMES[n]}.example.com'}))
        self.assertEqual('failed', checks['loads'][0])
        for policy in ('cpu', 'memory'):
            proposal = queries[policy, 'imbalance']['proposal']
            self.assertIn('* on (kronos_address) group_left (host)', proposal)
            self.assertNotIn('host_label', proposal)

    def test_domains_of_another_region_are_named(self):
        """An instance-00000001 in both: without a host label one profile is the other one's."""
        cloud = machines.Machines(recipe_matrix.CONDITIONS['two regions in one Prometheus'](),
                                  machines.inovex, recipe_matrix.FOREIGN[
                                      'two regions in one Prometheus']())
        for each in cloud.everything[len(cloud.machines):]:
            for guest in each.guests:
                guest.cpu *= 1.5
        _checks, queries = self.check('cpu-memory', cloud)
        self.assertEqual('warning', queries['cpu', 'vm_profile']['state'])
        self.assertIn('series of another cloud count: of instance-00000001 it has another value '
                      'with region="one" alone. Add region="one"',
                      queries['cpu', 'vm_profile']['detail'])
        self.assertEqual('ok', queries['cpu', 'imbalance']['state'])
