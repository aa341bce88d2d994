"""The cloud after hypothetical changes: other allocation ratios, new hosts, lost hosts and new
servers."""

import dataclasses
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

import numpy as np

from kronos_nova import exception
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import numa as model_numa
from kronos_nova.objects import domains
from kronos_nova.objects import numa
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.room import failover
from kronos_nova.room import shapes
from kronos_nova.room import whole
from kronos_nova.room.slots import SlotCounter

ADDED = re.compile(r'([0-9]{1,4}):like=(.+)')
BOOTED = re.compile(r'([0-9]{1,4}):(.+)')
RATIO = re.compile(r'([A-Z0-9_]+)=([0-9]{1,6}(?:\.[0-9]{1,6})?)')

MOST_NEW = 10_000
"""Maximum number of new hosts, or of new servers, that a request may add to a hypothetical cloud.
Raised, a request may take more memory and time; lowered, large extensions of a cloud cannot be
tried. Chosen as the smallest number of five digits."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Hypothetical changes of a cloud. The changes are made in the order of the fields.

    ratio : texts such as ``VCPU=8``: the allocation ratio of a resource class on all hosts
    add : texts such as ``2:like=compute1``: two new empty hosts like compute1
    lose : names of hosts that fail together, or failure domains such as ``rack=r3``
    boot : texts such as ``3:m1.large``: three new servers of this flavor; or ``3:4:8192``: three
        new servers with 4 VCPUs and 8192 MiB of memory
    """

    ratio: Sequence[str] = ()
    add: Sequence[str] = ()
    lose: Sequence[str] = ()
    boot: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The cloud after hypothetical changes, and the outcome of the changes.

    snapshot : the cloud after the changes
    left : {uuid of a server that was on a lost host and cannot restart: reason}
    not_booted : {name of a shape: number of its new servers that find no room}
    restarted : {uuid of a server that was on a lost host and restarts: its new host}
    added : {name of a new host: name of the host that it is like}
    """

    snapshot: Snapshot
    left: dict[str, str]
    not_booted: dict[str, int]
    restarted: dict[str, str] = dataclasses.field(default_factory=dict)
    added: dict[str, str] = dataclasses.field(default_factory=dict)


def changed(snapshot: Snapshot, rules: ConstraintRules, changes: Changes,
            flavors: Callable[[], Iterable[Shape]], project_id: str = '') -> Changed:
    """Return the cloud after hypothetical changes.

    :raises RequestRefused: a text of a change is invalid
    :raises HostNotFound: a named host does not exist
    """
    for texts, pattern, what in ((changes.add, ADDED, 'hosts'), (changes.boot, BOOTED, 'servers')):
        _refuse_many(texts, pattern, what)
    for text in changes.ratio:
        snapshot = _with_ratio(snapshot, text)
    added: dict[str, str] = {}
    for text in changes.add:
        snapshot, new = _with_hosts(snapshot, text)
        added |= {name: added.get(like, like) for name, like in new.items()}
    left, restarted = dict[str, str](), dict[str, str]()
    if changes.lose:
        snapshot, left, restarted = _without(snapshot, rules, changes.lose)
    not_booted: dict[str, int] = {}
    for text in changes.boot:
        snapshot, name, missing = _with_servers(snapshot, rules, text, flavors, project_id)
        if missing:
            not_booted[name] = not_booted.get(name, 0) + missing
    return Changed(snapshot=snapshot, left=left, not_booted=not_booted, restarted=restarted,
                   added=added)


def _refuse_many(texts: Iterable[str], pattern: re.Pattern[str], what: str) -> None:
    """Refuse texts that together add more new hosts or servers than one request may.

    :raises RequestRefused: there are more than :data:`MOST_NEW` in all
    """
    count = sum(int(found[1]) for found in map(pattern.fullmatch, texts) if found)
    if count > MOST_NEW:
        raise exception.RequestRefused(
            what=f'{count} new {what}', problem=f'one request may add {MOST_NEW} at most',
            remedy=f'Ask for fewer {what}.')


def _parsed(pattern: re.Pattern[str], text: str, what: str, form: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if not found:
        raise exception.RequestRefused(what=f'{what} {text}', problem='has the wrong form',
                                       remedy=f'Write it as {form}.')
    return found


def _with_ratio(snapshot: Snapshot, text: str) -> Snapshot:
    found = _parsed(RATIO, text, 'ratio', 'CLASS=RATIO, such as VCPU=8')
    name, ratio = found[1], float(found[2])
    if not any(name in host.inventory for host in snapshot.hosts):
        raise exception.RequestRefused(
            what=f'ratio {text}', problem=f'no host has the resource class {name}',
            remedy='"openstack resource class list" shows the names.')
    if not ratio:
        raise exception.RequestRefused(what=f'ratio {text}', problem='must be more than 0',
                                       remedy='Write it as CLASS=RATIO, such as VCPU=8.')
    return dataclasses.replace(snapshot, hosts=tuple(dataclasses.replace(host, inventory={
        key: dataclasses.replace(each, allocation_ratio=ratio) if key == name else each
        for key, each in host.inventory.items()}) for host in snapshot.hosts))


def _with_hosts(snapshot: Snapshot, text: str) -> tuple[Snapshot, dict[str, str]]:
    """Return the cloud with new hosts, and {name of a new host: name of the host that it is
    like}."""
    found = _parsed(ADDED, text, 'add', 'COUNT:like=HOST')
    count, model = int(found[1]), _named(snapshot, found[2])
    known = {host.name for host in snapshot.hosts}
    names = [name for name in (f'{model.name}+{n}' for n in range(1, count + len(known) + 1))
             if name not in known][:count]
    added = [dataclasses.replace(model, name=name, uuid=f'{shapes.NEW}{name}', used={},
                                 cells=model.cells and tuple(map(numa.emptied, model.cells)))
             for name in names]
    aggregates = tuple(
        dataclasses.replace(each, hosts=(*each.hosts, *names)) if model.name in each.hosts
        else each for each in snapshot.aggregates)
    pools = tuple(
        dataclasses.replace(each, hosts=(*each.hosts, *names)) if model.name in each.hosts
        else each for each in snapshot.shared_providers)
    return (dataclasses.replace(snapshot, hosts=(*snapshot.hosts, *added), aggregates=aggregates,
                                shared_providers=pools), dict.fromkeys(names, model.name))


def _named(snapshot: Snapshot, name: str) -> Host:
    for host in snapshot.hosts:
        if host.name == name:
            return host
    raise exception.HostNotFound(what=f'Host {name}', problem='there is no host of that name',
                                 remedy='"openstack hypervisor list" shows the names of hosts.')


def hosts_of(snapshot: Snapshot, names: Iterable[str]) -> list[str]:
    """Return the names of hosts. Each failure domain in ``names`` is replaced by its hosts.

    :raises HostNotFound: there is no host of one of the names
    :raises RequestRefused: no host is in one of the failure domains
    """
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys(domains.needed_hosts_in(snapshot.hosts, name) if '=' in name
                               else [_named(snapshot, name).name])
    return list(found)


def _without(snapshot: Snapshot, rules: ConstraintRules,
             names: Iterable[str]) -> tuple[Snapshot, dict[str, str], dict[str, str]]:
    """Return the cloud without some hosts, after their servers have restarted on other hosts. If
    not all servers fit, the servers are placed by size, the largest first, and servers that find no
    host are left out.

    :returns: (the cloud, ``left``, ``restarted``) of :class:`Changed`
    """
    judge = failover.failover_of(snapshot, rules)
    lost = hosts_of(snapshot, names)
    verdict = judge.judge([judge.index(name) for name in lost])
    placement = verdict.placement or judge.place_most([judge.index(name) for name in lost])
    gone = {each.uuid for each in snapshot.instances if each.host in lost}
    instances = tuple(
        dataclasses.replace(each, host=placement.get(each.uuid, each.host))
        for each in snapshot.instances if each.uuid not in gone or each.uuid in placement)
    left = {uuid: verdict.left.get(uuid, 'no host has room for it after the others')
            for uuid in sorted(gone - placement.keys())}
    kept = dataclasses.replace(
        snapshot, instances=tuple(each for each in instances if each.uuid not in gone),
        hosts=tuple(host for host in snapshot.hosts if host.name not in lost),
        moves_under_way=tuple(
            move for move in snapshot.moves_under_way
            if move.instance_uuid not in gone and move.destination not in lost))
    return _with_arrived(kept, [each for each in instances if each.uuid in gone],
                         rules.packs_numa_cells), left, {
        uuid: placement[uuid] for uuid in sorted(gone & placement.keys())}


def _with_arrived(snapshot: Snapshot, arrived: list[Instance], packs: bool) -> Snapshot:
    """Return the cloud with further instances on its hosts, in the NUMA cells that Nova would
    choose."""
    hosts = [_holding(host, [each for each in arrived if each.host == host.name])
             for host in snapshot.hosts]
    at = {host.name: number for number, host in enumerate(hosts)}
    hosts, arrived = model_numa.settled(
        hosts, arrived, np.array([at[each.host] for each in arrived], dtype=np.intp), packs)
    return dataclasses.replace(snapshot, hosts=tuple(hosts),
                               instances=(*snapshot.instances, *arrived))


def _holding(host: Host, more: Iterable[Instance]) -> Host:
    """Return the host, with the resources of the instances ``more`` counted as used."""
    for each in more:
        host = whole.with_used(host, each.resources)
    return host


def _with_servers(snapshot: Snapshot, rules: ConstraintRules, text: str,
                  flavors: Callable[[], Iterable[Shape]],
                  project_id: str) -> tuple[Snapshot, str, int]:
    """Return (the cloud with new servers, name of their shape, number of servers without room).
    Each server is placed on the host that has most room for such servers at that time."""
    found = _parsed(BOOTED, text, 'boot', 'COUNT:FLAVOR')
    count, [shape] = int(found[1]), shapes.named([found[2]], flavors())
    counter = SlotCounter(snapshot, rules, [shape], project_id=project_id)
    hosts = counter.spread(0, count)
    prefix = f'{shapes.NEW}server {shape.name}/'
    first = 1 + sum(each.uuid.startswith(prefix) for each in snapshot.instances)
    booted = [shapes.instance(shape, f'{prefix}{number:06d}', name, project_id)
              for number, name in enumerate(hosts, first)]
    return (_with_arrived(snapshot, booted, rules.packs_numa_cells), shape.name,
            count - len(hosts))
