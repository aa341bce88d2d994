"""The metrics of one evaluation: each query is sent once, each aggregate is measured once."""

import functools
from collections.abc import Callable

from kronos_nova.engine import pace_measured
from kronos_nova.engine.measure import Load
from kronos_nova.engine.measure import MetricsReader
from kronos_nova.engine.measure import NamesElsewhere
from kronos_nova.engine.measure import Occupied
from kronos_nova.engine.pace_measured import MeasuredGuests
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import MigrationQueries


class Measurements:
    """Answers and loads, shared by all that an evaluation does: drains, the check of approved
    plans, and planning. To make one sends no query.

    reader : MetricsReader
    """

    def __init__(self, reader: MetricsReader):
        self.reader = reader
        self.of_moves: Callable[[MigrationQueries], MeasuredGuests] = functools.cache(
            lambda queries: pace_measured.measure(queries, self.reader))
        self._loads = {}

    @classmethod
    def of_cloud(cls, source: MetricsSource, snapshot: Snapshot, accepts_partial: bool,
                 names_elsewhere: NamesElsewhere) -> 'Measurements':
        """Make those of the hosts and instances of a snapshot."""
        return cls(MetricsReader(source, snapshot.instances, accepts_partial, names_elsewhere,
                                 [host.name for host in snapshot.hosts]))

    def load(self, name: str, occupied: Occupied, measure: Callable[[], Load]) -> Load:
        """Measure an aggregate, unless that was done for the same instances on the same hosts.
        Moves that this evaluation starts change no load before its end.

        :param name: of the aggregate
        :param measure: called at most once
        """
        key = (name, tuple(host.name for host in occupied.hosts),
               tuple(instance.uuid for instance in occupied.instances),
               occupied.vm_host.tobytes())
        if key not in self._loads:
            self._loads[key] = measure()
        return self._loads[key]
