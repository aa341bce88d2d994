"""The cost of operators' rules: planning with them, and a request of Nova's scheduler."""

from typing import Any

from bench import report

PLANNING, REQUEST = 1.1, 1.0
"""At most: CPU seconds of a plan with rules as a multiple of one without, and milliseconds of a
request at all hosts."""
NOW = 1_795_176_000.0


def register(subparsers):
    parser = subparsers.add_parser('rules', help='the rules of operators')
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--vms', type=int, default=30_000)
    parser.add_argument('--rules', type=int, default=200)
    parser.add_argument('--repeat', type=int, default=3, help='the least of so many plans each')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from kronos_nova.engine import gc_tuning

    gc_tuning.collect_rarely()  # as the planning process does
    cloud = _cloud(args.hosts, args.vms)
    rules = _rules(cloud, args.rules)
    plans = _plans(cloud, {'without rules': [], f'with {args.rules} rules': rules}, args.repeat)
    (_plain, alone), (_ruled, with_rules) = plans.items()
    request = _request(cloud, rules)
    figures = [('planning with rules / without', with_rules / alone, PLANNING),
               ('milliseconds of a request', request, REQUEST)]
    return report.Report(
        tables=(report.Table(f'CPU seconds of a plan, {args.hosts} hosts, {args.vms} servers',
                             ('what', 'seconds'), list(plans.items())),
                report.Table('Request', ('what', 'milliseconds'),
                             [(f'KronosFilter and KronosWeigher, {args.rules} rules', request)])),
        failures=tuple(f'{name} is {value:.2f}, target at most {target}'
                       for name, value, target in figures if value > target))


def _plans(cloud, rules, repeat: int) -> dict[str, float]:
    """Return {name of a set of rules: least CPU seconds of its plans}. The sets are planned in
    turn. An unchanged file is parsed once, as in a planning process."""
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        files = {what: pathlib.Path(folder, f'{n}.yaml') for n, what in enumerate(rules)}
        for what, file in files.items():
            file.write_text(_policies(rules[what]))
        rounds = [{what: _plan(cloud, file) for what, file in files.items()}
                  for _ in range(repeat)]
    return {what: min(each[what] for each in rounds) for what in rules}


def _cloud(hosts: int, vms: int):
    """Return a snapshot of servers on hosts in 40 racks. The first half of the hosts is an
    aggregate for servers with a tag."""
    from kronos_nova.objects import snapshot

    names = [f'cmp{n:05}' for n in range(hosts)]
    up = snapshot.Service(state='up', status='enabled')
    room = {'VCPU': snapshot.ResourceInventory(total=8 * vms // hosts)}
    return snapshot.Snapshot(
        taken_at='2026-11-20T12:00:00Z',
        hosts=tuple(snapshot.Host(name=name, uuid=name, service=up, inventory=room,
                                  domains={'rack': f'r{n % 40}'})
                    for n, name in enumerate(names)),
        instances=tuple(snapshot.Instance(
            uuid=f'vm{n:07}', name=f'instance-{n:08x}', display_name=f'vm{n}',
            host=names[(n * n + n // 7) % hosts], project_id=f'p{n % 100}', status='ACTIVE',
            vcpus=1, memory_mb=1024, disk_gb=1, resources={'VCPU': 1},
            flavor=snapshot.Flavor(name=f'm{n % 50}'),
            tags=(f't{n % 100}',) if (n * n + n // 7) % hosts < hosts // 2 else ())
            for n in range(vms)),
        aggregates=(snapshot.Aggregate(name='all', uuid='all', hosts=tuple(names)),
                    snapshot.Aggregate(name='first', uuid='first',
                                       hosts=tuple(names[:hosts // 2]))))


def _rules(cloud, count: int) -> list[dict]:
    """Return rules of five kinds in turn. No server violates them, so that the time to evaluate
    them is measured without repairs."""
    apart: dict[str, list[str]] = {}
    for each in cloud.instances:
        apart.setdefault(each.host, []).append(each.uuid)
    columns = [uuids for uuids in apart.values() if len(uuids) >= count]
    found = []
    for n in range(count):
        few = [uuids[n % len(uuids)] for uuids in (columns or list(apart.values()))[:20]]
        found.append({'name': f'rule{n}', **(
            {'servers': {'tag': f't{n % 100}'}, 'must_run_on': {'aggregate': 'first'}},
            {'servers': {'project': f'p{n % 100}', 'tag': f't{n % 100}'},
             'should_run_on': {'aggregate': 'first'}},
            {'servers': {'uuid': few}, 'keep_apart': 'host'},
            {'servers': {'flavor': f'm{n % 50}'}, 'must_not_run_on': {'hosts': 'other*'}},
            {'servers': {'name': f'vm{n}*'}, 'max_moves': 3})[n % 5]})
    return found


class _Loads:
    """Loads of hosts and servers, as Prometheus would answer."""

    def __init__(self, cloud):
        import numpy as np

        from kronos_nova.objects.metrics import Sample
        from kronos_nova.objects.metrics import Vector

        rng, share = np.random.default_rng(0), len(cloud.hosts) / len(cloud.instances)
        load = {each.uuid: float(value) * share for each, value in zip(
            cloud.instances, rng.random(len(cloud.instances)), strict=True)}
        hosts = dict.fromkeys((host.name for host in cloud.hosts), 0.0)
        for each in cloud.instances:
            hosts[each.host] += load[each.uuid]
        self._answers = {
            'host': Vector(tuple(Sample({'host': name}, min(value, 1.0), NOW)
                                 for name, value in hosts.items())),
            'vm': Vector(tuple(Sample({'uuid': uuid}, value, NOW)
                               for uuid, value in load.items()))}

    def query(self, query):
        return self._answers[query.promql]


def _plan(cloud, policies_file) -> float:
    import gc
    import time

    from kronos_nova import policies
    from kronos_nova.cycle.inputs import PlannerPorts
    from kronos_nova.cycle.options import EngineOptions
    from kronos_nova.cycle.restraint import Restraint
    from kronos_nova.cycle.steps import plan_cycle

    source: Any = _Loads(cloud)    # answers no query of a forecast
    ports = PlannerPorts(source=source, clock=time.process_time, now=NOW)
    options = EngineOptions(aggregates=('all',), include_unassigned_hosts=False,
                            planning_time_limit=600.0, restraint=Restraint(1.0))
    gc.collect()
    begin = time.process_time()
    [found] = plan_cycle(cloud, policies.load(policies_file), options, ports).aggregates
    spent = time.process_time() - begin
    if found.outcome != 'planned' or any(move.phase == 'affinity' for move in found.moves):
        raise AssertionError(f'{found.outcome}: {found.warnings}')
    return spent


def _policies(rules) -> str:
    import json

    return json.dumps({'rules': rules, 'policies': [{
        'name': 'cpu', 'mode': 'spread', 'weight': 1, 'threshold': 0.05, 'imbalance_query': 'host',
        'vm_profile_query': 'vm', 'max_migrations_per_cycle': 50}]})


def _request(cloud, rules) -> float:
    """Return the median milliseconds that the rules take in one request to nova-scheduler."""
    import time

    from kronos_nova import policies
    from kronos_nova.policies.requests import RequestedServer
    from kronos_nova.policies.requests import RequestRules

    known = [rule for rule in rules if 'tag' not in rule['servers'] and 'name' not in
             rule['servers']]
    heeded = RequestRules(policies.parse(_policies(
        [{**known[n % len(known)], 'name': f'rule{n}'} for n in range(len(rules))])).rules,
        cloud.aggregates)
    hosts, times = [host.name for host in cloud.hosts], []
    for n in range(200):
        server = RequestedServer(uuid=f'new{n}', project=f'p{n % 100}', flavor=f'm{n % 50}')
        begin = time.process_time()
        heeded.refused(server, hosts)
        heeded.costs(server, hosts)
        times.append(time.process_time() - begin)
    return 1000 * sorted(times)[len(times) // 2]
