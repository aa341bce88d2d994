"""A mixed cloud: kinds of servers that few hosts can hold, and the hosts that can."""

import dataclasses

import numpy as np

MIXED = 0.4
"""Part of the servers that need something few hosts have."""
TRAIT, FORBIDDEN = 'CUSTOM_LICENCE', 'CUSTOM_OLD_DISKS'
ALIAS = 'gpu'
VENDOR, PRODUCT = '10de', '2204'
NEW, OLD = 8_002_002, 7_002_000
"""Versions of QEMU, as Nova counts them."""
CARRIERS = 0.15
"""Part of the hosts that carry each thing that servers need."""
DEVICES_TO_SPARE = 1.1
"""Devices of a cloud for each server that needs one."""
PINNED_PART = 0.5
"""Part of the cores of a host with pinned cores that are."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Servers with equal needs.

    share : of those that need something
    carried_by : the property of hosts that they need; '' for all hosts
    is_pinned : its VCPUs are dedicated: PCPU in placement
    """

    name: str
    share: float = 0.0
    extra_specs: dict[str, str] = dataclasses.field(default_factory=dict)
    image: dict[str, str] = dataclasses.field(default_factory=dict)
    carried_by: str = ''
    is_pinned: bool = False


PLAIN = Kind(name='plain')
KINDS = (
    PLAIN,
    Kind(name='licence', share=0.2, extra_specs={f'trait:{TRAIT}': 'required'},
         carried_by='trait'),
    Kind(name='no-old-disks', share=0.1, extra_specs={f'trait:{FORBIDDEN}': 'forbidden'},
         carried_by='new disks'),
    Kind(name='gpu', share=0.15, extra_specs={'pci_passthrough:alias': f'{ALIAS}:1'},
         carried_by='devices'),
    Kind(name='two-nodes', share=0.15, extra_specs={'hw:numa_nodes': '2'}, carried_by='topology'),
    Kind(name='pinned', share=0.15, extra_specs={'hw:cpu_policy': 'dedicated'},
         carried_by='pinned cores', is_pinned=True),
    Kind(name='new-qemu', share=0.15, carried_by='new qemu', image={
        'hw_architecture': 'x86_64', 'img_hv_type': 'kvm', 'img_hv_requested_version': '>=8.2.0'}),
    Kind(name='image-trait', share=0.1, image={f'trait:{TRAIT}': 'required'}, carried_by='trait'))
"""The kinds of servers; the shares sum to 1."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The properties of a host.

    has : properties, as kinds name them
    """

    has: frozenset[str]
    devices: int = 0

    @property
    def traits(self) -> tuple[str, ...]:
        return (*([TRAIT] if 'trait' in self.has else ()),
                *([] if 'new disks' in self.has else [FORBIDDEN]))

    @property
    def qemu(self) -> int:
        return NEW if 'new qemu' in self.has else OLD

    @property
    def has_cells(self) -> bool:
        """Return whether nova-compute reports a NUMA topology."""
        return not self.has.isdisjoint(('topology', 'pinned cores'))


def filled(scenario, part: float):
    """Return the scenario with another amount of memory in its hosts, of which the servers have the
    given part."""
    needed = scenario.vm_memory_mb.sum() / scenario.hosts / part
    return dataclasses.replace(
        scenario, memory_mb=round(max(needed, 2.0 * scenario.vm_memory_mb.max())))


@dataclasses.dataclass(frozen=True, slots=True)
class Mix:
    """The kind of each server, and the machine of each host."""

    kinds: tuple[Kind, ...]
    machines: tuple[Machine, ...]

    @classmethod
    def drawn(cls, seed: int, hosts: int, vms: int) -> 'Mix':
        """Draw a mix. Of new disks most hosts have some; of all else a quarter."""
        rng = np.random.default_rng([seed, hosts, vms])
        special = rng.random(vms) < MIXED
        drawn = rng.choice(len(KINDS), vms, p=[kind.share for kind in KINDS])
        kinds = tuple(KINDS[number] if is_special else PLAIN
                      for number, is_special in zip(drawn, special, strict=True))
        has: list[set[str]] = [set() for _host in range(hosts)]
        for name in dict.fromkeys(kind.carried_by for kind in KINDS if kind.carried_by):
            part = 1 - CARRIERS if name == 'new disks' else CARRIERS
            for host in rng.choice(hosts, max(3, round(part * hosts)), replace=False).tolist():
                has[host].add(name)
        carriers = sum('devices' in each for each in has)
        wanted = sum(kind.carried_by == 'devices' for kind in kinds)
        each = int(np.ceil(DEVICES_TO_SPARE * wanted / carriers))
        return cls(kinds, tuple(Machine(has=frozenset(names),
                                        devices=each if 'devices' in names else 0)
                                for names in has))
