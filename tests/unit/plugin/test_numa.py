"""Servers fit into NUMA cells where Nova's own function says so, and take there what it takes.

More: ``KRONOS_TEST_SEEDS=2000`` for 20,000 pairs of a host and a server.
"""

import json
import logging
import os
import random

import ddt
import fixtures
import numpy as np
import testtools
from nova import conf
from nova import objects
from nova.virt import hardware

from kronos_nova import model
from kronos_nova.inventory import numa as stored
from kronos_nova.model.numa import CellUse
from kronos_nova.objects import numa
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import ResourceInventory
from kronos_nova.objects.snapshot import Service

CONF = conf.CONF
SEEDS = int(os.environ.get('KRONOS_TEST_SEEDS', '60'))
PAIRS = 10
"""Servers that are tried on one host, one after the other."""

UP = Service(state='up', status='enabled')


def host_topology(draw):
    """A host of one to four cells, the later ones at times smaller."""
    sizes = sorted(draw.sample((4, 2048, 1048576), draw.randint(1, 3)))
    threads, cells, first = draw.choice((1, 2)), [], 0
    for number in range(draw.randint(1, 4)):
        shared, pinned = draw.choice((0, 4, 8)), draw.choice((0, 4, 8, 12))
        cpuset = set(range(first, first + shared))
        pcpuset = set(range(first + shared, first + shared + pinned))
        first += shared + pinned
        memory = draw.choice((4096, 8192, 8192))
        every = sorted(cpuset | pcpuset) or [first]
        cells.append(objects.NUMACell(
            id=number, cpuset=cpuset, pcpuset=pcpuset, memory=memory, socket=0, cpu_usage=0,
            memory_usage=0, pinned_cpus=set(),
            siblings=[set(every[n:n + threads]) for n in range(0, len(every), threads)],
            mempages=[objects.NUMAPagesTopology(
                size_kb=size, total=memory * 1024 // size // len(sizes), used=0,
                reserved=draw.choice((0, 0, 1))) for size in sizes]))
    return objects.NUMATopology(cells=cells)


def instance_topology(draw):
    """A server of one to three parts, at times unequal."""
    policy = draw.choice((None, 'shared', 'dedicated', 'dedicated', 'mixed'))
    size = draw.choice((None, None, numa.SMALL, numa.LARGE, numa.ANY, 2048, 1048576))
    cells, first, are_equal = [], 0, draw.random() < 0.7
    cpus = memory = 0
    for number in range(draw.randint(1, 3)):
        if not number or not are_equal:
            cpus, memory = draw.randint(1, 6), draw.choice((512, 1024, 1536, 2048, 3072))
        numbers = list(range(first, first + cpus))
        first += cpus
        pinned = {None: 0, 'shared': 0, 'dedicated': cpus}.get(policy, cpus // 2)
        cells.append(objects.InstanceNUMACell(
            id=number, cpuset=set(numbers[pinned:]), pcpuset=set(numbers[:pinned]), memory=memory,
            pagesize=size, cpu_policy=policy, cpu_thread_policy=None, cpuset_reserved=None))
    return objects.InstanceNUMATopology(cells=cells, emulator_threads_policy=draw.choice(
        (None, None, 'isolate')) if policy == 'dedicated' else None)


def as_stored(topology):
    return json.loads(json.dumps(topology.obj_to_primitive()))


def needs_of(topology):
    size = topology.cells[0].pagesize
    text = {None: None, numa.SMALL: 'small', numa.LARGE: 'large', numa.ANY: 'any'}.get(
        size, str(size))
    specs = {'hw:mem_page_size': text} if text else {}
    return stored.with_page_size(stored.topology(as_stored(topology)), specs, {}).cells


def problem_cells(topology, ratios, needs, packs):
    host = Host(name='c1', uuid='c1', service=UP, cells=stored.host_cells(as_stored(topology)),
                inventory={name: ResourceInventory(total=1, allocation_ratio=ratio)
                           for name, ratio in zip(('VCPU', 'MEMORY_MB'), ratios, strict=True)})
    instance = Instance(uuid='i', name='i', display_name='i', host='c1', project_id='p',
                        status='ACTIVE', vcpus=1, memory_mb=1, disk_gb=0, cells=needs)
    return model.cells([host], [instance], np.array([0]), packs=packs)


class FitTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        objects.register_all()

    def test_cells_are_novas_choice(self):
        pairs = fitting = 0
        for seed in range(SEEDS):
            draw = random.Random(seed)
            topology, packs = host_topology(draw), draw.random() < 0.5
            CONF.set_override('packing_host_numa_cells_allocation_strategy', packs, 'compute')
            self.addCleanup(CONF.clear_override, 'packing_host_numa_cells_allocation_strategy',
                            'compute')
            ratios = draw.choice((1.0, 2.0, 4.0)), draw.choice((1.0, 1.5))
            limits = objects.NUMATopologyLimits(cpu_allocation_ratio=ratios[0],
                                                ram_allocation_ratio=ratios[1])
            for number in range(PAIRS):
                asked = instance_topology(draw)
                needs = needs_of(asked)
                use = CellUse(problem_cells(topology, ratios, needs, packs))
                found = hardware.numa_fit_instance_to_host(topology, asked, None, limits=limits)
                ours = use.choose(1, 0)
                message = f'seed {seed}, server {number}'
                self.assertEqual(found is not None, ours is not None, message)
                self.assertEqual(found is not None, bool(use.fits(np.array([1]))[0, 0]), message)
                pairs += 1
                if found is None:
                    continue
                fitting += 1
                self.assertEqual([cell.id for cell in found.cells],
                                 [place.cell for place in ours], message)
                if len(set(needs)) > 1:
                    # Nova remembers by numbers that change what fits, and so takes for some of
                    # unequal parts nothing, or CPUs of another cell.
                    continue
                use.add(0, 0, 1)
                topology = hardware.numa_usage_from_instance_numa(topology, found)
                after = CellUse(problem_cells(topology, ratios, needs, packs)).used
                for name in ('cpus', 'pinned', 'memory', 'pages'):
                    self.assertEqual(getattr(after, name).tolist(),
                                     getattr(use.used, name).tolist(), f'{message}: {name}')
        self.assertEqual(SEEDS * PAIRS, pairs)
        self.assertGreater(fitting, pairs / 10)
        self.assertLess(fitting, pairs * 9 / 10)


FLAVORS = {
    'no cells': {},
    'two cells': {'hw:numa_nodes': '2'},
    'pinned': {'hw:cpu_policy': 'dedicated'},
    'pinned by resources': {'resources:PCPU': '8'},
    'pinned in two cells': {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2'},
    'pinned, the emulator apart': {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
                                   'hw:emulator_threads_policy': 'isolate'},
    'mixed': {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0-1', 'hw:numa_nodes': '2'},
    'mixed by numbers': {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '2-5'},
    'real time': {'hw:cpu_policy': 'mixed', 'hw:cpu_realtime': 'yes',
                  'hw:cpu_realtime_mask': '^0'},
    'huge pages': {'hw:mem_page_size': '1GB'},
    'large pages': {'hw:mem_page_size': 'large'},
    'pages by number': {'hw:mem_page_size': '2048', 'hw:numa_nodes': '4'},
    'small pages': {'hw:mem_page_size': 'small'},
    'unequal parts': {'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0-5', 'hw:numa_mem.0': '6144',
                      'hw:numa_cpus.1': '6,7', 'hw:numa_mem.1': '2048'},
    'Nova refuses: unequal without saying how': {'hw:numa_nodes': '3'},
    'Nova refuses: CPUs left over': {'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0-5',
                                     'hw:numa_mem.0': '6144', 'hw:numa_cpus.1': '6',
                                     'hw:numa_mem.1': '2048'},
}


@ddt.ddt
class FlavorTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        objects.register_all()

    @ddt.data(*FLAVORS)
    def test_a_flavor_needs_the_cells_that_nova_makes(self, name):
        flavor = objects.Flavor(vcpus=8, memory_mb=8192, extra_specs=FLAVORS[name])
        ours = numa.of_flavor(8, 8192, FLAVORS[name])
        if 'refuses' in name:
            self.assertEqual((), ours)
            return
        made = hardware.numa_get_constraints(flavor, objects.ImageMeta.from_dict({}))
        found = stored.topology(made and as_stored(made))
        self.assertEqual(stored.with_page_size(found, FLAVORS[name], {}).cells, ours)
