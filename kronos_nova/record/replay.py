"""Replay of a snapshot. A replay plans for the recorded cloud in the same way as an evaluation
plans for a live cloud."""

import dataclasses
import os
import pathlib
import time
from collections.abc import Callable
from typing import Any
from typing import TypeVar

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cycle import buffers
from kronos_nova.cycle import supposed
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.inputs import restart_rules
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.cycle.supposed import Supposed
from kronos_nova.objects.plan import CycleReport
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import PolicySet
from kronos_nova.record import reader
from kronos_nova.record.metrics import RecordedMetrics
from kronos_nova.record.reader import Recording
from kronos_nova.room import whatif
from kronos_nova.room.whatif import Changed
from kronos_nova.room.whatif import Changes

R = TypeVar('R')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """The maximum seconds that cooldowns and quarantines may last in a replay. A longer cooldown or
    quarantine in the snapshot is shortened to the maximum. If ``quarantine`` is -1, quarantines are
    not shortened."""

    aggregate: float
    instance: float
    quarantine: float


def folders(path: str | os.PathLike[str]) -> tuple[pathlib.Path, ...]:
    """Return the snapshot folders in the folder ``path``, sorted by name. If ``path`` itself is a
    snapshot, return only ``path``. Names are usually times, so the order is usually that of the
    times."""
    path = pathlib.Path(path)
    is_one = os.path.exists(path / 'meta.json') or not os.path.isdir(path)
    inside = () if is_one else sorted(path.glob('*/meta.json'))
    return tuple(meta.parent for meta in inside) or (path,)


def read(folder: str | os.PathLike[str],
         policies_file: str | os.PathLike[str] | None = None) -> tuple[Recording, PolicySet]:
    """Return a snapshot and its policies.

    :param policies_file: policies file to use; None for the policies in the snapshot
    :raises ConfigurationError: the snapshot or the policies have problems; the message lists all
        problems
    """
    folder = pathlib.Path(folder)
    wrong: list[exception.ConfigurationError] = []
    recording = _collect(wrong, reader.read, folder)
    if not os.path.isdir(folder):
        raise wrong[0]
    chosen = _collect(wrong, policies.load, policies_file or folder / 'policies.yaml')
    if chosen is not None:
        metrics = RecordedMetrics(folder) if recording is None else recording.metrics
        _collect(wrong, metrics.check, chosen)
    if wrong or recording is None or chosen is None:
        raise exception.SnapshotError('\n'.join(str(error) for error in wrong))
    return recording, chosen


def replay(recording: Recording, chosen: PolicySet, options: EngineOptions,
           durations: Durations) -> CycleReport:
    """Plan a cycle for a snapshot, and return the report of the cycle. The cycle regards the time
    at which the snapshot was taken as the present time. Old samples are used, too. The room of
    buffers is kept, and made if it is lost.

    :raises ConfigurationError: a configured aggregate or planner does not exist
    """
    history = recording.history.clamped(durations.aggregate, durations.instance,
                                        durations.quarantine)
    options, planner_ports = dataclasses.replace(options, max_sample_age=None), _ports(recording)
    kept = buffers.keep_buffers(recording.snapshot, chosen, options, planner_ports, history,
                                _RecordedFlavors(recording.snapshot), 'the snapshot')
    report = plan_cycle(kept.snapshot, chosen, options, planner_ports, history)
    return dataclasses.replace(report, aggregates=kept.applied(report.aggregates))


@dataclasses.dataclass(frozen=True, slots=True)
class _RecordedFlavors:
    """The flavors that were recorded with a cloud."""

    snapshot: Snapshot

    def read_flavors(self) -> tuple[Shape, ...]:
        return self.snapshot.flavors


def suppose(recording: Recording, chosen: PolicySet, options: EngineOptions, durations: Durations,
            changes: Changes) -> tuple[Changed, Supposed]:
    """Make hypothetical changes to the recorded cloud, and evaluate the changed cloud. The other
    parameters are the same as those of :func:`replay`.

    :param changes: the hypothetical changes
    :returns: pair (Changed with the changed cloud, Supposed with its evaluation)
    :raises ConfigurationError: a change cannot be made, or a configured aggregate or planner does
        not exist
    """
    snapshot = recording.snapshot
    changed = whatif.changed(snapshot, restart_rules(options, chosen, snapshot), changes,
                             lambda: snapshot.flavors)
    return changed, supposed.evaluate(
        snapshot, changed, chosen, dataclasses.replace(options, max_sample_age=None),
        _ports(recording), recording.history.clamped(
            durations.aggregate, durations.instance, durations.quarantine))


def _ports(recording: Recording) -> PlannerPorts:
    return PlannerPorts(source=recording.metrics, clock=time.monotonic, now=recording.taken_at)


def _collect(wrong: list[exception.ConfigurationError], function: Callable[..., R],
             *arguments: Any) -> R | None:
    try:
        return function(*arguments)
    except exception.ConfigurationError as error:
        wrong.append(error)
        return None
