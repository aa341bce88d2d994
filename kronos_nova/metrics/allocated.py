"""A metrics source that answers with allocations instead of measured load. The source needs no
Prometheus, so it can always answer a query for present load."""

import collections
from collections.abc import Iterator

from kronos_nova import exception
from kronos_nova.objects.metrics import VM_PROFILE
from kronos_nova.objects.metrics import Matrix
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Times
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot


class AllocatedSource:
    """A metrics source that returns allocated resources in place of measured load.

    The share of an instance is the fraction of its host's capacity that the instance has allocated.
    The fraction is computed for each resource class, and the largest one is the share. A query for
    a profile (load of each instance) gets the shares of the instances. Any other query gets a value
    for each host: the sum of the shares of its instances, but at most 1.

    :param now: Unix seconds, the time of the samples
    """

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self._now = now
        self._snapshot = snapshot
        self._capacity = {host.name: {name: inventory.capacity
                                      for name, inventory in host.inventory.items()}
                          for host in snapshot.hosts}

    def query(self, query: MetricQuery) -> Vector:
        """Return the samples. Samples of instances, for a profile, have the label ``uuid``; samples
        of hosts, for any other query, have the label ``host``."""
        return Vector(tuple(self._samples(query)))

    def query_range(self, query: MetricQuery, times: Times) -> Matrix:
        """Raise an error, because past allocations are not known.

        :raises MetricsQueryRefused: always
        """
        raise exception.MetricsQueryRefused(
            source=query.policy, problem='past allocations are not known, so no forecast can be '
            'made from allocations')

    def _samples(self, query: MetricQuery) -> Iterator[Sample]:
        shares = {server.uuid: self._share(server) for server in self._snapshot.instances}
        if query.kind == VM_PROFILE:
            for uuid, share in shares.items():
                yield Sample({'uuid': uuid}, share, self._now)
            return
        totals: dict[str, float] = collections.defaultdict(float)
        for server in self._snapshot.instances:
            totals[server.host] += shares[server.uuid]
        for host in self._snapshot.hosts:
            yield Sample({'host': host.name}, min(totals[host.name], 1.0), self._now)

    def _share(self, server: Instance) -> float:
        capacity = self._capacity.get(server.host, {})
        return max((amount / capacity[name] for name, amount in server.resources.items()
                    if capacity.get(name)), default=0.0)
