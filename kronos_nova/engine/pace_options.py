"""What the pace of moves depends on, as plain values."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from kronos_nova.objects.move import Caps
from kronos_nova.pacing.migration_history import Assumed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PaceOptions:
    """What bears on when moves begin and how long they take.

    caps : of ``[kronos_executor]``, with what drains have of their own
    link : MiB a second of each host's link; None is that of one migration
    stream : MiB a second of one migration at most; None is learnt
    downtime : seconds for which a guest may be stopped
    copies_local_disks : whether instances have disks that are copied
    forces : whether a migration that takes too long is forced to complete
    stale_plan_age : seconds after which a move that has not begun is given up
    due : host to the seconds in which it is to be empty
    """

    caps: Caps = Caps(total=4, per_source=1, per_destination=2)
    link: float | None = None
    stream: float | None = None
    downtime: float = Assumed().downtime
    copies_local_disks: bool = False
    forces: bool = False
    stale_plan_age: float = np.inf
    due: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def assumed(self) -> Assumed:
        return Assumed(bandwidth=self.stream or self.link, downtime=self.downtime)

    @classmethod
    def from_conf(cls, conf) -> 'PaceOptions':
        group = conf.kronos_executor
        return cls(
            caps=Caps(total=group.max_concurrent_migrations,
                      per_source=group.max_concurrent_per_source,
                      per_destination=group.max_concurrent_per_destination),
            link=_mib_per_second(group.link_mbps), stream=_mib_per_second(group.stream_mbps),
            downtime=group.downtime_ms / 1000, copies_local_disks=group.copies_local_disks,
            forces=group.timeout_action == 'force_complete', stale_plan_age=group.stale_plan_age)


def _mib_per_second(mbps: int) -> float | None:
    """Of megabits a second; None of 0."""
    return mbps * 1e6 / 8 / 2**20 or None
