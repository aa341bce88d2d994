"""nova-scheduler heeds the rules of operators where an option enables it."""

import datetime
import pathlib

import fixtures

from kronos_nova import clock
from kronos_nova.db import journal
from kronos_nova.objects import plan as plans
from kronos_nova.plugin import scheduler
from tests.functional import test_loading
from tests.unit.db import fixtures as db_fixtures

POLICIES = """
policies:
- {name: cpu, mode: spread, weight: 1, threshold: 0.1, imbalance_query: a, vm_profile_query: b}
rules:
- {name: racks, servers: {server_group: quorum}, keep_apart: rack}
- {name: large, servers: {flavor: m1.medium}, must_run_on: {hosts: host3}}
- {name: new, servers: {flavor: m1.small}, should_run_on: {hosts: host2}, cost: 1}
"""
FILTERS = ['ComputeFilter', 'ServerGroupAntiAffinityFilter', 'KronosFilter']


class RulesAtBootTest(test_loading.LoadedTestCase):
    hosts = ('host1', 'host2', 'host3')

    def setUp(self):
        self.flags(available_filters=['nova.scheduler.filters.all_filters',
                                      'kronos_nova.plugin.scheduler.KronosFilter'],
                   enabled_filters=FILTERS, group='filter_scheduler')
        self.flags(weight_classes=['kronos_nova.plugin.scheduler.KronosWeigher'],
                   group='filter_scheduler')
        super().setUp()
        for name, hosts in (('r1', ('host1', 'host2')), ('r2', ('host3',))):
            aggregate = self.api.post_aggregate({'aggregate': {'name': name}})
            for host in hosts:
                self.api.add_host_to_aggregate(aggregate['id'], host)
            self.api.post_aggregate_action(aggregate['id'], {'set_metadata': {
                'metadata': {'rack': name}}})
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'policies.yaml'
        self.path.write_text(POLICIES)
        self.addCleanup(scheduler.VIEW.forget)
        self.addCleanup(setattr, scheduler.VIEW, 'rules', scheduler.VIEW.rules)
        self.flags(policies_file=str(self.path), failure_domain_key=['rack'], group='kronos')
        self.flags(heed_rules=True, group='kronos_scheduler')
        self.started['scheduler'].manager.kronos_look(None)
        self.flavors = {each['name']: each['id'] for each in self.api.get_flavors()}

    def where(self, flavor, group=None, state='ACTIVE'):
        """Boot a server and return its host."""
        request = {'server': self._build_server(networks='none', flavor_id=self.flavors[flavor])}
        if group:
            request['os:scheduler_hints'] = {'group': group}
        self.server = self._wait_for_state_change(self.api.post_server(request), state)
        return self.server['OS-EXT-SRV-ATTR:host']

    def test_a_server_is_booted_where_it_must_run(self):
        self.assertEqual('host3', self.where('m1.medium'))

    def test_a_server_is_booted_where_it_should_run(self):
        self.assertEqual(['host2'] * 2, [self.where('m1.small') for _ in range(2)])

    def test_members_of_a_group_are_booted_in_different_racks(self):
        group = self.api.post_server_groups({'name': 'quorum', 'policy': 'anti-affinity'})
        hosts = [self.where('m1.tiny', group['id']) for _ in range(2)]
        self.assertIn('host3', hosts)
        self.assertIsNone(self.where('m1.tiny', group['id'], state='ERROR'))

    def test_a_policies_file_that_is_broken_changes_nothing_else(self):
        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.plugin.scheduler._database', lambda: self.control_database))
        look = self.started['scheduler'].manager.kronos_look
        now = clock.utcnow()
        journal.Journal(self.control_database, 'one').record_plan(
            db_fixtures.report([('vm', 'host2', 'host1')], phase=plans.EVACUATE), plans.EXECUTING,
            now, now + datetime.timedelta(hours=1))
        self.path.write_text(POLICIES[:-20])
        with fixtures.FakeLogger() as log:
            look(None)
        self.assertIn('The rules that were read before, if any, stay in force', log.output)
        self.assertEqual({'host2'}, scheduler.VIEW.emptied)
        self.assertEqual('host3', self.where('m1.medium'))
        self.assertNotEqual('host2', self.where('m1.small'))

    def test_a_server_is_resized_to_where_its_new_flavor_must_run(self):
        # Nova resizes to no server's own host by default.
        self.server = self.boot('host1', flavor_id=self.flavors['m1.tiny'])
        self.api.post_server_action(
            self.server['id'], {'resize': {'flavorRef': self.flavors['m1.medium']}})
        found = self._wait_for_state_change(self.server, 'VERIFY_RESIZE')
        self.assertEqual('host3', found['OS-EXT-SRV-ATTR:host'])

    def test_a_server_is_evacuated_to_where_it_should_run(self):
        server = self.boot('host1', flavor_id=self.flavors['m1.small'])
        self.assertEqual('host2', self.evacuated(server))

    def test_a_member_of_a_group_is_evacuated_within_its_rack(self):
        """Its own host is not that of another member."""
        group = self.api.post_server_groups({'name': 'quorum', 'policy': 'anti-affinity'})
        by_host = {self.where('m1.tiny', group['id']): self.server for _ in range(2)}
        [home] = by_host.keys() - {'host3'}
        [other] = {'host1', 'host2'} - {home}
        self.assertEqual(other, self.evacuated(by_host[home]))

    def evacuated(self, server):
        """Lose the host of a server and evacuate it: its new host."""
        self.computes[server['OS-EXT-SRV-ATTR:host']].stop()
        [service] = self.api.get_services(
            host=server['OS-EXT-SRV-ATTR:host'], binary='nova-compute')
        self.api.put_service_force_down(service['id'], True)
        self.api.post_server_action(server['id'], {'evacuate': {}})
        self._wait_for_migration_status(server, ['done', 'completed'])
        return self._wait_for_server_parameter(server, {
            'OS-EXT-STS:task_state': None})['OS-EXT-SRV-ATTR:host']
