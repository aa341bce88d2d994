"""Anonymisation of a snapshot. Names are replaced by pseudonyms. Data on which a plan depends is
kept.

A pseudonym has a number. For each kind of object, such as hosts or servers, the numbers begin at 1
and follow the sorted order of the original names. Pseudonyms of hosts and servers are therefore
sorted in the same way as the names. Planners decide ties by the order of names and uuids. The plan
for the anonymised snapshot is therefore the same, except for the names.
"""

import dataclasses
import json
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

import yaml
from oslo_config import cfg

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.cooldown import PastMove
from kronos_nova.cooldown import PastTry
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.metrics import answer
from kronos_nova.objects import domains
from kronos_nova.objects import eligibility
from kronos_nova.objects import metrics
from kronos_nova.objects import movability
from kronos_nova.objects import numa
from kronos_nova.objects import requirements
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import Flavor
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Image
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Movability
from kronos_nova.objects.snapshot import Requirements
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import Buffer
from kronos_nova.policies import PolicySet
from kronos_nova.policies.rules import HOST
from kronos_nova.policies.selection import Selections
from kronos_nova.policies.selection import is_joint
from kronos_nova.record import options as recorded_options
from kronos_nova.record.options import RecordedOptions
from kronos_nova.record.writer import Taken
from kronos_nova.room import shapes

R = TypeVar('R', PastMove, PastTry)
N = TypeVar('N', int, float)

_WORD = re.compile(r'[^\s,;:=<>()\[\]{}"\'|/]+')

# Keys that have a meaning to Nova or Kronos, which stay. After a prefix of Nova's, operators may
# write any word: other words there are replaced, and the prefix stays.
_HW = ('boot_menu|cpu_(cores|dedicated_mask|max_cores|max_sockets|max_threads|policy|realtime|'
       'realtime_mask|sockets|thread_policy|threads)|emulator_threads_policy|ephemeral_encryption|'
       'ephemeral_encryption_format|hide_hypervisor_id|locked_memory|mem_encryption|'
       r'mem_encryption_model|mem_page_size|numa_(cpus|mem)\.\d{1,3}|numa_nodes|'
       'pci_numa_affinity_policy|pmem|pmu|redirected_usb_ports|serial_port_count|sound_model|'
       'tpm_model|tpm_secret_security|tpm_version|usb_model|vif_multiqueue_enabled|viommu_model|'
       'virtio_packed_ring|watchdog_action')
_QUOTA = ('cpu_(period|quota|shares|shares_level|limit|reservation|shares_share)|'
          'disk_(read|write|total)_(bytes|iops)_sec(_max|_max_length)?|'
          '(vif_)?(in|out)bound_(average|peak|burst)|memory_(limit|reservation|shares_level)')
_CLASSES = ('VCPU|PCPU|MEMORY_MB|DISK_GB|PCI_DEVICE|SRIOV_NET_VF|NUMA_[A-Z_]{1,9}|IPV4_ADDRESS|'
            'VGPU|VGPU_DISPLAY_HEAD|NET_(BW|PACKET_RATE)_[A-Z_]{1,30}|MEM_ENCRYPTION_CONTEXT|FPGA|PGPU')
_KNOWN_KEY = re.compile(
    rf'hw:({_HW})|hw_rng:(allowed|rate_bytes|rate_period)|hw_video:ram_max_mb|'
    rf'os:secure_boot|quota:({_QUOTA})|'
    rf'resources\d{{0,3}}:({_CLASSES}|CUSTOM_\w{{1,80}})|'
    r'trait\d{0,3}:((HW|COMPUTE|STORAGE|MISC|OWNER)_(CPU|GPU|NIC|NUMA|PCI|ARCH|IMAGE|VOLUME|NET|DISK|'
    r'GRAPHICS|RESCUE|DEVICE|SECURITY|STATUS|NODE|TRUSTED|MIGRATE|SAME|SOCKET|MEM|VIOMMU|FIRMWARE|'
    r'REMOTE|MANAGED|SHARES|ADDRESS|SUPPORTS|NOVA|NYX|ACCELERATORS)[A-Z0-9_]{0,60}|CUSTOM_\w{1,80})|'
    r'accel:device_profile|pci_passthrough:alias|'
    r'kronos:move|availability_zone|group_policy')
_PREFIX = re.compile(
    r'(hw|hw_rng|hw_video|os|quota|resources\d{0,3}|trait\d{0,3}|accel|pci_passthrough|'
    r'capabilities):')

# Types of hypervisors that Nova's drivers report.
_HYPERVISORS = frozenset(('QEMU', 'KVM', 'fake', 'ironic', 'VMware vCenter Server', 'zvm', 'lxc',
                          'LXC', 'parallels', 'xen'))
_TENANTS = 'filter_tenant_id'

# Traits and resource classes that operators name themselves.
_CUSTOM = re.compile(r'CUSTOM_\w+')
_SPEC = 'aggregate_instance_extra_specs:'

# Values that Nova's filters compare and that name nothing. A longer number may be private, such as
# that of a telephone, an account or a ticket.
_PLAIN = re.compile(r'-?\d{1,7}(\.\d{1,7})?|true|false|yes|no|on|off|required|forbidden|shared|'
                    r'dedicated|mixed|isolate|require|prefer|s==|s!=|s<=?|s>=?|=|==|!=|<in>|<all-in>|<or>|>=|<=|'
                    r'or|in|all-in', re.IGNORECASE)


def anonymise(taken: Taken, policies: PolicySet) -> Taken:
    """Return a copy of a snapshot in which names, uuids and projects are replaced by pseudonyms.

    Data on which no plan depends is left out. Examples are server metadata that Kronos does not
    read, disabled reasons of hosts, labels that no policy uses, and PromQL.

    :param policies: the parsed ``taken.policies``
    :raises SnapshotError: an original name or id would be left in the copy
    """
    names = _Names(taken.snapshot)
    anonymised = dataclasses.replace(
        taken, cloud='anonymised', snapshot=_snapshot(taken.snapshot, names),
        policies=_policies(policies, taken.snapshot, names),
        bodies={key: _body(taken.bodies[key], tables) for key, tables in
                _labels(policies, names).items() if key in taken.bodies},
        options=taken.options and _options(taken.options, names),
        history=taken.history and _history(taken.history, names))
    _check(anonymised, names)
    return anonymised


def _check(anonymised: Taken, names: '_Names') -> None:
    """Check that no original name or id is left in an anonymised snapshot.

    :raises SnapshotError: a string has an original name or id
    """
    texts = _texts(dataclasses.asdict(anonymised.snapshot))
    for body in anonymised.bodies.values():
        texts.extend(text for series in json.loads(body)['data']['result']
                     for text in series['metric'].values())
    texts.extend(str(value) for each in yaml.safe_load(anonymised.policies).get('buffers', [])
                 for value in each.values())
    texts.extend(_texts_of_options(anonymised.options or {}))
    texts.extend(_texts_of_history(anonymised.history or PlanningHistory()))
    left = sorted({word for text in texts for word in (text, *_WORD.findall(text))
                   if names.is_original(word)})
    if left:
        raise exception.SnapshotError(
            path='--anonymise', problems=f'the snapshot would still contain {len(left)} original '
            f'names, such as "{boundary.shown(left[0], 80)}". Nothing was written. Please report '
            'this as a bug.')


_ENUMERATED = {'status', 'state', 'task_state', 'policy', 'hypervisor_type', 'taken_at', 'rules',
               'inventory', 'resources', 'used', 'shared_resources', 'cpu', 'live', 'requires'}


def _texts(tree: Any) -> list[str]:
    """Return every string in a tree of lists and mappings, including keys. Strings that cannot be
    names are left out: names of fields, and values that Nova or the format of snapshots defines,
    such as a status."""
    if isinstance(tree, str):
        return [tree]
    if isinstance(tree, dict):
        is_row = 'uuid' in tree or 'taken_at' in tree or 'instance_uuid' in tree
        return [text for key, value in tree.items() if not (is_row and key in _ENUMERATED)
                for text in ([] if is_row else _texts(key)) + _texts(value)]
    if isinstance(tree, list | tuple):
        return [text for each in tree for text in _texts(each)]
    return []


def _numbered(values: Iterable[str | None], pseudonym: Callable[[int], str]) -> dict[str, str]:
    present = sorted({value for value in values if value is not None})
    return {value: pseudonym(number) for number, value in enumerate(present, 1)}


def _uuids(kind: int) -> Callable[[int], str]:
    return lambda number: f'{kind:08d}-0000-4000-8000-{number:012d}'


class _Names:
    """The pseudonyms of all names and ids of a snapshot. Each kind of object has its own table
    {original: pseudonym}."""

    def __init__(self, snapshot: Snapshot):
        hosts, instances = snapshot.hosts, snapshot.instances
        aggregates, groups = snapshot.aggregates, snapshot.server_groups
        self.host = _numbered([h.name for h in hosts], 'host-{:05d}'.format)
        self.host_uuid = _numbered([h.uuid for h in hosts], _uuids(1))
        self.cell = _numbered([h.cell for h in hosts], 'cell{}'.format)
        # A server group may have members that are deleted and so not in the snapshot.
        self.instance_uuid = _numbered(
            [*(i.uuid for i in instances), *(m for g in groups for m in g.members)], _uuids(2))
        self.domain = _numbered([i.name for i in instances], 'instance-{:08x}'.format)
        self.display_name = _numbered([i.display_name for i in instances], 'vm-{:06d}'.format)
        self.project = _numbered([i.project_id for i in instances], '{:032x}'.format)
        self.aggregate = _numbered([a.name for a in aggregates], 'aggregate-{:03d}'.format)
        self.aggregate_uuid = _numbered([a.uuid for a in aggregates], _uuids(3))
        self.zone = _numbered([a.availability_zone for a in aggregates], 'zone-{}'.format)
        self.group = _numbered([g.name for g in groups], 'group-{:04d}'.format)
        self.group_uuid = _numbered([g.uuid for g in groups], _uuids(4))
        self.flavor = _numbered([*(i.flavor.name for i in instances if i.flavor),
                                 *(flavor.name for flavor in snapshot.flavors)],
                                'flavor-{:03d}'.format)
        self.image = _numbered([i.image.id for i in instances if i.image and i.image.id], _uuids(6))
        self.shared_uuid = _numbered([p.uuid for p in snapshot.shared_providers], _uuids(5))
        self.alias = _numbered([each.alias for each in _devices(snapshot)], 'device-{}'.format)
        self.custom = _numbered(_custom(snapshot), 'CUSTOM_{:05d}'.format)
        self._anything = {
            **self.custom, **self.alias, **self.flavor, **self.image,
            **self.display_name, **self.domain, **self.group, **self.group_uuid,
            **self.aggregate_uuid, **self.shared_uuid, **self.cell, **self.zone, **self.aggregate,
            **self.project, **self.host, **self.host_uuid, **self.instance_uuid}
        self._pseudonyms = frozenset(self._anything.values())
        self._words: dict[str, str] = {}
        self._keys: dict[str, str] = {}

    def is_original(self, word: str) -> bool:
        """Return True if a word is a name or an id of the recorded cloud. Return False for any
        other word, and for a name that is also a pseudonym or a plain number."""
        return (word in self._anything and word not in self._pseudonyms
                and not _PLAIN.fullmatch(word))

    def in_text(self, text: str) -> str:
        """Return a text in which each word is replaced by a pseudonym. Equal words get equal
        pseudonyms. Numbers and the operators of Nova's filters are kept."""
        return _WORD.sub(lambda word: self._word(word[0]), text)

    def _word(self, word: str) -> str:
        if word in self._anything:
            return self._anything[word]
        if _PLAIN.fullmatch(word):
            return word
        return self._words.setdefault(word, f'value-{len(self._words) + 1}')

    def classes(self, amounts: Mapping[str, Any] | None) -> Any:
        """Return a copy of {resource class: amount} with pseudonyms for custom classes. Return None
        if ``amounts`` is None."""
        return amounts and {self.custom.get(name, name): amount
                            for name, amount in amounts.items()}

    def traits(self, traits: Iterable[str]) -> tuple[str, ...]:
        """Return the traits, sorted, in which custom traits are replaced by pseudonyms."""
        return tuple(sorted(self.custom.get(trait, trait) for trait in traits))

    def key(self, key: str) -> str:
        """Return the pseudonym of a key of an aggregate's metadata or of a flavor's extra specs. A
        key that Nova or Kronos defines is returned unchanged."""
        if key.startswith(_SPEC):
            return _SPEC + self.key(key.removeprefix(_SPEC))
        if key.startswith(_TENANTS):
            rest = key.removeprefix(_TENANTS)
            return _TENANTS + (rest and '-' + self._keys.setdefault(rest, f'{len(self._keys) + 1}'))
        if _KNOWN_KEY.fullmatch(key):
            return _CUSTOM.sub(lambda word: self.custom[word[0]], key)
        prefix = _PREFIX.match(key)
        if prefix:
            rest = key[prefix.end():]
            return prefix[0] + self._keys.setdefault(rest, f'key-{len(self._keys) + 1}')
        return self._keys.setdefault(key, f'key-{len(self._keys) + 1}')


def _devices(snapshot: Snapshot) -> Iterator[numa.Pool | numa.Device]:
    """Yield the device pools of all hosts, and the devices that instances and flavors need."""
    for host in snapshot.hosts:
        yield from host.pools or ()
    for instance in snapshot.instances:
        yield from instance.devices
    for flavor in snapshot.flavors:
        yield from flavor.devices


def _custom(snapshot: Snapshot) -> set[str]:
    """Return the names of all custom traits and resource classes (``CUSTOM_...``) in the
    snapshot."""
    amounts: list[Iterable[str]] = [
        each for host in snapshot.hosts for each in (host.inventory, host.used or {})]
    amounts += [each for shared in snapshot.shared_providers
                for each in (shared.inventory, shared.used)]
    amounts += [each for instance in snapshot.instances
                for each in (instance.resources, instance.shared_resources,
                             instance.flavor_extra_specs,
                             *([instance.image.properties] if instance.image else ()))]
    amounts += [aggregate.metadata for aggregate in snapshot.aggregates]
    amounts += [host.traits or () for host in snapshot.hosts]
    amounts += [[each.resource_class or ''] for host in snapshot.hosts
                for each in host.pools or ()]
    amounts += [each for instance in snapshot.instances
                for each in (instance.requires.traits, instance.requires.forbidden)]
    amounts += [each for flavor in snapshot.flavors
                for each in (flavor.resources, flavor.extra_specs)]
    amounts += [move.arrived for move in snapshot.moves_under_way]
    return {word for keys in amounts for key in keys for word in _CUSTOM.findall(key)}


_ABSENT = 'unknown-1'
"""Pseudonym of a host that is not in the snapshot, for rules that name only such hosts."""


def _snapshot(snapshot: Snapshot, names: _Names) -> Snapshot:
    return dataclasses.replace(
        snapshot,
        hosts=tuple(_host(host, names) for host in snapshot.hosts),
        instances=tuple(_instance(instance, names) for instance in snapshot.instances),
        aggregates=tuple(_aggregate(aggregate, names) for aggregate in snapshot.aggregates),
        server_groups=tuple(dataclasses.replace(
            group, uuid=names.group_uuid[group.uuid], name=names.group[group.name],
            members=tuple(names.instance_uuid[member] for member in group.members))
            for group in snapshot.server_groups),
        moves_under_way=tuple(dataclasses.replace(
            move, instance_uuid=names.instance_uuid[move.instance_uuid],
            source=names.host[move.source], destination=names.host[move.destination],
            arrived=names.classes(move.arrived))
            for move in snapshot.moves_under_way),
        shared_providers=tuple(dataclasses.replace(
            shared, uuid=names.shared_uuid[shared.uuid],
            inventory=names.classes(shared.inventory), used=names.classes(shared.used),
            hosts=tuple(names.host[host] for host in shared.hosts))
            for shared in snapshot.shared_providers),
        flavors=tuple(dataclasses.replace(
            flavor, name=names.flavor[flavor.name], id=names.flavor[flavor.name],
            extra_specs=_values(flavor.extra_specs, names),
            resources=names.classes(flavor.resources),
            devices=_renamed_devices(flavor.devices, names)) for flavor in snapshot.flavors))


def _host(host: Host, names: _Names) -> Host:
    return dataclasses.replace(
        host, name=names.host[host.name], uuid=names.host_uuid[host.uuid],
        hypervisor_type=(host.hypervisor_type if host.hypervisor_type in _HYPERVISORS
                         else names.in_text(host.hypervisor_type)),
        cell=names.cell[host.cell], inventory=names.classes(host.inventory),
        used=names.classes(host.used),
        domains={names.key(level): names.in_text(name) for level, name in host.domains.items()},
        traits=None if host.traits is None else names.traits(host.traits),
        pools=host.pools and tuple(dataclasses.replace(
            pool, alias=names.alias[pool.alias],
            resource_class=pool.resource_class and names.custom.get(
                pool.resource_class, pool.resource_class)) for pool in host.pools),
        service=dataclasses.replace(host.service, disabled_reason=None))


def _instance(instance: Instance, names: _Names) -> Instance:
    return dataclasses.replace(
        instance, uuid=names.instance_uuid[instance.uuid], name=names.domain[instance.name],
        display_name=names.display_name[instance.display_name], host=names.host[instance.host],
        project_id=names.project.get(instance.project_id, instance.project_id),
        metadata=_wish(instance.metadata) | _apart(instance.metadata, names),
        resources=names.classes(instance.resources),
        shared_resources=names.classes(instance.shared_resources),
        flavor_extra_specs=_values(instance.flavor_extra_specs, names),
        flavor=instance.flavor and Flavor(name=names.flavor[instance.flavor.name]),
        image=instance.image and Image(
            id=names.image.get(instance.image.id, ''),
            properties=_values(instance.image.properties, names)),
        tags=tuple(names.in_text(tag) for tag in instance.tags),
        live=_movability(instance.live, names), requires=_requirements(instance.requires, names),
        devices=_renamed_devices(instance.devices, names))


def _renamed_devices(devices: Iterable[numa.Device], names: _Names) -> tuple[numa.Device, ...]:
    return tuple(dataclasses.replace(each, alias=names.alias[each.alias]) for each in devices)


def _movability(live: Movability, names: _Names) -> Movability:
    """Return a server's Movability with pseudonyms. A Movability says how Nova can move the server,
    and why. A reason in Nova's own words contains no names, and is kept."""
    return live if live.why in movability.REASONS else dataclasses.replace(
        live, why=names.in_text(live.why))


def _requirements(requires: Requirements, names: _Names) -> Requirements:
    return dataclasses.replace(
        requires, traits=names.traits(requires.traits), forbidden=names.traits(requires.forbidden),
        member_of=tuple(tuple(sorted(names.aggregate_uuid.get(uuid, uuid) for uuid in part))
                        for part in requires.member_of),
        image={key: value for key, value in requires.image.items()
               if key in requirements.COMPARED})


def _aggregate(aggregate: Aggregate, names: _Names) -> Aggregate:
    return dataclasses.replace(
        aggregate, name=names.aggregate[aggregate.name],
        uuid=names.aggregate_uuid[aggregate.uuid],
        availability_zone=names.zone.get(aggregate.availability_zone or ''),
        hosts=tuple(names.host[host] for host in aggregate.hosts),
        metadata=_values(aggregate.metadata, names))


def _values(mapping: Mapping[str, str], names: _Names) -> dict[str, str]:
    return {names.key(key): value if key == eligibility.KEY else names.in_text(value)
            for key, value in mapping.items()} | _wish(mapping)


def _wish(mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the entry ``kronos:move`` of metadata or extra specs as a dict; {} if there is no such
    entry. A value that Kronos does not know is replaced by ``never``, which has the same effect."""
    if eligibility.KEY not in mapping:
        return {}
    word = mapping[eligibility.KEY].strip().lower()
    return {eligibility.KEY: word if word in eligibility.WORDS else eligibility.NEVER}


def _apart(mapping: Mapping[str, str], names: _Names) -> dict[str, str]:
    """Return, as a dict, the metadata entry that keeps the members of a server's group in different
    failure domains; {} if there is no such entry. The level of the domains, such as a rack, is
    replaced by a pseudonym."""
    wish = mapping.get(domains.APART, '').strip()
    if not wish:
        return {}
    level = wish.removeprefix(domains.SOFT)
    return {domains.APART: wish.removesuffix(level) + names.key(level)}


def _policies(policies: PolicySet, snapshot: Snapshot, names: _Names) -> bytes:
    """Return the policies file as YAML, without comments and PromQL.

    PromQL is left out because a query may contain any name, and a replay needs no queries. In
    rules, servers and hosts have their pseudonyms. In buffers, aggregates and flavors have theirs.
    """
    tree = _unasked(policies.model_dump(exclude_none=True, exclude={'rules', 'buffers'}))
    parts = {'rules': list(_rules(Selections(policies.rules, snapshot), names)),
             'buffers': list(_buffers(policies.buffers, names))}
    return yaml.safe_dump(tree | {key: part for key, part in parts.items() if part},
                          sort_keys=False, width=100).encode()


def _buffers(buffers: Sequence[Buffer], names: _Names) -> Iterator[dict[str, Any]]:
    """Yield the buffers of the policies file with pseudonyms."""
    aggregates = _with_strangers(names.aggregate, [each.aggregate for each in buffers]) | {
        UNASSIGNED: UNASSIGNED}
    flavors = _with_strangers(names.flavor, [
        each.flavor for each in buffers if not shapes.TEXT.fullmatch(each.flavor)])
    for number, each in enumerate(buffers, 1):
        yield {'name': f'buffer-{number:03}', 'aggregate': aggregates[each.aggregate],
               'flavor': flavors.get(each.flavor, each.flavor), 'keep': each.keep}


def _rules(selections: Selections, names: _Names) -> Iterator[dict[str, Any]]:
    """Yield, with pseudonyms, the operators' rules that select servers of the snapshot. A rule that
    applies separately to each project becomes several rules, one for each project."""
    for number, found in enumerate(selections, 1):
        rule, hosts = found.rule, sorted(names.host[host] for host in found.hosts)
        wish = getattr(rule, rule.relation)
        if rule.places is not None:
            wish = {'hosts': hosts or [_ABSENT]}  # a rule without a host may forbid every host
        elif rule.move_only:
            wish = [_window(text, names) for text in rule.move_only]
        elif rule.level != HOST:
            wish = names.key(rule.level)
        for part, uuids in enumerate(found.parts if is_joint(rule) else (found.servers,), 1):
            if uuids:
                yield {'name': f'rule-{number:03}-{part}', rule.relation: wish,
                       **({} if rule.cost is None else {'cost': rule.cost}),
                       'servers': {'uuid': sorted(names.instance_uuid[uuid] for uuid in uuids)}}


def _unasked(tree: Any) -> Any:
    """Return a copy of the tree of a policies file, in which each query is replaced by the word
    "anonymised"."""
    if isinstance(tree, dict):
        return {key: 'anonymised' if key.endswith('_query') else _unasked(value)
                for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_unasked(each) for each in tree]
    return tree


def _labels(policies: PolicySet, names: _Names
            ) -> dict[tuple[str, str], dict[str, dict[str, str]]]:
    """Return {(policy, kind of query): {label: {value: pseudonym}}}. The labels are those that name
    the hosts or instances in the answer to the query."""
    migration = policies.migration
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for policy in policies.active:
        found |= {(policy.name, kind): {policy.host_label: names.host} for kind in metrics.KEYS}
        found[policy.name, metrics.VM_PROFILE][policy.vm_profile_label] = {
            'uuid': names.instance_uuid, 'name': names.domain,
            'display_name': names.display_name}[policy.vm_profile_label_type]
    for kind in metrics.OF_MIGRATION:
        found[metrics.MIGRATION, kind] = {migration.label: names.instance_uuid}
    found[metrics.MIGRATION, metrics.LINK] = {migration.host_label: names.host}
    return found


def _body(body: bytes, tables: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return the body of an answer of Prometheus in which the values of labels are replaced by
    pseudonyms. Labels that are not in ``tables`` are left out. A value that is not a name in the
    snapshot gets a pseudonym as well. A warning stays a warning, because plans do not use an answer
    with warnings, but its text is left out.

    :param tables: {label: {value: pseudonym}}
    """
    result = json.loads(body)['data']['result']
    known = {label: _with_strangers(table, {
        each['metric'][label] for each in result if label in each['metric']})
        for label, table in tables.items()}
    series = [{'metric': {label: known[label][value] for label, value in each['metric'].items()
                          if label in known},
               'value': each['value']} for each in result]
    warnings = ['anonymised' for _each in answer.read_vector(body, 'the answer').warnings]
    return json.dumps({'status': 'success', **({'warnings': warnings} if warnings else {}),
                       'data': {'resultType': 'vector', 'result': series}}).encode()


_AGGREGATES, _PROJECTS = 'aggregates', ('never_move_projects', 'only_evacuate_projects')
_BY_AGGREGATE, _WINDOWS = 'aggregate_automation', 'maintenance_window'
_FIXED_WORDS = frozenset(('move_hints', 'spread_planner', 'pack_planner'))
"""Names of options whose values are kept: the values are words of Kronos or names of planners."""
_EVERY = '*'


def _options(options: RecordedOptions, names: _Names) -> RecordedOptions:
    """Return the recorded options. Values that cannot contain a name, such as numbers, are kept. In
    the options whose values are names, such as ``aggregates``, the names are replaced by
    pseudonyms. All other options are left out, because their texts may contain names."""
    known = recorded_options.known_options()
    return {group: {name: value if _is_plain(known[group, name], value)
                    else _of_named(name, value, names)
                    for name, value in values.items()
                    if _is_plain(known[group, name], value) or _has_names(group, name)}
            for group, values in options.items()}


def _is_plain(opt: cfg.Opt, value: object) -> bool:
    return (value is None or isinstance(value, bool | int | float) or opt.dest in _FIXED_WORDS
            or getattr(opt.type, 'choices', None) is not None)


def _has_names(group: str, name: str) -> bool:
    return group == 'kronos' and name in (_AGGREGATES, *_PROJECTS, _BY_AGGREGATE, _WINDOWS)


def _of_named(name: str, value: Any, names: _Names) -> Any:
    if name == _WINDOWS:
        return [_window(text, names) for text in value]
    table = _with_strangers(names.project if name in _PROJECTS else names.aggregate, value)
    if isinstance(value, dict):
        return {table[key]: level for key, level in value.items()}
    return [table[each] for each in value]


def _window(text: str, names: _Names) -> str:
    aggregate, semicolon, rest = text.partition(';')
    table = _with_strangers(names.aggregate, [aggregate.strip()]) | {_EVERY: _EVERY}
    return table[aggregate.strip()] + semicolon + rest


def _with_strangers(table: Mapping[str, str], words: Iterable[str]) -> dict[str, str]:
    """Return a copy of a table of pseudonyms, with an additional pseudonym for each of ``words``
    that is not in the table."""
    return {**_numbered((word for word in words if word not in table), 'unknown-{}'.format),
            **table}


def _history(history: PlanningHistory, names: _Names) -> PlanningHistory:
    rows: tuple[PastMove | PastTry, ...] = (*history.moves, *history.tries)
    instance = _with_strangers(names.instance_uuid, [
        *(row.instance_uuid for row in rows), *history.refused, *history.refused_hosts,
        *history.caused,
        *history.instances_moved, *history.instances_moved_today,
        *(vm for policies in history.load_stats.values() for stats in policies.values()
          for vm in stats.vms)])
    host = _with_strangers(names.host, [
        *(end for row in rows for end in (row.source, row.destination)),
        *(each for hosts in history.refused_hosts.values() for each in hosts),
        *(host for pairs in history.doubted.values() for _policy, host in pairs)])
    aggregate = _with_strangers(names.aggregate, [
        *history.load_stats, *history.imbalanced, *history.doubted, *history.spread])
    project = _with_strangers(names.project, history.projects_moved)

    def row(each: R) -> R:
        return dataclasses.replace(
            each, instance_uuid=instance[each.instance_uuid], source=host[each.source],
            destination=host[each.destination])

    return PlanningHistory(
        load_stats={aggregate[name]: {
            policy: dataclasses.replace(stats, vms=tuple(instance[vm] for vm in stats.vms))
            for policy, stats in policies.items()}
            for name, policies in history.load_stats.items()},
        moves=tuple(map(row, history.moves)), tries=tuple(map(row, history.tries)),
        doubted={aggregate[name]: frozenset((policy, host[each]) for policy, each in pairs)
                 for name, pairs in history.doubted.items()},
        imbalanced=_renamed(history.imbalanced, aggregate),
        spread=_renamed(history.spread, aggregate),
        refused=_renamed(history.refused, instance), caused=_renamed(history.caused, instance),
        # Nova's errors may contain names.
        refused_hosts={instance[uuid]: {host[each]: 'anonymised' for each in hosts}
                       for uuid, hosts in history.refused_hosts.items()},
        instances_moved=_renamed(history.instances_moved, instance),
        instances_moved_today=_renamed(history.instances_moved_today, instance),
        projects_moved=_renamed(history.projects_moved, project))


def _renamed(mapping: Mapping[str, N], table: Mapping[str, str]) -> dict[str, N]:
    return {table[key]: value for key, value in mapping.items()}


def _texts_of_options(options: RecordedOptions) -> Iterator[str]:
    for group, values in options.items():
        for name, value in values.items():
            if _has_names(group, name):
                yield from value


def _texts_of_history(history: PlanningHistory) -> Iterator[str]:
    rows: tuple[PastMove | PastTry, ...] = (*history.moves, *history.tries)
    for row in rows:
        yield from (row.instance_uuid, row.source, row.destination)
    for part in (history.load_stats, history.doubted, history.imbalanced, history.spread,
                 history.refused, history.refused_hosts, history.caused,
                 history.instances_moved, history.instances_moved_today, history.projects_moved):
        yield from part
    for hosts in history.refused_hosts.values():
        yield from hosts
    for policies in history.load_stats.values():
        for stats in policies.values():
            yield from stats.vms
    for pairs in history.doubted.values():
        yield from (host for _policy, host in pairs)
