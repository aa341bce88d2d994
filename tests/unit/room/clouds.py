"""Clouds of a few hosts for tests about room."""

from kronos_nova.objects import snapshot as objects

UP = objects.Service(state='up', status='enabled')


def host(name, vcpus=8, memory_mb=16384, **more):
    return objects.Host(**{
        'name': name, 'uuid': f'uuid of {name}', 'service': UP,
        'inventory': {'VCPU': objects.ResourceInventory(total=vcpus),
                      'MEMORY_MB': objects.ResourceInventory(total=memory_mb)}, **more})


def server(uuid, on, vcpus=1, memory_mb=1024, **more):
    return objects.Instance(**{
        'uuid': uuid, 'name': f'name of {uuid}', 'display_name': uuid, 'host': on,
        'project_id': 'p', 'status': 'ACTIVE', 'vcpus': vcpus, 'memory_mb': memory_mb, 'disk_gb': 0,
        'resources': {'VCPU': vcpus, 'MEMORY_MB': memory_mb}, **more})


def cloud(hosts, servers=(), **more):
    return objects.Snapshot(taken_at='2026-11-26T12:00:00Z', hosts=tuple(hosts),
                            instances=tuple(servers), **more)


def covered():
    """A cloud that may lose each of its hosts, but none more after the move that makes room for a
    server of 8 VCPUs: then c may not be lost."""
    return cloud([host('a'), host('b'), host('c', 12)],
                 [server('small', 'a', 2, 1024), server('other', 'b', 2, 2048),
                  server('left', 'c', 6), server('right', 'c', 6)],
                 aggregates=(objects.Aggregate(name='gpu', uuid='gpu', hosts=('a', 'b', 'c')),))


def group(policy, *members):
    return objects.ServerGroup(uuid=f'{policy} group', name='g', policy=policy, members=members)
