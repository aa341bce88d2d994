"""Every recipe where exporters are named by addresses, as Kolla-Ansible's are: the join that is
proposed gives each query the names of the hosts."""

import ddt

from kronos_nova.metrics import joins
from kronos_nova.objects.metrics import IMBALANCE
from tests.functional.metrics import test_recipes as recipes

NUMBERS = {host: number for number, host in enumerate(recipes.HOSTS, start=11)}


class ExporterByAddress(recipes.Exporter):
    """The exporters of the recipes' hosts, each with an address for its name."""

    def jobs(self, address):
        jobs = super().jobs(address)
        for job in jobs:
            labels = job['static_configs'][0]['labels']
            host, _, port = labels['instance'].partition(':')
            labels.update(instance=f'192.0.2.{NUMBERS[host]}:{port}',
                          fqdn=f'{host}.example.com')
        return jobs


@ddt.ddt
class AddressesTest(recipes.RecipesTestCase):
    guest_series = staticmethod(recipes.inovex)

    @classmethod
    def setUpClass(cls):
        patched = recipes.Exporter
        recipes.Exporter = ExporterByAddress
        try:
            super().setUpClass()
        finally:
            recipes.Exporter = patched

    def named(self, policy, promql, hosts, host_label):
        """The values by host of a query with the join that is proposed for it."""
        promql = promql.replace('[5m]', f'[{recipes.WINDOW}s]')
        join = joins.propose(self.client.instant, promql, self.client.instant(promql), host_label,
                             hosts, 0)
        self.assertIsNotNone(join, policy.name)
        vector = self.client.instant(join.replace('QUERY', f'(\n{promql}\n)', 1))
        values = {sample.labels[host_label]: sample.value for sample in vector.samples}
        self.assertEqual(len(vector.samples), len(values), 'one series each')
        return values

    @ddt.idata((*recipes.EVERYWHERE, recipes.WHERE_WAITING_IS_COUNTED))
    @ddt.unpack
    def test_a_recipe(self, recipe, name, hosts, guests):
        policy = self.policy(recipe, name)
        for promql in filter(None, (policy.imbalance_query, policy.capacity_query)):
            for label, domain in (('host', ''), ('fqdn', '.example.com')):
                names = [f'{host}{domain}' for host in recipes.HOSTS]
                self.assert_soon(lambda *given: self.assertClose(
                    dict(zip(given[2], hosts, strict=True)), self.named(*given)),
                    policy, promql, names, label)

    def test_without_a_join_no_host_is_found(self):
        policy = self.policy('cpu-memory', 'cpu')
        found = self.ask(policy, IMBALANCE, policy.imbalance_query)
        self.assertEqual({f'192.0.2.{number}' for number in NUMBERS.values()}, {*found})
