"""``kronos-test-config`` against a cloud's API, a Prometheus and a database."""

import argparse
import contextlib
import datetime
import io
import json
import pathlib
import re
import socket
import socketserver
import ssl
import threading
from unittest import mock

import ddt
import fixtures

from kronos_nova import clock
from kronos_nova.cmd import database as databases
from kronos_nova.cmd import manage
from kronos_nova.cmd import roles
from kronos_nova.cmd import test_config
from kronos_nova.conf import kronos as kronos_options
from kronos_nova.db import cycles
from kronos_nova.objects import plan as plans
from tests.unit.cmd import configured
from tests.unit.fakes_web_server import WebServer
from tests.unit.fakes_web_server import say
from tests.unit.fakes_web_server import self_signed


@ddt.ddt
class TestConfigTest(configured.ConfiguredTestCase):
    def run_command(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = test_config.main(['--config-file', self.conf, *args])
        return status, out.getvalue(), err.getvalue()

    def report(self):
        status, out, _ = self.run_command('-f', 'json')
        found = json.loads(out)
        states = {row['check']: (row['state'], row['detail']) for row in found['checks']}
        return status, states, {row['kind']: row for row in found['queries']}

    def test_all_is_well_but_for_a_broker_that_cannot_be_checked(self):
        status, checks, queries = self.report()
        self.assertEqual(3, status)
        self.assertEqual({'api': 'not checked', 'broker': 'warning', 'claims': 'not checked',
                          'plugin': 'not checked'}, {
            name: state for name, (state, _) in checks.items() if state != 'ok'})
        self.assertEqual(['api', 'broker', 'buffers', 'claims', 'database', 'exporters', 'loads',
                          'names', 'noise', 'nova', 'options', 'placement', 'plugin', 'policies',
                          'prometheus', 'rules', 'scope', 'typos', 'windows'],
                         sorted(checks))
        self.assertIn('3 hosts with QEMU/KVM, 3 of them available, 2 instances',
                      checks['nova'][1])
        self.assertEqual(('ok', 'healthy', 3, 3), tuple(
            queries['imbalance'][key] for key in ('state', 'health', 'matched', 'expected')))
        self.assertEqual(('ok', 2, 2), tuple(
            queries['vm_profile'][key] for key in ('state', 'matched', 'expected')))

    @ddt.data('debug = maybe', 'use_journal = perhaps')
    def test_an_invalid_option_of_another_library_is_an_invalid_configuration(self, line):
        (self.folder / 'nova.conf').write_text(f'[DEFAULT]\n{line}\n')
        status, out, err = self.run_command()
        self.assertEqual((2, ''), (status, out))
        self.assertIn(line.partition(' ')[0], err)

    @ddt.data('[DEFAULT] rpc_response_timeout = abc', '[DEFAULT] executor_thread_pool_size = abc',
              '[DEFAULT] log_rotate_interval = abc', '[DEFAULT] default_log_levels = nova=LOUD',
              '[DEFAULT] log_config_append = /nonexistent/logging.conf',
              '[oslo_messaging_rabbit] heartbeat_rate = abc',
              '[oslo_messaging_notifications] retry = abc',
              '[oslo_messaging_metrics] metrics_enabled = abc',
              '[kronos_database] max_pool_size = abc', '[kronos_nova] timeout = abc',
              '[keystone_authtoken] http_connect_timeout = abc',
              '[oslo_policy] remote_timeout = abc')
    def test_an_option_that_kronos_has_of_another_library_is_checked(self, text):
        group, _, line = text.partition(' ')
        written = pathlib.Path(self.conf).read_text()
        if group == '[oslo_policy]':
            written += '[kronos_api]\nport = 8780\n'
        if group not in written:
            written += f'{group}\n'
        pathlib.Path(self.conf).write_text(written.replace(group, f'{group}\n{line}', 1))
        status, checks, _ = self.report()
        state, detail = checks['options']
        self.assertEqual((1, 'failed'), (status, state))
        self.assertIn(f'{group} {line.partition(" ")[0]}: ', detail)

    def test_options_of_what_is_not_used_are_not_checked(self):
        with open(self.conf, 'a') as file:
            file.write('[oslo_messaging_kafka]\nmax_poll_records = abc\n'
                       '[oslo_policy]\nremote_timeout = abc\n')
        self.assertEqual('ok', self.report()[1]['options'][0])

    @ddt.data(('DEFAULT', 'rabbit://u:p@host:port/', 'port'),
              ('DEFAULT', 'rabbit://u:se/cret@host/', 'port'),
              ('DEFAULT', '//host:5672/', 'scheme'), ('DEFAULT', 'nosuch://host', 'driver'),
              ('oslo_messaging_notifications', 'rabbit://u:p@host:port/', 'port'),
              ('oslo_messaging_notifications', 'rabbit:', 'names no host'))
    @ddt.unpack
    def test_an_address_of_the_broker_that_the_services_cannot_use_is_named(self, group, url,
                                                                           said):
        if group == 'DEFAULT':
            self.transport_url = url
            self.write()
        else:
            conf = pathlib.Path(self.conf)
            conf.write_text(conf.read_text().replace(
                f'[{group}]', f'[{group}]\ntransport_url = {url}'))
        state, detail = self.report()[1]['broker']
        self.assertEqual('failed', state)
        self.assertIn(f'[{group}] transport_url: ', detail)
        self.assertIn(said, detail)
        self.assertNotIn("'se'", detail)

    def test_rules_are_listed_with_what_they_select_and_what_violates_them(self):
        self.cloud.aggregates[0]['metadata'] |= {'rack': 'r1'}
        self.cloud.servers[0]['tags'] = ['db']
        self.cloud.servers[1]['tags'] = ['db']
        self.kronos += '\nfailure_domain_key = rack'
        self.write()
        path = self.folder / 'policies.yaml'
        path.write_text(path.read_text() + 'rules:\n'
                        '- {name: alone, servers: {tag: db}, keep_apart: rack}\n'
                        '- {name: there, servers: {tag: db}, must_run_on: {hosts: cmp1}}\n')
        _status, checks, _queries = self.report()
        self.assertEqual(('ok', '2 rules, 2 of them violated'), checks['rules'])
        path.write_text(path.read_text() + '- {name: none, servers: {tag: x}, never_move: true}\n')
        _status, out, _err = self.run_command('-f', 'json')
        rows = {row['rule']: row for row in json.loads(out)['rules']}
        self.assertEqual(
            {'rule': 'there', 'relation': 'must_run_on', 'servers': 2, 'yields': True, 'hosts': 1,
             'violated': 1, 'example': 'web2', 'conflicts': []}, rows['there'])
        self.assertEqual((2, None, 1), tuple(
            rows['alone'][key] for key in ('servers', 'hosts', 'violated')))
        self.assertEqual(('warning', 'none: it selects no server'), self.report()[1]['rules'])
        self.assertIn('it selects no server', self.run_command()[1])

    def test_a_buffer_of_an_aggregate_that_is_not_looked_after_is_named(self):
        path = self.folder / 'policies.yaml'
        path.write_text(path.read_text() + 'buffers:\n'
                        '- {name: huge, aggregate: nowhere, flavor: "1:512", keep: 1}\n')
        state, detail = self.report()[1]['buffers']
        self.assertEqual('warning', state)
        self.assertIn('buffer huge: Kronos does not look after aggregate nowhere', detail)

    def test_a_buffer_of_a_flavor_that_nova_has_not_is_named(self):
        path = self.folder / 'policies.yaml'
        before = path.read_text()

        def check(flavor):
            path.write_text(before + 'buffers:\n- {name: huge, aggregate: gpu, '
                            f'flavor: {flavor}, keep: 1}}\n')
            return self.report()[1]['buffers']
        self.assertEqual(('ok', '1 buffer'), check('m1.medium'))
        self.assertEqual(
            ('warning', 'buffer huge: Nova has no flavor m1.none; nothing is kept'),
            check('m1.none'))

    def test_a_host_of_two_racks_is_named(self):
        self.cloud.aggregates[0]['metadata'] |= {'rack': 'r1'}
        self.cloud.aggregates.append({**self.cloud.aggregates[0], 'name': 'other', 'uuid': 'ag2',
                                      'metadata': {'rack': 'r2'}, 'hosts': ['cmp1']})
        self.kronos += '\nfailure_domain_key = rack'
        self.write()
        self.assertEqual(('warning', 'cmp1 is in rack r1 and r2'), self.report()[1]['rules'])

    def api_check(self, text):
        """(state, detail) of the check of the API, with some text at the end of nova.conf."""
        with open(self.conf, 'a') as file:
            file.write(text)
        return self.report()[1]['api']

    def test_an_api_that_can_ask_no_keystone_is_reported_with_the_remedy(self):
        state, detail = self.api_check('')
        self.assertEqual('not checked', state)
        self.assertIn('Set auth_type, auth_url', detail)
        state, detail = self.api_check('[kronos_api]\nport = 9790\n')
        self.assertEqual('failed', state)
        self.assertIn('[keystone_authtoken]: has no address of keystone or no user', detail)
        self.assertIn('Set auth_type, auth_url', detail)

    def keystone_check(self, address):
        return self.api_check(
            f'[keystone_authtoken]\nauth_type = password\nauth_url = {address}\n'
            'username = nova\npassword = p\nproject_name = service\n'
            'user_domain_name = Default\nproject_domain_name = Default\n')

    def test_an_api_whose_keystone_does_not_answer_is_reported(self):
        with socket.socket() as taken:
            taken.bind(('127.0.0.1', 0))
            address = f'http://127.0.0.1:{taken.getsockname()[1]}/v3'
            state, detail = self.keystone_check(address)
        self.assertEqual('failed', state)
        self.assertIn(f'{address} does not answer', detail)

    @ddt.data((401, 'refuses the user', 'Set auth_type'), (404, 'does not answer', 'address'),
              (500, 'does not answer', 'address'), (503, 'does not answer', 'address'))
    @ddt.unpack
    def test_a_fault_of_keystone_is_no_fault_of_its_user(self, status, said, remedy):
        def answer(handler):
            say(status if handler.command == 'POST' else 404)(handler)

        address = f'{self.useFixture(WebServer(answer)).url}/v3'
        state, detail = self.keystone_check(address)
        self.assertEqual(('failed', True, True), (state, said in detail, remedy in detail), detail)

    def test_an_api_without_its_folder_or_with_a_wrong_policy_file_is_reported(self):
        state, detail = self.api_check('[kronos_api]\nsnapshots_path = /nowhere/at/all\n')
        self.assertEqual(('failed', True), (state, 'snapshots_path' in detail))
        (self.folder / 'policy.yaml').write_text('')
        state, detail = self.api_check(f'policy_file = {self.folder}/policy.yaml\n')
        self.assertEqual(('failed', True), (state, 'is empty' in detail))

    def test_a_host_whose_exporter_is_silent_is_named(self):
        self.cloud.aggregates[0]['hosts'] = ['cmp1', 'cmp2', 'cmp3']
        self.cloud.servers += [configured.server(3, 'cmp1'), configured.server(4, 'cmp1')]
        self.series['weight'] += [({'uuid': self.cloud.servers[2]['id']}, 0.1)]
        state, detail = self.report()[1]['loads']
        self.assertEqual('warning', state)
        self.assertIn('cmp1 is not believed: monitoring knows 2 of the 3 servers', detail)

    def test_a_join_that_makes_all_hosts_empty_has_failed(self):
        self.series['load'] = [({'host': f'cmp{n}'}, 0.0) for n in (1, 2, 3)]
        state, detail = self.report()[1]['loads']
        self.assertEqual('failed', state)
        self.assertIn('its score is 0 although its servers use 0.1', detail)

    def test_what_a_forecast_asks_is_asked_too(self):
        file = self.folder / 'policies.yaml'
        file.write_text(configured.POLICIES.replace(
            'weight}', 'weight, forecast: {history_query: hours, vm_query: expected}}'))
        self.series['hours'] = self.series['weight'][:1]
        _status, _checks, queries = self.report()
        self.assertEqual(('warning', 'partial', 1, 2), tuple(
            queries['history'][key] for key in ('state', 'health', 'matched', 'expected')))
        self.assertEqual(('failed', 'unreachable'), tuple(
            queries['forecast'][key] for key in ('state', 'health')))

    @ddt.data(('imbalance', 'load', 'imbalance_query'),
              ('vm_profile', 'weight', 'vm_profile_query'),
              ('history', 'past', 'forecast.history_query'),
              ('forecast', 'ahead', 'forecast.vm_query'), ('link', 'link', 'migration.link_query'))
    @ddt.unpack
    def test_wrong_promql_is_reported_with_its_key(self, kind, name, key):
        (self.folder / 'policies.yaml').write_text(configured.POLICIES.replace(
            'weight}', 'weight, forecast: {history_query: past, vm_query: ahead}}')
            + 'migration: {link_query: link}\n')
        self.series |= {'past': self.series['weight'], 'ahead': self.series['weight'],
                        'link': [({'host': f'cmp{n}'}, 1e9) for n in (1, 2, 3)]}
        self.assertNotIn(f'{key}: ', self.report()[2][kind]['detail'])
        self.series[name] = configured.REFUSED
        self.assertIn(f'{key}: status 400', self.report()[2][kind]['detail'])
        self.cloud.refuse['/compute/v2.1/os-services'] = (500, {})
        self.assertIn(f'{key}: status 400', self.report()[2][kind]['detail'])

    def test_a_history_that_is_made_of_a_wrong_profile_names_the_profile(self):
        (self.folder / 'policies.yaml').write_text(
            configured.POLICIES.replace('weight}', 'weight, forecast: {}}'))
        self.series['avg_over_time'] = configured.REFUSED
        self.assertIn('vm_profile_query: status 400', self.report()[2]['history']['detail'])

    def test_tables_for_people(self):
        _, out, _ = self.run_command()
        self.assertIn('vm_profile', out)
        self.assertIn('3 of 3', out)

    def policies(self):
        _status, out, _err = self.run_command('-f', 'json')
        return {row['policy']: row for row in json.loads(out)['policies']}

    def test_a_row_of_each_policy_shows_hosts_beside_their_servers(self):
        self.series['load'] = [({'host': f'cmp{n}'}, 0.25 * n) for n in (1, 2, 3)]
        self.series['weight'] = [({'uuid': s['id']}, 0.25) for s in self.cloud.servers]
        self.series['weight'].append(({**self.series['weight'][0][0], 'from': 'cmp3'}, 0.125))
        row = self.policies()['cpu']
        # Of a server with two series of one host neither counts: it is not moved.
        self.assertEqual(([3, 3], [2, 2], 0.5, 0.25 / 3, 1), tuple(
            row[key] for key in ('hosts', 'instances', 'load', 'instances_load', 'duplicates')))
        self.assertEqual(('cmp3', 0.75, 0.0), tuple(row[f'farthest_{key}'] for key in (
            'host', 'load', 'instances_load')))
        self.assertLess(row['age'], 60.0)
        out = self.run_command()[1]
        self.assertIn('cmp3: 75%, of servers 0%', ' '.join(out.split()))

    def test_the_load_of_another_clouds_hosts_does_not_count(self):
        self.series['load'] = [({'host': f'cmp{n}'}, 0.25 * n) for n in (1, 2, 3)] + [
            ({'host': f'other{n}'}, 1.0) for n in range(9)]
        row = self.policies()['cpu']
        self.assertEqual(([3, 3], 0.5), (row['hosts'], row['load']))

    def test_figures_that_are_no_numbers_are_null(self):
        path = self.folder / 'policies.yaml'
        path.write_text(configured.POLICIES.replace(
            'weight}', 'weight, host_capacity_query: cores}'))
        for value in ('+Inf', 'NaN', '-Inf'):
            for name in ('load', 'weight', 'cores'):
                with self.subTest(value, name=name):
                    known, self.series[name] = self.series.get(name), [
                        ({'host': f'cmp{n}', 'uuid': s['id']}, value)
                        for n, s in enumerate(self.cloud.servers, start=1)]
                    json.loads(self.run_command('-f', 'json')[1], parse_constant=self.fail)
                    self.series[name] = known

    def test_profiles_in_cores_are_divided_by_the_capacity_of_the_host(self):
        path = self.folder / 'policies.yaml'
        path.write_text(configured.POLICIES.replace(
            'weight}', 'weight, host_capacity_query: cores}'))
        self.series['cores'] = [({'host': f'cmp{n}'}, 8 * n) for n in (1, 2, 3)]
        self.series['weight'] = [({'uuid': s['id']}, 4) for s in self.cloud.servers]
        self.assertEqual((4 / 8 + 4 / 16) / 3, self.policies()['cpu']['instances_load'])

    def test_profiles_in_cores_are_divided_by_the_inventory_of_the_host(self):
        path = self.folder / 'policies.yaml'
        path.write_text(configured.POLICIES.replace(
            'weight}', 'weight, vm_profile_unit: absolute, vm_profile_resource: VCPU}'))
        self.series['weight'] = [({'uuid': s['id']}, 4) for s in self.cloud.servers]
        # cmp1 has 4 of its 20 CPUs in a NUMA node of its own.
        row = self.policies()['cpu']
        self.assertAlmostEqual((4 / 20 + 4 / 16) / 3, row['instances_load'])
        self.assertEqual(([16, 20], 'VCPU'), (row['sizes'], row['sizes_from']))
        self.assertIn('16 to 20 (VCPU)', ' '.join(self.run_command()[1].split()))
        self.assertEqual(('ok', []), tuple(
            self.report()[2]['vm_profile'][key] for key in ('state', 'out_of_range')))

    def test_shares_of_hosts_of_several_sizes_are_shares_of_their_own_host(self):
        """As a cycle converts them: the sizes are of the inventory, by the name of the policy."""
        row = self.policies()['cpu']
        self.assertEqual(([0.8, 1.0], 'VCPU'), (row['sizes'], row['sizes_from']))
        self.assertAlmostEqual(0.2 / 3, row['instances_load'])

    def test_sizes_that_nothing_tells_are_not_known(self):
        path = self.folder / 'policies.yaml'
        path.write_text(configured.POLICIES.replace('name: cpu', 'name: load'))
        row = self.policies()['load']
        self.assertEqual((None, 'not known'), (row['sizes'], row['sizes_from']))
        path.write_text(configured.POLICIES.replace('weight}', 'weight, vm_profile_unit: score}'))
        self.assertEqual((None, ''), tuple(
            self.policies()['cpu'][key] for key in ('sizes', 'sizes_from')))

    def test_a_new_cloud_without_servers_has_a_row(self):
        self.cloud.servers.clear()
        path = self.folder / 'policies.yaml'
        path.write_text(configured.POLICIES.replace(
            'weight}', 'weight, host_capacity_query: cores}'))
        self.series['cores'] = [({'host': f'cmp{n}'}, 8) for n in (1, 2)]
        row = self.policies()['cpu']
        self.assertEqual(([3, 3], 0.0), (row['hosts'], row['instances_load']))

    def test_of_a_server_with_two_series_that_of_its_own_host_counts(self):
        self.series['weight'] = [({'uuid': s['id'], 'host': s['OS-EXT-SRV-ATTR:host']}, 0.25)
                                 for s in self.cloud.servers]
        self.series['weight'].append(({'uuid': self.cloud.servers[0]['id'], 'host': 'cmp3'}, 0.5))
        self.assertAlmostEqual(0.5 / 3, self.policies()['cpu']['instances_load'])

    def test_no_row_is_made_without_nova(self):
        self.cloud.refuse['/compute/v2.1/os-services'] = (500, {})
        self.assertEqual({}, self.policies())

    def test_hosts_that_are_missing_and_out_of_range(self):
        self.series['load'] = [({'host': 'cmp1'}, 0.5), ({'host': 'cmp2'}, 50)]
        status, _, queries = self.report()
        self.assertEqual(1, status)
        row = queries['imbalance']
        self.assertEqual(('failed', 'partial', ['cmp3'], ['cmp2']), tuple(
            row[key] for key in ('state', 'health', 'missing', 'out_of_range')))

    def test_what_is_out_of_range_is_said_with_the_remedy(self):
        self.series['load'] = [({'host': f'cmp{n}'}, 20 * n) for n in (1, 2, 3)]
        self.series['weight'] = [({'uuid': s['id']}, 1.02) for s in self.cloud.servers]
        queries = self.report()[2]
        self.assertIn('3 of 3 hosts out of range 0 to 1, such as cmp1 at 20: divide a percentage '
                      'by 100', queries['imbalance']['detail'])
        self.assertIn('2 of 2 instances out of range 0 to 1, such as '
                      f'{min(s["id"] for s in self.cloud.servers)} at 1.02: rates are not exact, '
                      'take clamp(QUERY, 0, 1)', queries['vm_profile']['detail'])

    @ddt.data((0.0, 'memory', 'is 0 while running'),
              (float('inf'), 'cpu', 'is out of range (0 to 1 of a host)'),
              ('NaN', 'cpu', 'monitoring knows none of the 2 servers, and none is moved'))
    @ddt.unpack
    def test_profiles_that_cannot_be_true_are_a_warning(self, value, name, said):
        path = self.folder / 'policies.yaml'
        path.write_text(configured.POLICIES.replace(
            'name: cpu', f'name: {name}').replace(
            'weight}', 'weight, host_capacity_query: cores}'))
        self.series['cores'] = [({'host': f'cmp{n}'}, 16) for n in (1, 2, 3)]
        self.series['load'] = [({'host': f'cmp{n}'}, 0.05) for n in (1, 2, 3)]
        self.series['weight'] = [({'uuid': s['id']}, value) for s in self.cloud.servers]
        state, detail = self.report()[1]['loads']
        self.assertEqual(('warning', True), (state, said in detail), detail)

    def test_a_capacity_in_percent_is_a_warning(self):
        path = self.folder / 'policies.yaml'
        path.write_text(configured.POLICIES.replace('mode: spread', 'mode: pack').replace(
            'weight}', 'weight, capacity_query: full, capacity_threshold: 0.8}'))
        self.series['full'] = [({'host': f'cmp{n}'}, 20 * n) for n in (1, 2, 3)]
        state, detail = self.report()[1]['loads']
        self.assertEqual('warning', state)
        self.assertIn('capacity_query has 2 of 2 hosts above 2, such as cmp1 at 20, and 1 is full: '
                      'these take no server. Divide a percentage by 100', detail)

    def test_an_exporter_that_could_not_read_all_is_named(self):
        self.exporters()
        self.series['libvirt_up'] = lambda promql: [
            ({'instance': f'192.0.2.{n}:9177'}, value) for n, value in ((1, 1), (2, 0), (3, 1))
            if '==' not in promql or not value]
        state, detail = self.report()[1]['exporters']
        self.assertEqual('warning', state)
        self.assertIn('192.0.2.2:9177: libvirt_up is 0, the libvirt exporter could not read all',
                      detail)

    def test_an_exporter_of_another_cloud_is_not_named(self):
        self.exporters()
        self.series['libvirt_up'] = lambda promql: [({'instance': '198.51.100.7:9177'}, 0)] if (
            '==' in promql) else [({'instance': f'192.0.2.{n}:9177'}, 1) for n in (1, 2, 3)]
        self.assertEqual('ok', self.report()[1]['exporters'][0])

    def test_huge_pages_that_node_exporter_does_not_show_are_named(self):
        self.exporters()
        self.series[''] = lambda promql: [({'instance': '192.0.2.1:9100'}, 48 << 30)] if (
            'Hugetlb_bytes' in promql) else []
        state, detail = self.report()[1]['exporters']
        self.assertEqual('warning', state)
        self.assertIn('192.0.2.1:9100: there are huge pages of another size than the default one '
                      '(48 GiB at 192.0.2.1:9100)', detail)
        self.assertIn('default_hugepagesz', detail)

    def test_cpus_that_wait_for_disks_are_named_where_a_query_counts_them(self):
        path = self.folder / 'policies.yaml'
        asked = []

        def waiting(promql):
            asked.append(promql)
            return [({'instance': 'cmp1:9100'}, 0.38)] if 'iowait' in promql else []

        self.series['max'] = waiting
        query = 'load or 1 - avg by (host) (rate(node_cpu_seconds_total{{mode{}}}[9m]))'
        for matcher, state in (('="idle"', 'warning'), ('!="idle"', 'warning'),
                               ('=~"user|system"', 'ok'), ('=~"idle|iowait"', 'ok')):
            path.write_text(configured.POLICIES.replace(
                'imbalance_query: load', f"imbalance_query: '{query.format(matcher)}'"))
            row = self.report()[2]['imbalance']
            self.assertEqual(state, row['state'], matcher)
            self.assertEqual(state == 'warning', 'CPUs that wait for disks (iowait) count as busy: '
                             '38% of those of cmp1:9100' in row['detail'])
        self.assertIn('[9m]', ' '.join(promql for promql in asked if 'iowait' in promql))

    def test_disks_of_other_machines_for_which_cpus_wait_are_no_warning(self):
        """Such as those of a storage cluster that the same Prometheus scrapes."""
        self.exporters()
        (self.folder / 'policies.yaml').write_text(configured.POLICIES.replace(
            'imbalance_query: load', "imbalance_query: 'load or "
            '1 - avg by (host) (rate(node_cpu_seconds_total{mode="idle"}[9m]))\''))
        for address, state in (('192.0.2.9:9100', 'ok'), ('192.0.2.2:9100', 'warning')):
            with self.subTest(address):
                waiting = [({'instance': address}, 0.6)]
                self.series['max'] = lambda promql, found=waiting: (
                    found if 'iowait' in promql else [])
                row = self.report()[2]['imbalance']
                self.assertEqual((state, state == 'warning'),
                                 (row['state'], address in row['detail']), row['detail'])

    @ddt.data(('domain', 'vm_profile_label: domain, vm_profile_label_type: name'),
              ('uuid', 'vm_profile_label_type: name'))
    @ddt.unpack
    def test_the_label_that_has_the_servers_is_proposed(self, label, proposal):
        self.series['weight'] = [({label: f'instance-{n:08x}'}, 0.1) for n in (1, 2)]
        row = self.report()[2]['vm_profile']
        self.assertEqual(('failed', proposal), (row['state'], row['proposal']))
        self.assertIn(f'servers match with {proposal}', row['detail'])

    def test_series_of_another_clouds_hosts_are_no_second_series(self):
        self.series['weight'] = [
            ({'uuid': s['id'], 'host': host}, 0.1) for s in self.cloud.servers
            for host in (s['OS-EXT-SRV-ATTR:host'], 'r2-cmp1')]
        row = self.report()[2]['vm_profile']
        self.assertEqual(('ok', []), (row['state'], row['repeated']))

    @ddt.data((str.upper, 'lowercase'), (str.title, 'lowercase'))
    @ddt.unpack
    def test_names_that_differ_by_case_are_named(self, case, action):
        self.series['load'] = [({'host': case(f'cmp{n}')}, 0.1) for n in (1, 2, 3)]
        row = self.report()[2]['imbalance']
        self.assertEqual('failed', row['state'])
        self.assertIn('3 differ by upper and lower case alone from the label "host"', row['detail'])
        self.assertIn(f'action: {action}', row['detail'])
        self.exporters()
        for series in self.series['node_uname_info']:
            series[0]['nodename'] = case(series[0]['nodename'])
        _status, proposal, _err, _path = self.proposed()
        self.assertIn('libvirt exporter: its names of hosts differ by upper and lower case alone',
                      ' '.join(proposal['problems']))

    def test_names_that_a_join_alone_has_lead_to_a_proposal(self):
        """An address that the query has cut can be joined with nothing."""
        self.exporters()
        self.series['load'] = [({'host': '[2001'}, 0.1)]
        row = self.report()[2]['imbalance']
        self.assertEqual((None, 'failed'), (row['proposal'], row['state']))
        self.assertIn('series of node_exporter name 3 hosts by node_uname_info nodename by '
                      '"([^.:]+).*": kronos-test-config --propose FILE', row['detail'])

    def test_a_host_that_is_down_needs_no_series(self):
        self.cloud.services[2]['state'] = 'down'
        self.series['load'] = self.series['load'][:2]
        self.assertEqual('ok', self.report()[2]['imbalance']['state'])

    def test_enough_coverage_is_a_warning(self):
        self.kronos += '\nmin_coverage = 0.6'
        self.write()
        self.series['load'] = self.series['load'][:2]
        self.assertEqual('warning', self.report()[2]['imbalance']['state'])

    def test_an_answer_that_is_not_whole_is_no_data(self):
        self.warnings = ['store 10.0.0.1 did not answer']
        row = self.report()[2]['imbalance']
        self.assertEqual(('failed', 'partial'), (row['state'], row['health']))
        self.assertIn('accept_partial_metrics', row['detail'])
        self.kronos += '\naccept_partial_metrics = true'
        self.write()
        self.assertEqual('warning', self.report()[2]['imbalance']['state'])

    def test_a_window_that_is_too_short_for_the_scrapes(self):
        path = self.folder / 'policies.yaml'
        path.write_text(path.read_text().replace(
            'imbalance_query: load', "imbalance_query: 'load and rate(cpu[5m])'"))
        self.series['load'] = []
        self.series['quantile'] = lambda promql: [
            ({}, int(re.search(r'\[([0-9]+)ms', promql)[1]) // 300_000)]
        row = self.report()[2]['imbalance']
        self.assertEqual('failed', row['state'])
        self.assertIn('rate(cpu[5m]) needs 2 samples and samples come about every 300 s: widen '
                      '[5m] to [20m]', row['detail'])

    def test_a_url_without_a_scheme_is_one_error(self):
        self.prometheus = 'prometheus:9090'
        self.write()
        status, checks, queries = self.report()
        self.assertEqual((1, {}, 'failed', 'not checked'), (
            status, queries, checks['options'][0], checks['prometheus'][0]))
        self.assertIn('[kronos_prometheus] url: "prometheus:9090" lacks http:// or https://: write '
                      'http://prometheus:9090', checks['options'][1])

    def test_the_label_doctor_speaks(self):
        self.series['load'] = [({'instance': f'cmp{n}:9100'}, 0.1) for n in (1, 2, 3)]
        row = self.report()[2]['imbalance']
        self.assertEqual('failed', row['state'])
        self.assertEqual('label_replace(QUERY, "host", "$1", "instance", "(.*):\\\\d+")',
                         row['proposal'])

    def addresses(self, **labels):
        return [({label: value.format(n) for label, value in labels.items()}, 0.1 * n)
                for n in (1, 2, 3)]

    def test_hosts_that_are_addresses_are_joined_by_node_uname_info(self):
        self.series['load'] = self.addresses(host='192.0.2.{}', instance='192.0.2.{}:9100')
        self.series['node_uname_info'] = self.addresses(instance='192.0.2.{}:9100',
                                                        nodename='cmp{}')
        self.series['label_replace'] = self.addresses(host='cmp{}')
        row = self.report()[2]['imbalance']
        self.assertEqual('failed', row['state'])
        self.assertIn('label_replace(QUERY, "kronos_address", "$1", "host"', row['proposal'])
        self.assertIn('* on (kronos_address) group_left (host)', row['proposal'])
        self.assertIn(f'a join by node_uname_info: {row["proposal"]}', row['detail'])

    def test_a_label_that_another_query_drops_is_not_proposed(self):
        path = self.folder / 'policies.yaml'
        path.write_text(configured.POLICIES.replace('1.0', '0.5') + """
  - {name: memory, mode: spread, weight: 0.5, threshold: 0.1, imbalance_query: memory,
     vm_profile_query: weight}
""")
        self.series['load'] = self.addresses(host='192.0.2.{}')
        self.series['memory'] = self.addresses(host='192.0.2.{}', fqdn='cmp{}')
        self.series['node_uname_info'] = self.addresses(instance='192.0.2.{}:9100',
                                                        nodename='cmp{}')
        self.series['label_replace'] = self.addresses(host='cmp{}')
        _status, out, _err = self.run_command('-f', 'json')
        rows = [row for row in json.loads(out)['queries'] if row['kind'] == 'imbalance']
        self.assertEqual(2, len(rows))
        for row in rows:
            self.assertIn('node_uname_info', row['proposal'])
            self.assertNotIn('fqdn', row['detail'])
        self.series['load'] = self.series['memory']
        _status, out, _err = self.run_command('-f', 'json')
        self.assertEqual({'host_label: fqdn'}, {
            row['proposal'] for row in json.loads(out)['queries'] if row['kind'] == 'imbalance'})

    def test_a_label_whose_name_is_cut_in_texts_is_proposed(self):
        label = 'node_' * 20
        self.series['load'] = self.addresses(host='192.0.2.{}', **{label: 'cmp{}'})
        row = self.report()[2]['imbalance']
        self.assertIn('host_label: node_node_', row['proposal'])
        self.assertIn(f'3 would match with {row["proposal"]}', row['detail'])

    def exporters(self, **extra):
        """node_exporter and a libvirt exporter of three hosts by address, in Prometheus."""
        def of(node):
            return {'instance': f'192.0.2.{node}:9100', **extra}

        self.series |= {
            'node_memory_MemTotal_bytes': [(of(n), 33 << 30) for n in (1, 2, 3)],
            'count': [(of(n), 16) for n in (1, 2, 3)],
            'node_uname_info': [({**of(n), 'nodename': f'cmp{n}.example.com'}, 1)
                                for n in (1, 2, 3)],
            'libvirt_up': [({'instance': f'192.0.2.{n}:9177', **extra}, 1) for n in (1, 2, 3)],
            'libvirt_domain_info_virtual_cpus': [
                ({'instance': f'192.0.2.{n}:9177', 'domain': f'instance-{n:08x}', **extra}, 2)
                for n in (1, 2)]}

    def proposed(self, *words):
        path = self.folder / 'new.yaml'
        status, out, err = self.run_command('--propose', str(path), '-f', 'json', *words)
        return status, json.loads(out)['proposal'] if out else None, err, path

    def test_nova_is_connected_to_once_for_a_proposal_and_its_checks(self):
        """Nova's own configuration can be read once in a process."""
        connected, real = [], roles.connect

        def connect(conf):
            connected.append(conf)
            return real(conf)

        self.useFixture(fixtures.MonkeyPatch('kronos_nova.cmd.roles.connect', connect))
        self.exporters()
        self.proposed()
        self.assertEqual(1, len(connected))

    def test_a_connection_that_fails_is_tried_once_and_reported_wherever_it_is_needed(self):
        tries = []

        def connect(conf):
            tries.append(conf)
            raise ValueError('already parsed' if tries[1:] else 'the first and true reason')

        self.useFixture(fixtures.MonkeyPatch('kronos_nova.cmd.roles.connect', connect))
        checks = self.report()[1]
        self.assertEqual([('failed', 'the first and true reason')] * 2,
                         [checks['placement'], checks['nova']])
        self.assertEqual(1, len(tries))

    def test_a_file_is_proposed_and_each_host_is_shown_beside_nova(self):
        self.exporters()
        _status, proposal, _err, path = self.proposed()
        self.assertEqual(('cpu-memory', {'node_uname_info nodename by "([^.:]+).*"'}),
                         (proposal['recipe'], {*proposal['namings'].values()}))
        # cmp1 has 4 of its CPUs in a NUMA node of its own; Nova counts them too.
        first, second, third = proposal['hosts']
        self.assertEqual(('warning', [20, 16], [1, 1]),
                         (first['state'], first['cpus'], first['servers']))
        self.assertEqual(('ok', ['node_exporter 192.0.2.2:9100', 'libvirt exporter 192.0.2.2:9177'],
                          [16, 16], [32768, 33 << 10], [1, 1]), tuple(
            second[key] for key in ('state', 'found_as', 'cpus', 'memory_mb', 'servers')))
        self.assertEqual([0, 0], third['servers'])
        self.assertIn('* on (kronos_address) group_left (host)', path.read_text())
        self.assertEqual('policies', self.cloud_policies(path))

    def cloud_policies(self, path):
        """The file is what the rest of the command checks."""
        _status, out, _err = self.run_command('--propose', str(path.with_name('two.yaml')), '-f',
                                              'json')
        return next(row['check'] for row in json.loads(out)['checks']
                    if 'two.yaml' in row['detail'])

    def test_a_host_whose_servers_are_not_shown_is_a_warning(self):
        self.exporters()
        self.series['libvirt_domain_info_virtual_cpus'].pop()
        _status, proposal, _err, _path = self.proposed()
        self.assertEqual(('warning', [1, 0]), tuple(
            proposal['hosts'][1][key] for key in ('state', 'servers')))

    def test_nothing_is_proposed_without_exporters(self):
        self.series['node_memory_MemTotal_bytes'] = self.series['libvirt_up'] = []
        status, _proposal, err, path = self.proposed()
        self.assertEqual((1, False), (status, path.exists()))
        self.assertIn('did not write the policies file: Prometheus: has no series '
                      'node_memory_MemTotal_bytes of node_exporter', err)
        self.exporters()
        for name in ('libvirt_up', 'libvirt_domain_info_virtual_cpus', 'ceilometer_memory_usage'):
            self.series[name] = []
        self.assertIn('has no series of servers', self.proposed()[2])

    def test_a_match_that_no_series_has_is_named(self):
        self.exporters(region='one')
        status, _proposal, err, path = self.proposed('--match', 'region=two')
        self.assertEqual((1, False), (status, path.exists()))
        self.assertIn('has no series node_memory_MemTotal_bytes{region="two"} of node_exporter',
                      err)
        self.assertIn('Correct --match', err)
        self.proposed('--match', 'region="one"')
        self.assertIn('{region="one"}', path.read_text())

    @ddt.data('region', 'region=~"one|two"', 'region!=two', '1=one', '')
    def test_a_match_that_is_no_label_with_a_value_is_a_wrong_argument(self, text):
        self.exporters(region='one')
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            found = self.assertRaises(SystemExit, self.proposed, f'--match={text}')
        self.assertEqual(2, found.code)

    @ddt.data(('--recipe', 'cpu-memory'), ('--match', 'region=one'), ('--recipe', ''))
    def test_an_argument_of_a_proposal_without_a_proposal_is_a_wrong_argument(self, arguments):
        status, out, err = self.run_command(*arguments)
        self.assertEqual((2, ''), (status, out))
        self.assertIn(f'{arguments[0]} has an effect only with --propose', err)
        self.assertEqual(1, len(err.splitlines()))

    def test_nothing_is_proposed_on_a_host_that_cannot_read_the_cloud(self):
        status, _proposal, err, path = self.proposed('--role', 'compute')
        self.assertEqual((2, False), (status, path.exists()))
        self.assertIn('a compute host has no access to it', err)

    def test_a_query_that_counts_scrapes_by_two_jobs_twice_is_a_warning(self):
        """Its answer differs with one job alone; a query that takes the maximum is right."""
        self.series['node_memory_MemTotal_bytes'] = [
            ({'instance': 'cmp1:9100', 'job': job}, 1) for job in ('node', 'node', 'again')]
        path = self.folder / 'policies.yaml'
        path.write_text(configured.POLICIES.replace(
            'imbalance_query: load', "imbalance_query: 'sum(node_load1)'"))
        load = self.series['load']

        def answer(promql):
            return [(labels, value if 'job="node"' in promql or labels['host'] != 'cmp1' else
                     2 * value) for labels, value in load]

        self.series['sum'] = answer
        row = self.report()[2]['imbalance']
        self.assertEqual('warning', row['state'])
        self.assertIn('node_exporter is scraped by several jobs, and the query counts each: of '
                      'cmp1 it has another value with job="node" alone', row['detail'])
        self.series['sum'] = load
        self.assertEqual('ok', self.report()[2]['imbalance']['state'])

    def test_what_exists_is_not_overwritten(self):
        self.exporters()
        path = self.folder / 'new.yaml'
        path.write_text('precious')
        status, _proposal, err, _path = self.proposed()
        self.assertEqual((1, 'precious'), (status, path.read_text()))
        self.assertIn('Name a file that does not exist', err)

    def test_a_recipe_that_is_not_there(self):
        status, _proposal, err, path = self.proposed('--recipe', 'memory')
        self.assertEqual((2, False), (status, path.exists()))
        self.assertIn('the recipes are count, cpu-memory', err)

    def test_what_is_asked_for_moves_is_looked_at_too(self):
        path = self.folder / 'policies.yaml'
        path.write_text(f'{path.read_text()}\nmigration: {{dirty_rate_query: weight, '
                        'link_query: links, used_memory_query: nothing}\n')
        self.series['links'] = self.series['load'][:2]
        _status, _checks, queries = self.report()
        self.assertEqual([('ok', 2, 2), ('warning', 2, 3), ('failed', None, None)], [
            tuple(queries[kind][key] for key in ('state', 'matched', 'expected'))
            for kind in ('dirty_rate', 'link', 'used_memory')])
        self.assertEqual(['cmp3'], queries['link']['missing'])

    def test_a_live_migration_is_no_warning(self):
        self.series['weight'].append(({**self.series['weight'][0][0], 'from': 'cmp3'}, 0.1))
        row = self.report()[2]['vm_profile']
        self.assertEqual(('ok', 'healthy', 1), (row['state'], row['health'], len(row['repeated'])))
        self.assertIn('as during a live migration', row['detail'])

    def test_a_server_that_is_off_is_no_stranger(self):
        self.cloud.servers[1]['status'] = 'SHUTOFF'
        row = self.report()[2]['vm_profile']
        self.assertEqual((1, []), (row['expected'], row['unknown']))

    def test_instances_by_another_name(self):
        self.series['weight'] = [({'uuid': 'instance-00000001'}, 0.1)]
        row = self.report()[2]['vm_profile']
        self.assertEqual(('failed', ['instance-00000001']), (row['state'], row['unknown']))

    def test_each_thing_that_is_broken_is_reported_by_itself(self):
        with socket.socket() as unused:
            unused.bind(('127.0.0.1', 0))
            nobody = f'127.0.0.1:{unused.getsockname()[1]}'
            (self.folder / 'kronos.sqlite').unlink()
            self.cloud.refuse['/placement/resource_classes'] = (401, {})
            self.series.clear()
            (self.folder / 'policies.yaml').write_text('[]')
            self.kronos = 'aggregates = ghost\nautomation = sometimes'
            self.write()
            text = pathlib.Path(self.conf).read_text()
            pathlib.Path(self.conf).write_text(
                text.replace('fake://', f'rabbit://user:secret@{nobody}/'))
            status, checks, queries = self.report()
        self.assertEqual((1, {}), (status, queries))
        for check, said in (('options', '[kronos] automation'), ('policies', 'mapping'),
                            ('prometheus', 'HTML'), ('placement', '401'), ('scope', 'ghost'),
                            ('database', 'kronos-manage db sync'), ('broker', nobody)):
            state, detail = checks[check]
            self.assertEqual('failed', state, check)
            self.assertIn(said, detail)
            self.assertNotIn('secret', detail)
        self.assertFalse((self.folder / 'kronos.sqlite').exists())

    @ddt.data(('aggregate_automation', 'gpus:auto'),
              ('maintenance_window', 'gpus; 0 2 * * sat; 60'))
    @ddt.unpack
    def test_an_aggregate_that_does_not_exist(self, option, value):
        self.kronos += f'\n{option} = {value}'
        self.write()
        status, checks, _queries = self.report()
        self.assertEqual((1, 'failed'), (status, checks['names'][0]))
        self.assertIn(f'[kronos] {option}, gpus: there is no aggregate of that name',
                      checks['names'][1])

    def test_the_window_of_the_documentation_is_a_warning_with_the_days(self):
        self.kronos += '\nmaintenance_window = gpu; 0 22 * * sat; 360; Europe/Berlin'
        self.write()
        now = datetime.datetime(2026, 11, 25, tzinfo=datetime.UTC).timestamp()
        with mock.patch('kronos_nova.cmd.checks.time.time', return_value=now):
            _status, checks, _queries = self.report()
        state, detail = checks['windows']
        self.assertEqual(('warning', 'ok'), (state, checks['names'][0]))
        for word in ('"0 22 * * sat" of gpu', 'Europe/Berlin',
                     'on 2027-03-28 it ends 60 minutes later',
                     'on 2027-10-31 it ends 60 minutes earlier'):
            self.assertIn(word, detail)

    @ddt.data(('Europe/Berlin', '30 2 * * *', 'on 2027-03-28 it opens 60 minutes later'),
              ('America/New_York', '30 2 * * *', 'on 2027-03-14 it opens 60 minutes later'),
              ('Australia/Lord_Howe', '15 2 * * *', 'on 2027-10-03 it opens 30 minutes later'))
    @ddt.unpack
    def test_a_window_that_opens_at_a_time_that_is_left_out_is_a_warning(self, zone, cron, said):
        self.kronos += f'\nmaintenance_window = gpu; {cron}; 30; {zone}'
        self.write()
        now = datetime.datetime(2026, 11, 25, tzinfo=datetime.UTC).timestamp()
        with mock.patch('kronos_nova.cmd.checks.time.time', return_value=now):
            _status, checks, _queries = self.report()
        state, detail = checks['windows']
        self.assertEqual('warning', state)
        self.assertIn(f'leaves out the time at which "{cron}" of gpu opens: {said}', detail)

    def test_the_example_of_each_text_passes(self):
        texts = [opt.help for opt in kronos_options.OPTS if opt.name == 'maintenance_window']
        texts.append(pathlib.Path('doc/source/planning.rst').read_text())
        examples = {line for text in texts
                    for line in re.findall(r'``maintenance_window = (.*?)``', text)}
        self.assertTrue(examples)
        for line in examples:
            self.kronos = ('include_unassigned_hosts = true\naggregates = gpu\n'
                           f'maintenance_window = {line}')
            self.write()
            status, checks, _queries = self.report()
            self.assertNotIn('failed', [state for state, _detail in checks.values()], line)
            self.assertNotEqual(1, status)

    def broker(self, client=None):
        """Start a broker that speaks TLS, but then no AMQP. Return (its URL, the file with its
        certificate, the list of clients that have got in).

        :param client: certificate that clients have to show
        """
        seen, context = [], ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        path = self.folder / 'broker.pem'
        path.write_bytes(self_signed())
        context.load_cert_chain(path)
        if client:
            context.load_verify_locations(client)
            context.verify_mode = ssl.CERT_REQUIRED

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError), context.wrap_socket(
                        self.request, server_side=True) as tls:
                    tls.recv(1)
                    seen.append(tls.getpeercert())

        server = socketserver.ThreadingTCPServer(('127.0.0.1', 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f'rabbit://u:p@127.0.0.1:{server.server_address[1]}/', path, seen

    def broker_check(self, url, **files):
        self.transport_url = url
        self.write()
        with open(self.conf, 'a') as file:
            file.write('[oslo_messaging_rabbit]\nssl = true\n' + ''.join(
                f'ssl_{name}_file = {path}\n' for name, path in files.items()))
        return self.report()[1]['broker'][1]

    def test_a_broker_is_checked_with_the_authority_that_the_services_trust(self):
        url, authority, seen = self.broker()
        self.assertIn('CERTIFICATE_VERIFY_FAILED', self.broker_check(url))
        other = self.folder / 'other.pem'
        other.write_bytes(self_signed())
        self.assertIn('CERTIFICATE_VERIFY_FAILED', self.broker_check(url, ca=other))
        self.assertEqual([], seen)
        self.assertNotIn('CERTIFICATE_VERIFY_FAILED', self.broker_check(url, ca=authority))
        self.assertNotEqual([], seen)

    def test_a_broker_is_shown_the_certificate_of_the_services(self):
        client = self.folder / 'client.pem'
        client.write_bytes(self_signed())
        url, authority, seen = self.broker(client)
        self.broker_check(url, ca=authority)
        self.assertEqual([], seen)
        self.broker_check(url, ca=authority, cert=client, key=client)
        self.assertNotEqual([], seen)

    def test_an_aggregate_of_one_host_deserves_a_look(self):
        self.cloud.aggregates[0]['hosts'] = ['cmp1']
        state, detail = self.report()[1]['scope']
        self.assertEqual(('warning', True), (state, 'gpu has 1 host;' in detail))

    @ddt.data(('conductor', 'messagingv2,kronos', 'failed'), ('conductor', 'messagingv2', 'failed'),
              ('conductor', 'kronos', 'ok'), ('daemon', 'messagingv2', 'ok'))
    @ddt.unpack
    def test_a_nova_that_does_not_load_kronos_is_reported(self, role, driver, state):
        """oslo.messaging takes a value with a comma for the name of one driver."""
        path = pathlib.Path(self.conf)
        path.write_text(path.read_text().replace('driver = kronos', f'driver = {driver}'))
        with contextlib.ExitStack() as stack:
            if role == 'conductor':
                stack.enter_context(mock.patch.object(
                    roles, '_in_process', lambda conf, options: roles._by_api(conf)))
            found = json.loads(self.run_command('-f', 'json', '--role', role)[1])
        [check] = [each for each in found['checks'] if each['check'] == 'typos']
        self.assertEqual(state, check['state'], check['detail'])

    def test_a_small_aggregate_hides_no_aggregate_that_does_not_exist(self):
        """Every name that is wrong is reported, whatever comes before it."""
        self.cloud.aggregates[0]['hosts'] = ['cmp1']
        self.kronos = ('aggregates = gpu, ghost, spook\naggregate_automation = haunt:auto\n'
                       'maintenance_window = wraith; 0 2 * * sat; 60')
        self.write()
        status, checks, _queries = self.report()
        self.assertEqual((1, 'failed', 'failed'), (status, checks['scope'][0], checks['names'][0]))
        for name in ('ghost', 'spook'):
            self.assertIn(f'[kronos] aggregates, {name}', checks['scope'][1])
        for place in ('aggregate_automation, haunt', 'maintenance_window, wraith'):
            self.assertIn(f'[kronos] {place}', checks['names'][1])

    def test_each_small_aggregate_deserves_a_look(self):
        self.cloud.aggregates[0]['hosts'] = ['cmp1']
        self.cloud.aggregates.append({**self.cloud.aggregates[0], 'id': 2, 'uuid': 'agg-2',
                                      'name': 'other', 'hosts': []})
        self.kronos = 'aggregates = gpu, other'
        self.write()
        state, detail = self.report()[1]['scope']
        self.assertEqual(('warning', True, True), (
            state, 'gpu has 1 host' in detail, 'other has 0 hosts' in detail))

    def evaluated(self, aggregate, policy='cpu', noise=0.2):
        """Record an evaluation whose policy had the threshold of the policies file."""
        conf = manage.load_config(argparse.Namespace(config_file=[self.conf], config_dir=None))
        known = cycles.Cycles(databases.control_database(conf))
        now = clock.utcnow()
        known.begin(aggregate, 'one', now, 1)
        known.end(aggregate, now, plans.BALANCED, False, plans.AggregateReport(
            name=aggregate, outcome=plans.BALANCED, mode='spread', planner='spread', policies=(
                plans.PolicyReport(name=policy, state='ok', weight=1.0, threshold=0.1,
                                   noise=noise),)).to_json())

    def test_a_threshold_below_noise_is_a_warning_until_it_is_raised(self):
        """The remedy ends the warning at once, not after the next evaluation."""
        self.evaluated('gpu')
        state, detail = self.report()[1]['noise']
        self.assertEqual('warning', state)
        self.assertIn('cpu in gpu: the threshold 0.1 is below what noise makes there, 0.200',
                      detail)
        (self.folder / 'policies.yaml').write_text(
            configured.POLICIES.replace('threshold: 0.1', 'threshold: 0.3'))
        self.assertEqual(('ok', '1 threshold above what noise makes'), self.report()[1]['noise'])

    def test_noise_of_what_is_evaluated_no_more_is_no_warning(self):
        self.evaluated('former')
        self.evaluated('gpu', policy='memory')
        state, detail = self.report()[1]['noise']
        self.assertEqual(('ok', True), (state, detail.startswith('not known yet')))

    def test_without_nova_queries_are_asked_all_the_same(self):
        self.cloud.refuse['/compute/v2.1/os-services'] = (500, {})
        status, checks, queries = self.report()
        self.assertEqual((1, 'failed', 'not checked', 'not checked'), (
            status, checks['nova'][0], checks['scope'][0], queries['imbalance']['state']))
        self.assertIsNone(queries['imbalance']['matched'])
        self.assertIn('3 series', queries['imbalance']['detail'])
        self.assertNotIn('none of the hosts', queries['imbalance']['detail'])

    def test_a_conductor_beside_daemons_needs_no_policies_either(self):
        conf = manage.load_config(argparse.Namespace(config_file=[self.conf], config_dir=None))
        conf.set_override('run_in', 'daemons', 'kronos')
        role = roles.role(roles.CONDUCTOR, conf, None)
        self.assertEqual((False, {'claims', *roles.PLANNING}), (role.plans, {*role.skips}))

    def test_the_role_of_a_host_is_recognised_by_its_files(self):
        def guessed(text):
            path = self.folder / 'other.conf'
            path.write_text(text)
            return roles.guess(manage.load_config(
                argparse.Namespace(config_file=[str(path)], config_dir=None)))
        self.assertEqual('compute', guessed('[DEFAULT]\n'))
        self.assertEqual('conductor', guessed('[api_database]\nconnection = sqlite://\n'))
        self.assertEqual('daemon', guessed('[kronos]\nrun_in = daemons\n'))
        self.assertEqual('daemon', guessed('[kronos_nova]\nauth_type = password\n'))

    def test_a_compute_host_needs_no_policies(self):
        pathlib.Path(self.conf).write_text(
            f'[DEFAULT]\nstate_path = {self.folder}\ntransport_url = fake://\n'
            '[oslo_messaging_notifications]\ndriver = kronos\n')
        status, out, _err = self.run_command('-f', 'json')
        found = json.loads(out)
        self.assertEqual((3, 'compute', []), (status, found['role'], found['queries']))
        states = {row['check']: row['state'] for row in found['checks']}
        self.assertEqual({'options', 'typos', 'plugin', 'claims', 'broker'},
                         {name for name, state in states.items() if state != 'not checked'})
        self.assertEqual('ok', states['claims'])
        # Nothing has failed that the reason of another check could refer to.
        self.assertEqual({'a compute host does not need it'}, {
            row['detail'] for row in found['checks']
            if row['state'] == 'not checked'})

    def test_no_configuration_file(self):
        self.conf = str(self.folder / 'nowhere.conf')
        status, _, err = self.run_command()
        self.assertEqual(2, status)
        self.assertIn('nowhere.conf', err)
