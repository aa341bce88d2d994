"""Clouds and reports of any size for pages."""

from kronos_nova.objects import plan
from kronos_nova.objects import snapshot


def a_cloud(hosts, instances, display_name='vm{}'):
    """Hosts cmp0, cmp1, ... in the aggregate gpu with instances dealt out in turn; the third host
    is disabled."""
    names = [f'cmp{number}' for number in range(hosts)]
    up = snapshot.Service(state='up', status='enabled')
    disabled = snapshot.Service(state='up', status='disabled')
    return snapshot.Snapshot(
        taken_at='2026-11-20T12:00:00Z',
        hosts=tuple(snapshot.Host(name=name, uuid=f'host-{name}', inventory={},
                                  service=disabled if name == 'cmp2' else up) for name in names),
        aggregates=(snapshot.Aggregate(name='gpu', uuid='a1', hosts=tuple(names)),),
        instances=tuple(snapshot.Instance(
            uuid=f'00000000-0000-4000-8000-{number:012d}', name=f'instance-{number:08x}',
            display_name=display_name.format(number), host=names[number % hosts],
            project_id='p', status='ACTIVE', vcpus=1, memory_mb=2048, disk_gb=10)
            for number in range(instances)))


def a_report(cloud, policies=('cpu',), moves=1):
    """Moves from the first half of the hosts to the second; everything else stays for no_gain."""
    hosts = [host.name for host in cloud.hosts]
    moved = cloud.instances[:moves]
    scores = {name: 0.9 - 0.8 * position / (len(hosts) - 1) for position, name in enumerate(hosts)}
    after = dict(scores)
    planned = []
    for order, instance in enumerate(moved, 1):
        destination = hosts[-1 - (order - 1) % (len(hosts) // 2)]
        after[instance.host] -= 0.3
        after[destination] += 0.3
        planned.append(plan.PlannedMove(
            order=order, phase='spread', instance_uuid=instance.uuid, source=instance.host,
            destination=destination, memory_mb=instance.memory_mb, reason='evens the load',
            combined_after=0.8 - 0.5 * order / moves))
    return plan.CycleReport(planning_seconds=0.5, aggregates=(plan.AggregateReport(
        name='gpu', outcome='planned', mode='spread', planner='spread',
        policies=tuple(plan.PolicyReport(
            name=policy, state='ok', weight=1.0 / len(policies), threshold=0.1,
            imbalance_before=0.8, imbalance_after=0.3) for policy in policies),
        combined_before=0.8, combined_after=0.3, moves=tuple(planned),
        not_moved=(plan.Skip(reason='no_gain', instances=tuple(
            instance.uuid for instance in cloud.instances[moves:])),),
        host_scores=tuple(plan.HostScore(name, policy, scores[name], after[name])
                          for name in hosts for policy in policies)),))
