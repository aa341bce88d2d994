"""Checks a replay's report against the snapshot's own files, knowing nothing of the engine.

Takes the moves one after the other as an operator would, keeps its own books, and tells every rule
that was broken.
"""

import collections
import json
import pathlib

import yaml

TOLERANCE = 1e-6


class Referee:
    """``complaints`` is empty once :meth:`check` found everything in order."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        inventory = self.load('inventory.json')
        self.hosts = {row['name']: row for row in inventory['hosts']}
        self.vms = {row['uuid']: dict(row) for row in inventory['instances']}
        self.aggregates = {row['name']: set(row['hosts']) for row in inventory['aggregates']}
        self.groups = inventory['server_groups']
        self.cooldowns = self.load('cooldowns.json')
        self.policies = {row['name']: row for row in yaml.safe_load(
            (self.folder / 'policies.yaml').read_text())['policies']}
        self.scores = {name: self.series(name, 'imbalance', 'host') for name in self.policies}
        self.fullness = {name: self.series(name, 'capacity', 'host') for name in self.policies}
        self.weights = {name: self.series(name, 'vm_profile', 'uuid') for name in self.policies}
        self.measured = {name: dict(values) for name, values in self.scores.items()}
        self.leaving = collections.Counter()
        self.complaints, self.moved = [], set()

    def load(self, name):
        return json.loads((self.folder / name).read_text())

    def series(self, policy, kind, label):
        path = self.folder / 'metrics' / policy / f'{kind}.json'
        if not path.exists():
            return {}
        return {row['metric'][label]: float(row['value'][1])
                for row in json.loads(path.read_text())['data']['result']}

    def complain(self, text):
        self.complaints.append(text)

    def expect(self, condition, text):
        if not condition:
            self.complain(text)

    def check(self, report, evacuates=False, repairs=()):
        for aggregate in report['aggregates']:
            self.check_aggregate(aggregate, evacuates, repairs)
        return self.complaints

    def members_of(self, name):
        if name in self.aggregates:
            return self.aggregates[name]
        return set(self.hosts).difference(*self.aggregates.values())

    def available(self, host):
        service = self.hosts[host]['service']
        return (service['state'], service['status'], service['forced_down']) == (
            'up', 'enabled', False)

    def is_ours(self, host):
        return self.hosts[host]['hypervisor_type'] in ('QEMU', 'KVM')

    def imbalance(self, policy, scope):
        values = [self.scores[policy][host] for host in scope
                  if self.available(host) and self.is_ours(host)]
        return max(values) - min(values)

    def check_aggregate(self, report, evacuates, repairs):
        name, scope = report['name'], self.members_of(report['name'])
        good = [row['name'] for row in report['policies'] if row['state'] == 'ok']
        for row in report['policies']:
            if row['state'] == 'ok':
                self.same(row['imbalance_before'], self.imbalance(row['name'], scope),
                          f'{name}: {row["name"]} before')
                self.check_measured(name, row['name'], scope)
            else:
                self.expect(row['detail'], f'{name}: {row["name"]} has no data but no reason')
        if report['outcome'] in ('no_data', 'balanced', 'cooling', 'no_move'):
            self.expect(not report['moves'], f'{name}: moves, but {report["outcome"]}')
        else:
            self.expect(report['moves'], f'{name}: planned, but no moves')
        budget = max(row['max_migrations_per_cycle'] for row in self.policies.values())
        self.expect(len(report['moves']) <= budget, f'{name}: over the budget')
        inhabited = {vm['host'] for vm in self.vms.values()} & scope
        phases = [move['phase'] for move in report['moves']]
        order = ['evacuate', 'affinity', 'spread', 'pack']
        self.expect(phases == sorted(phases, key=order.index), f'{name}: phases out of order')
        begun = None
        for number, move in enumerate(report['moves'], start=1):
            if move['phase'] == 'evacuate' and self.available(move['source']):
                self.expect(any(later['destination'] == move['source']
                                for later in report['moves'][number:]),
                            f'{name} move {number}: makes room for nothing')
            if move['phase'] == 'spread' and begun is None:
                begun = {policy: self.imbalance(policy, scope) for policy in good}
            self.check_move(f'{name} move {number}', number, move, scope, good, evacuates, repairs)
            if move['phase'] == 'affinity' or (
                    move['phase'] == 'spread' and report['planner'] == 'greedy'):
                self.check_not_spoilt(f'{name} move {number}', scope)
        if begun:
            self.before_move = begun
            self.check_not_spoilt(name, scope)
        for row in report['policies']:
            if row['state'] == 'ok':
                self.same(row['imbalance_after'], self.imbalance(row['name'], scope),
                          f'{name}: {row["name"]} after')
        left = inhabited - {vm['host'] for vm in self.vms.values()}
        self.expect(sorted(left) == report['hosts_emptied'], f'{name}: emptied {sorted(left)}')
        self.check_stayed(report, scope, evacuates)

    def check_measured(self, name, policy, scope):
        for host in filter(self.is_ours, scope):
            value = self.measured[policy].get(host)
            self.expect(value is None or not value < 0 and not value > 1,
                        f'{name}: {policy} of {host} is {value}, yet it counts')
            self.expect(not self.available(host) or value is not None and value == value,
                        f'{name}: {policy} of {host} is not known, yet it counts')

    def same(self, said, is_, what):
        self.expect(abs(said - is_) < TOLERANCE, f'{what}: says {said}, it is {is_}')

    def check_move(self, tag, number, move, scope, good, evacuates, repairs):
        vm, source, target = self.vms[move['instance_uuid']], move['source'], move['destination']
        self.expect(move['order'] == number, f'{tag}: out of order')
        self.expect(vm['host'] == source, f'{tag}: the instance is not on {source}')
        self.expect({source, target} <= scope and source != target, f'{tag}: leaves the aggregate')
        self.expect(self.available(target), f'{tag}: {target} is not available')
        self.expect(self.is_ours(source) and self.is_ours(target), f'{tag}: not QEMU')
        self.expect(self.hosts[source]['cell'] == self.hosts[target]['cell'], f'{tag}: cells')
        self.expect(vm['uuid'] not in self.moved, f'{tag}: moved twice across aggregates')
        self.expect(move['reason'] and '\n' not in move['reason'], f'{tag}: reason')
        self.check_standing(tag, move, vm, evacuates)
        before = {group['uuid']: self.violations(group) for group in self.groups}
        self.before_move = {name: self.imbalance(name, scope) for name in good}
        vm['host'] = target
        self.check_room(tag, target)
        for group in self.groups:
            after = self.violations(group)
            self.expect(after <= before[group['uuid']], f'{tag}: breaks {group["name"]}')
        if move['phase'] == 'affinity' and not move['reason'].startswith(
                ('makes room', 'waits here')):
            mended = [group for group in self.groups if vm['uuid'] in group['members']
                      and group['policy'].startswith('soft-') in repairs]
            self.expect(mended, f'{tag}: repairs nothing')
        for name in good:
            self.shift(name, vm['uuid'], source, target, scope)
            policy = self.policies[name]
            if policy['mode'] == 'pack' and move['phase'] != 'evacuate':
                for values in (self.scores[name], self.fullness[name]):
                    self.expect(values[target] <= policy['capacity_threshold'] + TOLERANCE,
                                f'{tag}: {target} too full in {name}')
        combined = sum(self.policies[name]['weight'] * self.imbalance(name, scope)
                       for name in good)
        self.same(move['combined_after'], combined, f'{tag}: combined')

    def check_not_spoilt(self, tag, scope):
        for name, before in self.before_move.items():
            policy, now = self.policies[name], self.imbalance(name, scope)
            self.expect(policy['mode'] == 'pack' or
                        now <= max(before, policy['threshold']) + TOLERANCE,
                        f'{tag}: spoils {name}')

    def check_standing(self, tag, move, vm, evacuates):
        self.expect(vm['status'] == 'ACTIVE' and not vm['task_state'], f'{tag}: not active or busy')
        service = self.hosts[move['source']]['service']
        wishes = {spec.get('kronos:move', 'always')
                  for spec in (vm['flavor_extra_specs'], vm['metadata'])}
        if move['phase'] == 'evacuate' and service['status'] == 'disabled':
            self.expect(vm['flavor_extra_specs'].get('kronos:move') != 'never',
                        f'{tag}: opted out by its flavor')
            self.expect(evacuates, f'{tag}: not disabled')
            self.expect(service['state'] == 'up' and not service['forced_down'], f'{tag}: down')
            return
        self.expect(wishes == {'always'}, f'{tag}: opted out')
        self.expect(not vm['locked'], f'{tag}: locked')
        for key in ('instance_cooldowns', 'instance_quarantines'):
            self.expect(vm['uuid'] not in self.cooldowns[key], f'{tag}: {key}')
        self.expect(self.available(move['source']), f'{tag}: source is not available')

    def check_room(self, tag, host):
        used = collections.Counter({name: amount for (where, name), amount in self.leaving.items()
                                    if where == host})  # moves of other aggregates, side by side
        for vm in self.vms.values():
            if vm['host'] == host:
                used.update(vm['resources'])
        for name, amount in used.items():
            row = self.hosts[host]['inventory'][name]
            limit = (row['total'] - row['reserved']) * row['allocation_ratio']
            self.expect(amount <= limit + TOLERANCE, f'{tag}: {host} has no room for {name}')

    def violations(self, group):
        hosts = collections.Counter(self.vms[uuid]['host'] for uuid in group['members']
                                    if uuid in self.vms)
        if 'anti' in group['policy']:
            most = group['rules'].get('max_server_per_host', 1)
            return sum(max(0, count - most) for count in hosts.values())
        return len(hosts)

    def shift(self, name, uuid, source, target, scope):
        weight = self.weights[name][uuid]
        factor = self.size(name, source, scope) / self.size(name, target, scope)
        for values in (self.scores[name], self.fullness[name]):
            if values:
                values[source] -= weight
                values[target] += weight * factor

    def size(self, policy, host, scope):
        """CPUs or memory of a host where those of an aggregate differ, else 1."""
        totals = {resource: [self.hosts[each]['inventory'][resource]['total']
                             for each in scope if self.is_ours(each)]
                  for resource in ('VCPU', 'MEMORY_MB')}
        if all(max(each) <= 1.05 * min(each) for each in totals.values()):
            return 1.0
        resource = {'cpu': 'VCPU', 'memory': 'MEMORY_MB'}[policy]
        return self.hosts[host]['inventory'][resource]['total']

    def may_leave(self, host, evacuates):
        service = self.hosts[host]['service']
        disabled = (service['state'], service['status'], service['forced_down']) == (
            'up', 'disabled', False)
        return self.is_ours(host) and (self.available(host) or evacuates and disabled)

    def check_stayed(self, report, scope, evacuates):
        moved = {move['instance_uuid'] for move in report['moves']}
        self.moved |= moved
        for move in report['moves']:
            for name, amount in self.vms[move['instance_uuid']]['resources'].items():
                self.leaving[move['source'], name] += amount
        if report['outcome'] not in ('planned', 'no_move'):
            return
        stayed = [uuid for row in report['not_moved'] for uuid in row['instances']]
        self.expect(len(stayed) == len(set(stayed)), f'{report["name"]}: explained twice')
        self.expect(not moved & set(stayed), f'{report["name"]}: moved and stayed')
        for row in report['not_moved']:
            self.expect(row['count'] == len(row['instances']), f'{report["name"]}: miscounted')
        for vm in self.vms.values():
            if vm['host'] in scope and self.may_leave(vm['host'], evacuates):
                self.expect(vm['uuid'] in moved | set(stayed) or vm['uuid'] in self.moved,
                            f'{report["name"]}: {vm["uuid"]} is not explained')
