"""Nova's own filters as the judge of moves, with hosts and requests as its scheduler has them.

Placement's part, traits and room, is worked out here from the same flavors.
"""

import collections
import logging

from bench.refusals import kinds
from kronos_nova.inventory.numa import Topology
from kronos_nova.inventory.numa import host_cells
from kronos_nova.inventory.numa import topology
from kronos_nova.objects.dry_run import NOTHING_BEFORE
from kronos_nova.objects.dry_run import Before
from kronos_nova.objects.numa import NumaCell

CELLS = 2
"""NUMA nodes of a host that reports its topology."""
FILTERS = ('compute_capabilities_filter.ComputeCapabilitiesFilter',
           'image_props_filter.ImagePropertiesFilter',
           'affinity_filter.ServerGroupAntiAffinityFilter',
           'affinity_filter.ServerGroupAffinityFilter',
           'numa_topology_filter.NUMATopologyFilter',
           'pci_passthrough_filter.PciPassthroughFilter')
"""Filters of Nova's default, and of its NUMA and PCI guides, that look at hosts. ComputeFilter
looks at services, which the world of the bench has."""


class Judge:
    """Decides for one cloud whether a server may go to a host.

    :param mix: kinds of the servers and machines of the hosts
    :param scenario: their sizes
    """

    def __init__(self, mix: kinds.Mix, scenario):
        _begin()
        self.mix, self._scenario = mix, scenario
        self._filters = _filters()
        self._specs = {}
        self._states: dict[int, tuple[tuple[int, ...], object, dict[int, Topology]]] = {}

    def lack(self, vm: int, host: int, residents: tuple[int, ...],
             before: Before = NOTHING_BEFORE, is_whole: bool = True) -> str:
        """Name the thing that a host lacks for a server; '' for none.

        :param residents: servers there, in the order in which they came, those on their way to it
            too
        :param before: moves of a plan; these count as much as a question to Nova's scheduler can
            say of them
        :param is_whole: whether room is asked for; otherwise for one shared processor
        """
        lack = self._placement_lacks(vm, host, residents, before, is_whole)
        if lack:
            return lack
        spec, state = self._spec(vm), self._state(host, residents + (vm,) * before.alike)
        for each in self._filters:
            state.allocation_candidates = [{'mappings': {}, 'allocations': {}}]
            state.limits = {}
            if not each.host_passes(state, spec):
                return type(each).__name__
        return ''

    def _placement_lacks(self, vm, host, residents, before, is_whole) -> str:
        wanted, machine = self._spec(vm).flavor.extra_specs, self.mix.machines[host]
        image = self.mix.kinds[vm].image
        for key, value in (*wanted.items(), *image.items()):
            if key.startswith('trait:') and (key[6:] in machine.traits) != (value == 'required'):
                return f'placement: {key[6:]}'
        used = collections.Counter()
        for each in residents:
            used.update(self.amounts(each))
        room = self.room(host)
        wanted = before.wanted(self.amounts(vm)) if is_whole else {
            name: amount if name == 'PCPU' else int(name == 'VCPU')
            for name, amount in self.amounts(vm).items()}
        return next((f'placement: {name}' for name, amount in wanted.items()
                     if amount and used[name] + amount > room[name]), '')

    def amounts(self, vm: int) -> dict[str, int]:
        """Return the amounts that placement allocates to a server, by resource class."""
        cores = 'PCPU' if self.mix.kinds[vm].is_pinned else 'VCPU'
        return {cores: int(self._scenario.vcpus[vm]),
                'MEMORY_MB': int(self._scenario.vm_memory_mb[vm])}

    def room(self, host: int) -> dict[str, int]:
        """Return the amounts that placement can allocate on a host, by resource class."""
        from bench.days import scenario as scenarios

        shared, pinned = self.cores(host)
        return {'VCPU': int(shared * scenarios.VCPU_RATIO), 'PCPU': pinned,
                'MEMORY_MB': self._scenario.memory_mb}

    def cores(self, host: int) -> tuple[int, int]:
        """Shared and pinned cores; an even number of the latter in each NUMA node."""
        cores = self._scenario.cores
        if 'pinned cores' not in self.mix.machines[host].has:
            return cores, 0
        pinned = int(cores * kinds.PINNED_PART) // (2 * CELLS) * 2 * CELLS
        return cores - pinned, pinned

    def _spec(self, vm: int):
        """Return the RequestSpec of a server, which is made once."""
        if vm not in self._specs:
            self._specs[vm] = _request(self.mix.kinds[vm], vm, int(self._scenario.vcpus[vm]),
                                       int(self._scenario.vm_memory_mb[vm]))
        return self._specs[vm]

    def cells(self, host: int,
              residents: tuple[int, ...]) -> tuple[tuple[NumaCell, ...], dict[int, Topology]]:
        """Return (NUMA cells of a host as nova-compute reports them, NUMA topologies of its
        servers)."""
        state, topologies = self._counted(host, residents)
        found = state.numa_topology
        return host_cells(None if found is None else found.obj_to_primitive()), topologies

    def _state(self, host: int, residents: tuple[int, ...]):
        """Return the HostState of a host, in which the cores, memory and devices of its servers are
        counted as used."""
        return self._counted(host, residents)[0]

    def _counted(self, host, residents):
        special = tuple(vm for vm in residents if self.is_counted(vm))
        known = self._states.get(host)
        if known is None or known[0] != special:
            state, topologies = _host_state(host, self.mix.machines[host], self.cores(host),
                                            self._scenario.memory_mb), {}
            for vm in special:
                state.limits, spec = {}, self._spec(vm).obj_clone()
                state.consume_from_request(spec)
                if spec.numa_topology:
                    topologies[vm] = topology(spec.numa_topology.obj_to_primitive())
            known = self._states[host] = special, state, topologies
        return known[1:]

    def is_counted(self, vm: int) -> bool:
        """Return whether a server takes something that is counted in the HostState alone."""
        spec = self._spec(vm)
        return bool(spec.numa_topology or spec.pci_requests.requests)


def _begin():
    """Load Nova's objects and options, without a service."""
    import nova.conf
    from nova import objects

    logging.getLogger('nova').setLevel(logging.ERROR)
    objects.register_all()
    nova.conf.CONF([], project='nova', default_config_files=[])
    nova.conf.CONF.set_override('alias', [
        f'{{"vendor_id": "{kinds.VENDOR}", "product_id": "{kinds.PRODUCT}", '
        f'"name": "{kinds.ALIAS}", "device_type": "type-PCI", "live_migratable": "yes"}}'], 'pci')


def _filters():
    import importlib

    found = []
    for name in FILTERS:
        module, _dot, cls = name.partition('.')
        found.append(getattr(importlib.import_module(f'nova.scheduler.filters.{module}'), cls)())
    return found


def _request(kind: kinds.Kind, vm: int, vcpus: int, memory_mb: int):
    from nova import objects
    from nova.pci import request
    from nova.virt import hardware

    flavor = objects.Flavor(
        id=1, flavorid=kind.name, name=kind.name, vcpus=vcpus, memory_mb=memory_mb, root_gb=0,
        ephemeral_gb=0, swap=0, extra_specs=dict(kind.extra_specs))
    image = objects.ImageMeta(
        properties=objects.ImageMetaProps.from_dict(dict(kind.image)))
    return objects.RequestSpec(
        flavor=flavor, image=image, instance_uuid=f'00000000-0000-4000-8000-{vm:012d}',
        num_instances=1, project_id='bench', scheduler_hints={}, instance_group=None,
        numa_topology=hardware.numa_get_constraints(flavor, image),
        pci_requests=request.get_pci_requests_from_flavor(flavor), requested_resources=[],
        is_bfv=False)


def _host_state(host: int, machine: kinds.Machine, cores: tuple[int, int], memory_mb: int):
    from nova import objects
    from nova.pci import stats
    from nova.scheduler import host_manager

    state = host_manager.HostState(f'host{host}', f'host{host}', 'cell')
    state.hypervisor_type, state.hypervisor_version = 'QEMU', machine.qemu
    state.supported_instances = [['x86_64', kind, 'hvm'] for kind in ('kvm', 'qemu')]
    state.cpu_info, state.stats = {}, {}
    state.cpu_allocation_ratio, state.ram_allocation_ratio = 16.0, 1.0
    state.numa_topology = _topology(cores, memory_mb) if machine.has_cells else None
    pools = [] if not machine.devices else [objects.PciDevicePool(
        vendor_id=kinds.VENDOR, product_id=kinds.PRODUCT, numa_node=None,
        tags={'dev_type': 'type-PCI', 'live_migratable': 'true', 'rp_uuid': None},
        count=machine.devices)]
    state.pci_stats = stats.PciDeviceStats(
        state.numa_topology, stats=objects.PciDevicePoolList(objects=pools))
    return state


def _topology(cores: tuple[int, int], memory_mb: int):
    """NUMA nodes with equal parts of the cores and the memory; cores have one thread."""
    from nova import objects

    shared, pinned = cores
    cells = []
    for number in range(CELLS):
        first = number * 1000
        own = range(first, first + shared // CELLS)
        kept = range(first + 500, first + 500 + pinned // CELLS)
        cells.append(objects.NUMACell(
            id=number, socket=number, cpuset=set(own), pcpuset=set(kept),
            memory=memory_mb // CELLS, cpu_usage=0, memory_usage=0, pinned_cpus=set(),
            siblings=[{core} for core in (*own, *kept)],
            mempages=[objects.NUMAPagesTopology(
                size_kb=4, total=memory_mb // CELLS * 256, used=0, reserved=0)],
            network_metadata=objects.NetworkMetadata(physnets=set(), tunneled=False)))
    return objects.NUMATopology(cells=cells)
