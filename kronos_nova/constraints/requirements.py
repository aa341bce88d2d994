"""The rules about requirements of servers. A server is kept off a host that does not meet the
requirements of the server's flavor, image and CPU.

The rules check only requirements that the snapshot has. No request is sent to Nova.
"""

import re
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.objects import host_checks
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import Cpu
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Requirements
from kronos_nova.objects.snapshot import Snapshot

ARCHITECTURE = 'COMPUTE_ARCH_'
ALSO_RUNS = {'x86_64': ('i686',), 'aarch64': ('armv7l',)}
"""{architecture of a host's processors: other architectures that these processors run}."""

OLD_ARCHITECTURES = {'i386': 'i686', 'i486': 'i686', 'i586': 'i686', 'amd64': 'x86_64',
                     'arm64': 'aarch64'}
"""{other name of an architecture, as in images: name that Nova uses}."""

HYPERVISORS = frozenset(('kvm', 'qemu'))
VIRTUAL_MACHINE = 'hvm'

EMULATED = frozenset(('x2apic', 'tsc-deadline', 'tsc_adjust', 'hypervisor', 'umip',
                      'arch-capabilities'))
"""CPU features that KVM gives a guest even if the processor does not have them."""

COMPARISON = re.compile(r'\s*(==|!=|<=|>=|<|>)\s*([0-9.]+)\s*')

Wanted = TypeVar('Wanted', bound=Hashable)
Offer = TypeVar('Offer', bound=Hashable)


class HostRequirements:
    """A constraint that keeps servers off hosts that do not meet the servers' requirements. Nova
    would refuse moves to these hosts. Each check gives a separate rule:

    traits : required and forbidden traits of the flavor and the image
    aggregates : aggregates that the server's ``member_of`` lists, and aggregates that are isolated
        by a trait
    image : architecture, hypervisor and hypervisor version that the image requires
    hypervisor : a live migration goes to the same hypervisor, in the same or a newer version
    cpu : the destination's processors have the features of the source's processors

    Each distinct requirement of servers is compared only once with each distinct set of properties
    of hosts. An unknown requirement or property forbids no host.
    """

    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[AllowedHosts, ...]:
        known = {host.name: host for host in snapshot.hosts}
        hosts = [known[name] for name in problem.hosts]
        by_uuid = {instance.uuid: instance for instance in snapshot.instances}
        every = [by_uuid[uuid].requires for uuid in problem.vms]
        # Servers of one kind share the object.
        numbers = {id(each): number for number, each in
                   enumerate({id(each): each for each in every}.values())}
        kind = np.array([numbers[id(each)] for each in every], dtype=np.intp)
        needs = list({id(each): each for each in every}.values())
        question = _Question(problem, hosts, needs, kind)
        compiled = {
            host_checks.TRAITS: question.traits,
            host_checks.AGGREGATES: lambda: question.aggregates(snapshot),
            host_checks.IMAGE: question.image,
            host_checks.HYPERVISOR: question.hypervisor,
            host_checks.CPU: question.cpu}
        return tuple(rule for check, rules_of in compiled.items() if check in rules.host_checks
                     for rule in rules_of())


class _Question:
    """The comparison of the requirements of servers with the properties of hosts. Properties of
    hosts are called offers.

    :param needs: the distinct requirements
    :param kind: intp (V,), position in ``needs`` of each instance's requirements
    """

    def __init__(self, problem: Problem, hosts: Sequence[Host], needs: Sequence[Requirements],
                 kind: np.ndarray):
        self._problem, self._hosts, self._needs, self._kind = problem, hosts, needs, kind

    def traits(self) -> tuple[AllowedHosts, ...]:
        named = frozenset(trait for each in self._needs
                          for trait in (*each.traits, *each.forbidden))
        offers = [None if host.traits is None else named.intersection(host.traits)
                  for host in self._hosts]
        wanted = [(each.traits, each.forbidden) for each in self._needs]
        # A forbidden trait that the server's own host has does not count: placement checks single
        # providers, and another provider of the host's tree may have it.
        kind, wanted = self._seen_from_home(
            wanted, [bool(each.forbidden) for each in self._needs], offers,
            lambda want, here: (want[0], tuple(trait for trait in want[1]
                                               if trait not in (here or ()))))
        return self._rule(kind, wanted, offers, _lacks_trait)

    def aggregates(self, snapshot: Snapshot) -> tuple[AllowedHosts, ...]:
        """Return the rule that keeps servers in the aggregates that they request, and out of
        isolated aggregates.

        An aggregate may be isolated by a trait. Only servers that require the trait may then use
        the aggregate (``[scheduler] enable_isolated_aggregate_filtering``).
        """
        known = {aggregate.uuid: aggregate for aggregate in snapshot.aggregates}
        isolating = {aggregate.uuid: traits for aggregate in snapshot.aggregates
                     if (traits := _isolating(aggregate))}
        isolated = frozenset(trait for traits in isolating.values() for trait in traits)
        asked_for = {uuid for each in self._needs for part in each.member_of for uuid in part}
        inside: dict[str, set[str]] = {name: set() for name in self._problem.hosts}
        for aggregate in snapshot.aggregates:
            if aggregate.uuid in isolating or aggregate.uuid in asked_for:
                for name in inside.keys() & set(aggregate.hosts):
                    inside[name].add(aggregate.uuid)

        def lack(wanted: tuple[tuple[tuple[str, ...], ...], frozenset[str]],
                 uuids: frozenset[str]) -> str:
            member_of, traits = wanted
            for part in member_of:
                if uuids.isdisjoint(part):
                    names = ', '.join(known[uuid].name for uuid in part if uuid in known)
                    return f'is in no aggregate that the server asks for: {names}'
            for uuid in sorted(uuids & isolating.keys()):
                if not isolating[uuid] <= traits:
                    return (f'is in the aggregate {known[uuid].name}, which is for servers that '
                            f'require {", ".join(sorted(isolating[uuid] - traits))}')
            return ''

        offers = [frozenset(uuids) for uuids in inside.values()]
        wanted = [(each.member_of, isolated.intersection(each.traits)) for each in self._needs]
        # Where a server's own host is in none of the aggregates, their meaning is not known.
        kind, wanted = self._seen_from_home(
            wanted, [bool(each.member_of) for each in self._needs], offers,
            lambda want, here: (tuple(part for part in want[0] if not here.isdisjoint(part)),
                                want[1]))
        return self._rule(kind, wanted, offers, lack)

    def image(self) -> tuple[AllowedHosts, ...]:
        return self._rule(
            self._kind, [tuple(sorted(each.image.items())) for each in self._needs],
            [_machine(host) for host in self._hosts], _lacks_machine)

    def hypervisor(self) -> tuple[AllowedHosts, ...]:
        offers = [(host.hypervisor_type, host.hypervisor_version) for host in self._hosts]
        return self._rule(self._problem.vm_host, offers, offers, _is_older)

    def cpu(self) -> tuple[AllowedHosts, ...]:
        offers = [host.cpu for host in self._hosts]
        # For a guest with a named CPU model, Nova compares the model.
        has_model = np.array([bool(each.cpu_model) for each in self._needs], dtype=bool)
        kind = np.where(has_model[self._kind], len(offers), self._problem.vm_host)
        return self._rule(kind, [*offers, None], offers, _lacks_cpu)

    def _seen_from_home(self, wanted: Sequence[Wanted], depends: Sequence[bool],
                        offers: Sequence[Offer], narrowed: Callable[[Wanted, Offer], Wanted]
                        ) -> tuple[np.ndarray, list[Wanted]]:
        """Return the requirement of each instance, without the parts that its present host does not
        meet. A part is a forbidden trait or a list of requested aggregates. If the snapshot says
        that the present host does not meet a part, Nova has accepted the host nevertheless. So Nova
        decides by data that the snapshot does not have, and the part cannot be checked.

        :param wanted: distinct requirements, in the order of ``needs``
        :param depends: for each requirement, whether it has parts that are left out if the present
            host does not meet them
        :param offers: properties of each host
        :param narrowed: function of (requirement, properties of the present host) that returns the
            requirement without the parts that the host does not meet
        :returns: (intp (V,), the position of each instance's requirement in the list; the list of
            requirements)
        """
        kind, more = self._kind.copy(), list(wanted)
        for vm in np.flatnonzero(np.array(depends, dtype=bool)[kind]).tolist():
            more.append(narrowed(wanted[kind[vm]], offers[self._problem.vm_host[vm]]))
            kind[vm] = len(more) - 1
        return kind, more

    def _rule(self, kind: np.ndarray, wanted: Sequence[Wanted], offers: Sequence[Offer],
              lack: Callable[[Wanted, Offer], str]) -> tuple[AllowedHosts, ...]:
        """Return (rule,): the rule that keeps each instance off hosts that do not meet the
        instance's requirement. Return () if every host meets the requirement of every instance.

        :param kind: intp (V,), position in ``wanted`` of each instance's requirement
        :param wanted: the requirements
        :param offers: properties of each host
        :param lack: function of (requirement, properties) that returns a text about the unmet part
            of the requirement; '' if the host meets the requirement
        """
        present, kind = np.unique(kind, return_inverse=True)
        needs = [wanted[position] for position in present.tolist()]
        kinds = {each: number for number, each in enumerate(dict.fromkeys(needs))}
        sorts = {each: number for number, each in enumerate(dict.fromkeys(offers))}
        missing = [[lack(each, offer) for offer in sorts] for each in kinds]
        if not any(map(any, missing)):
            return ()
        kind = np.array([kinds[each] for each in needs], dtype=np.intp)[kind]
        sort = np.array([sorts[each] for each in offers], dtype=np.intp)

        def why(state: State, vm: int, host: int) -> str:
            return f'{self._problem.hosts[host]} {missing[kind[vm]][sort[host]]}'

        allowed = np.array([[not text for text in row] for row in missing], dtype=bool)
        return (AllowedHosts(reason='refused', why=why, kind=kind, allowed=allowed[:, sort]),)


def _lacks_trait(wanted: tuple[tuple[str, ...], tuple[str, ...]],
                 traits: frozenset[str] | None) -> str:
    if traits is None:
        return ''
    required, forbidden = wanted
    missing = [trait for trait in required if trait not in traits]
    if missing:
        return f'lacks {_listed("trait", missing)}'
    found = [trait for trait in forbidden if trait in traits]
    return f'has {_listed("trait", found)}, which the flavor forbids' if found else ''


def _listed(noun: str, words: Sequence[str]) -> str:
    return f'the {noun}{"s" if len(words) > 1 else ""} {", ".join(words)}'


def _isolating(aggregate: Aggregate) -> frozenset[str]:
    return frozenset(key.removeprefix('trait:') for key, value in aggregate.metadata.items()
                     if key.startswith('trait:') and value == 'required')


def _machine(host: Host) -> tuple[frozenset[str] | None, int | None]:
    """Return (architectures that a host runs, version of its hypervisor as Nova's integer). An
    element is None if it is not known."""
    emulated = {trait.removeprefix(ARCHITECTURE).lower() for trait in host.traits or ()
                if trait.startswith(ARCHITECTURE)}
    own = host.cpu.arch if host.cpu else None
    runs = emulated | ({own, *ALSO_RUNS.get(own, ())} if own else set())
    return (frozenset(runs) if own else None), host.hypervisor_version


def _lacks_machine(image: tuple[tuple[str, str], ...],
                   machine: tuple[frozenset[str] | None, int | None]) -> str:
    """Return a text about the first property of an image that a host does not support; '' if the
    host supports all properties. The comparison is that of Nova's ImagePropertiesFilter for the
    libvirt driver."""
    (runs, version), wanted = machine, dict(image)
    arch = wanted.get('hw_architecture', '').lower()
    arch = OLD_ARCHITECTURES.get(arch, arch)
    if arch and runs is not None and arch not in runs:
        return f'does not run {arch}, the architecture of the image'
    if wanted.get('img_hv_type', 'qemu').lower() not in HYPERVISORS:
        return f'is no {wanted["img_hv_type"]} hypervisor, which the image asks for'
    if wanted.get('hw_vm_mode', VIRTUAL_MACHINE).lower() != VIRTUAL_MACHINE:
        return f'has no {wanted["hw_vm_mode"]} mode, which the image asks for'
    needed = wanted.get('img_hv_requested_version', '')
    # The filter checks the version only where the image has another of these properties.
    if version and needed and len(wanted) > 1 and not _satisfies(version, needed):
        return f'has a hypervisor of version {_dotted(version)}, and the image asks for {needed}'
    return ''


def _satisfies(version: int, needed: str) -> bool:
    """Return True if a hypervisor's version meets every comparison in the version property of an
    image; False otherwise. A property that Nova cannot parse permits every version.

    :param needed: value of the property, such as ``>=2.6,<5``
    """
    parts = [COMPARISON.fullmatch(part) for part in needed.split(',')]
    if not all(parts):
        return True
    numbers = _numbers(_dotted(version))
    compare = {'==': numbers.__eq__, '!=': numbers.__ne__, '<': numbers.__lt__,
               '<=': numbers.__le__, '>': numbers.__gt__, '>=': numbers.__ge__}
    return all(compare[part[1]](_numbers(part[2])) for part in parts if part)


def _dotted(version: int) -> str:
    return f'{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}'


def _numbers(dotted: str) -> tuple[int, ...]:
    return tuple(int(part or 0) for part in f'{dotted}.0.0'.split('.'))[:3]


def _is_older(home: tuple[str, int | None], there: tuple[str, int | None]) -> str:
    """Return a text that says why Nova's conductor would refuse the hypervisor of the destination;
    '' if the conductor would accept the hypervisor.

    :param home, there: (type, version) of the hypervisors of the server's host and of the
        destination
    """
    if home[0] != there[0]:
        return f'has the hypervisor {there[0]}, and the server runs on {home[0]}'
    if home[1] and there[1] and there[1] < home[1]:
        return f'has {there[0]} {_dotted(there[1])}, older than {_dotted(home[1])} of its host'
    return ''


def _lacks_cpu(home: Cpu | None, there: Cpu | None) -> str:
    """Return a text that says why the destination's processors cannot run the server; '' if no
    reason is known. The processors may have another architecture, or may lack CPU features of the
    source's processors. Features are compared as libvirt compares features for Nova. On Arm, the
    result is ''."""
    if home is None or there is None or home == there or home.arch == 'aarch64':
        return ''
    if home.arch != there.arch:
        return f'has {there.arch} processors, and the server runs on {home.arch}'
    missing = sorted(set(home.features) - set(there.features) - EMULATED)
    if not (missing and there.features):
        return ''
    return (f'has a {there.model} without {", ".join(missing[:3])}'
            f'{" and others" if len(missing) > 3 else ""} of the {home.model} of its host')
