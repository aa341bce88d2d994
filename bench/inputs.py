"""The clusters that the benches plan, as :class:`kronos_nova.model.Problem`.

``data/clusters`` were made for this project. ``data/balcon`` are the published instances of BalCon
(FGCS 2023, arXiv 2309.11859; MIT, licence beside them).
"""

import functools
import json
import lzma
import pathlib

import numpy as np

from kronos_nova.model import Problem

DATA = pathlib.Path(__file__).parent / 'data'
CPU_RATIO = 4.0
POLICIES = 'cpu', 'memory'
RANDOM = 'random_'


def read(name: str):
    """Return the content of a file of ``data/``, decompressed and parsed."""
    return json.loads(lzma.open(DATA / f'{name}.json.xz').read())


def cluster_names() -> list[str]:
    """Smallest cluster first."""
    names = (path.name.removesuffix('.json.xz') for path in (DATA / 'clusters').iterdir())
    return sorted(names, key=lambda name: (int(name.rsplit('_', 1)[1]), name))


def problem(*, mode: str, loads: np.ndarray, vm_host: np.ndarray, limits: np.ndarray,
            demands: np.ndarray, threshold: float, **others) -> Problem:
    """Return a Problem with policies of equal weight, named cpu, memory and then by number.

    loads : float64 (V, P), what each instance adds to a host of scale 1
    """
    count, vms, policies = len(limits), len(vm_host), loads.shape[1]
    scale = others.pop('host_scale', np.ones((count, policies)))
    scores, used = np.zeros((count, policies)), np.zeros(limits.shape)
    np.add.at(scores, vm_host, loads * scale[vm_host])
    np.add.at(used, vm_host, demands)
    return Problem(**{
        'hosts': tuple(f'cmp{n:05d}' for n in range(count)),
        'vms': tuple(f'vm{n:07d}' for n in range(vms)),
        'policies': (*POLICIES, *(f'p{n}' for n in range(2, policies)))[:policies],
        'resource_classes': ('VCPU', 'MEMORY_MB'),
        'policy_weights': np.full(policies, 1 / policies),
        'thresholds': np.full(policies, threshold),
        'scores': scores, 'weights': loads, 'host_scale': scale,
        'capacity_scores': scores.copy() if mode == 'pack' else np.full(scores.shape, np.nan),
        'capacity_thresholds': np.full(policies, 1.0 if mode == 'pack' else np.inf),
        'vm_host': vm_host, 'memory_mb': demands[:, 1].astype(np.int64),
        'movable': np.ones(vms, bool), 'available': np.ones(count, bool),
        'used': used, 'limits': limits, 'demands': demands, **others})


def random_name(seed: int) -> str:
    """Return the name of the random cluster with this seed, for :func:`cluster`."""
    return f'{RANDOM}{seed}'


def _drawn(seed: int, threshold: float, mode: str) -> Problem:
    rng = np.random.default_rng(seed)
    hosts = int(rng.integers(12, 31))
    return random_cluster(seed, hosts, hosts * int(rng.integers(6, 13)), threshold,
                          fill=float(rng.choice([.5, .6, .7, .8, .88])), mode=mode)


@functools.cache
def cluster(name: str, mode: str = 'spread', threshold: float = 0.05,
            own_scale: bool = True) -> Problem:
    """Return a cluster of ``data/clusters`` as a Problem, or the random cluster whose name
    :func:`random_name` returns.

    With ``own_scale`` an instance is a smaller part of a bigger host. Without it, an instance is
    the same part of every host as of its present one, as in a recorded snapshot without sizes of
    hosts.
    """
    if name.startswith(RANDOM):
        return _drawn(int(name.removeprefix(RANDOM)), threshold, mode)
    data = read(f'clusters/{name}')
    index = {host['name']: n for n, host in enumerate(data['hosts'])}
    size = np.array([[h['vcpus'], h['memory_mb']] for h in data['hosts']], float)
    vm_host = np.array([index[vm['host']] for vm in data['vms']])
    used = np.array([[vm['cpu_util'] * vm['vcpus'], vm['mem_util_mb']] for vm in data['vms']])
    unit = size.max(axis=0)
    scale = unit / size if own_scale else np.ones_like(size)
    loads = used / unit if own_scale else used / size[vm_host]
    return problem(
        mode=mode, loads=loads, vm_host=vm_host, limits=size * [CPU_RATIO, 1.0],
        demands=np.array([[vm['vcpus'], vm['memory_mb']] for vm in data['vms']], float),
        threshold=threshold, host_scale=scale, vms=tuple(vm['uuid'] for vm in data['vms']))


@functools.cache
def _balcon() -> dict:
    return read('balcon/balcon_even')


def balcon_names() -> list[str]:
    return sorted(_balcon())


def balcon_references() -> dict:
    return json.loads((DATA / 'balcon' / 'references.json').read_text())


def balcon(name: str) -> Problem:
    """Return a test case of BalCon as a Problem. The requested resources are the load, and hosts
    may be filled completely."""
    item = _balcon()[name]
    size = np.array(item['host'], float)
    demands = np.array(item['flavors'], float)[item['vm_flavor']]
    return problem(mode='pack', loads=demands / size, vm_host=np.array(item['vm_host']),
                   limits=np.tile(size, (item['n_hosts'], 1)), demands=demands, threshold=0.0)


def random_cluster(seed: int, hosts: int, vms: int, threshold: float = 0.05, *,
                   fill: float = 0.55, cpu_fill: float | None = None,
                   mode: str = 'spread') -> Problem:
    """Return a random cluster of equal hosts with uneven load. Instances go to hosts with unequal
    probabilities, but never to one without room in placement.

    :param fill: part of the hosts' cores and memory that is allocated
    :param cpu_fill: part of the cores that is allocated, where it differs from ``fill``
    """
    rng = np.random.default_rng(seed)
    cores = rng.choice([1, 2, 4, 8, 16], vms, p=[.25, .3, .25, .15, .05])
    memory = cores * rng.choice([1, 2, 4], vms) * 1024
    host = np.array([cores.sum() / hosts / (cpu_fill or fill), memory.sum() / hosts / fill])
    host = np.maximum(host, [cores.max() * 2, memory.max() * 2]).round()
    loads = np.stack([cores * rng.beta(2, 3, vms), memory * rng.uniform(0.2, 0.95, vms)], 1) / host
    demands = np.stack([cores, memory], 1).astype(float)
    limits = np.tile(host * [CPU_RATIO, 1.0], (hosts, 1))
    chances = rng.gamma(2.0, size=hosts)
    return problem(mode=mode, loads=loads, demands=demands, limits=limits,
                   vm_host=_place(rng, chances / chances.sum(), demands, limits),
                   threshold=threshold)


def _place(rng, chances, demands, limits):
    left = limits.copy()
    vm_host = np.empty(len(demands), int)
    draws = rng.choice(len(chances), len(demands), p=chances)
    for vm in np.argsort(-demands[:, 1], kind='stable'):
        host = draws[vm]
        if (left[host] < demands[vm]).any():
            host = int(np.argmax((left - demands[vm]).min(axis=1)))
        vm_host[vm] = host
        left[host] -= demands[vm]
    return vm_host
