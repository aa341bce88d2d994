"""Replay of a snapshot. A replay plans for the recorded cloud as an evaluation does."""

import dataclasses
import pathlib
import time

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cycle import supposed
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.inputs import restart_rules
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.cycle.supposed import Supposed
from kronos_nova.objects.plan import CycleReport
from kronos_nova.policies import PolicySet
from kronos_nova.record import reader
from kronos_nova.record.metrics import RecordedMetrics
from kronos_nova.record.reader import Recording
from kronos_nova.room import whatif
from kronos_nova.room.whatif import Changed
from kronos_nova.room.whatif import Changes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """The longest cooldowns and quarantines of a replay, in seconds. Longer ones in the snapshot
    are shortened. A ``quarantine`` of -1 is no limit."""

    aggregate: float
    instance: float
    quarantine: float


def folders(path) -> tuple[pathlib.Path, ...]:
    """Return the snapshot folders in the folder ``path``, sorted by name (usually a time). If
    ``path`` itself is a snapshot, return only ``path``."""
    path = pathlib.Path(path)
    inside = () if (path / 'meta.json').exists() else sorted(path.glob('*/meta.json'))
    return tuple(meta.parent for meta in inside) or (path,)


def read(folder, policies_file=None) -> tuple[Recording, PolicySet]:
    """Return a snapshot and its policies.

    :param policies_file: file whose policies are used instead; None for the policies of the
        snapshot
    :raises ConfigurationError: the snapshot or the policies have problems; the message lists all
    """
    folder = pathlib.Path(folder)
    wrong = []
    recording = _collect(wrong, reader.read, folder)
    if not folder.is_dir():
        raise wrong[0]
    chosen = _collect(wrong, policies.load, policies_file or folder / 'policies.yaml')
    if chosen is not None:
        metrics = RecordedMetrics(folder) if recording is None else recording.metrics
        _collect(wrong, metrics.check, chosen)
    if wrong:
        raise exception.SnapshotError('\n'.join(str(error) for error in wrong))
    return recording, chosen


def replay(recording: Recording, chosen: PolicySet, options: EngineOptions,
           durations: Durations) -> CycleReport:
    """Return the report of a cycle that is planned at the time at which the snapshot was taken.

    Samples are used whatever their age, because they are as old as the snapshot.

    :raises ConfigurationError: a configured aggregate or planner does not exist
    """
    history = recording.history.clamped(durations.aggregate, durations.instance,
                                        durations.quarantine)
    return plan_cycle(recording.snapshot, chosen,
                      dataclasses.replace(options, max_sample_age=None), _ports(recording), history)


def suppose(recording: Recording, chosen: PolicySet, options: EngineOptions, durations: Durations,
            changes: Changes) -> tuple[Changed, Supposed]:
    """Return the recorded cloud after hypothetical changes, and the evaluation of this cloud. The
    other parameters are those of :func:`replay`.

    :param changes: the hypothetical changes
    :raises ConfigurationError: a change cannot be made, or :func:`replay` raises it
    """
    snapshot = recording.snapshot
    changed = whatif.changed(snapshot, restart_rules(options, chosen, snapshot), changes, tuple)
    return changed, supposed.evaluate(
        snapshot, changed, chosen, dataclasses.replace(options, max_sample_age=None),
        _ports(recording), recording.history.clamped(
            durations.aggregate, durations.instance, durations.quarantine))


def _ports(recording: Recording) -> PlannerPorts:
    return PlannerPorts(source=recording.metrics, clock=time.monotonic, now=recording.taken_at)


def _collect(wrong, function, *arguments):
    try:
        return function(*arguments)
    except exception.ConfigurationError as error:
        wrong.append(error)
        return None
