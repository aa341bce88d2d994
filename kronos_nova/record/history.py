"""The file ``history.json`` of a snapshot. The file has the planning history except cooldowns and
quarantines, which are in ``cooldowns.json``."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.load import FIGURES
from kronos_nova.load import LoadStats
from kronos_nova.record import schema

NAME = 'history.json'

PLAIN = ('imbalanced', 'spread', 'refused', 'refused_hosts', 'projects_moved', 'caused',
         'instances_moved', 'instances_moved_today')
"""Names of the fields of a PlanningHistory that are written to JSON without conversion."""


def as_object(history: PlanningHistory) -> dict[str, Any]:
    """Return the content of ``history.json`` for a planning history. Parts of the history that are
    empty are left out."""
    found: dict[str, Any] = {name: dict(getattr(history, name)) for name in PLAIN}
    found |= {
        'load_stats': {aggregate: {policy: _of_stats(stats) for policy, stats in policies.items()}
                       for aggregate, policies in history.load_stats.items()},
        'moves': _rows(history.moves), 'tries': _rows(history.tries),
        'doubted': {aggregate: [{'policy': policy, 'host': host} for policy, host in sorted(pairs)]
                    for aggregate, pairs in history.doubted.items()}}
    return {name: part for name, part in found.items() if part}


def planning_history(read: schema.History, **cooldowns: Any) -> PlanningHistory:
    """Return a PlanningHistory with the content of ``history.json``.

    :param cooldowns: the remaining fields of the PlanningHistory, which ``history.json`` does not
        have
    """
    return PlanningHistory(
        load_stats={aggregate: {policy: _stats(stats) for policy, stats in policies.items()}
                    for aggregate, policies in read.load_stats.items()},
        moves=tuple(PastMove(**vars(row)) for row in read.moves),
        tries=tuple(PastTry(**vars(row)) for row in read.tries),
        doubted={aggregate: frozenset((row.policy, row.host) for row in rows)
                 for aggregate, rows in read.doubted.items()},
        **{name: getattr(read, name) for name in PLAIN}, **cooldowns)


def _rows(values: Iterable[Any]) -> list[dict[str, Any]]:
    return sorted(map(dataclasses.asdict, values), key=lambda row: (
        row['instance_uuid'], row.get('ended_at', 0.0), row['source'], row['destination']))


def _of_stats(stats: LoadStats) -> dict[str, Any]:
    found = {'at': stats.at, 'instances': dict(sorted(
        zip(stats.vms, stats.figures.tolist(), strict=True)))}
    return found if np.isnan(stats.unit) else found | {'unit': stats.unit}


def _stats(read: schema.LoadStats) -> LoadStats:
    return LoadStats(read.at, tuple(read.instances), np.array(
        list(read.instances.values()), dtype=float).reshape(-1, FIGURES),
        np.nan if read.unit is None else read.unit)
