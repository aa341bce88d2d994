"""Writes reports as one page for a browser, which needs nothing but itself."""

import collections
import json
from importlib import resources

from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import CycleReport
from kronos_nova.objects.snapshot import Snapshot

LISTED = 200
"""How many of the instances that stayed for the same reason are named."""

_PLACE = '/*DATA*/null'


class Page:
    """Collects reports, and writes them. Keeps of each no more than the page shows, for a day has
    hundreds."""

    def __init__(self):
        self._cycles = []

    def add(self, label: str, snapshot: Snapshot, report: CycleReport):
        """One more report, in the order of time.

        :param label: what to call it in a day's list
        :param snapshot: what the report was made from
        """
        self._cycles.append(_embedded(_cycle(label, snapshot, report)))

    def write(self, file):
        """Write the page into a text file."""
        template = resources.files(__package__).joinpath('page.html').read_text(encoding='utf-8')
        before, _place, after = template.partition(_PLACE)
        file.writelines([before, '{"cycles":[', ',\n'.join(self._cycles), ']}', after])


def _embedded(value):
    """JSON that cannot end the script element it stands in, whatever a server is called."""
    text = json.dumps(value, separators=(',', ':'), allow_nan=False)
    return text.replace('<', '\\u003c')


def _cycle(label, snapshot, report):
    instances = {instance.uuid: instance for instance in snapshot.instances}
    return {'label': label, 'taken_at': snapshot.taken_at,
            'planning_seconds': round(report.planning_seconds, 3),
            'aggregates': [_aggregate(aggregate, snapshot, instances)
                           for aggregate in report.aggregates]}


def _aggregate(report: AggregateReport, snapshot, instances):
    def names(uuid):
        instance = instances[uuid]
        return {'uuid': uuid, 'name': instance.display_name}

    return {
        'name': report.name, 'outcome': report.outcome, 'mode': report.mode,
        'planner': report.planner, 'before': _figure(report.combined_before),
        'after': _figure(report.combined_after),
        'policies': [{
            'name': row.name, 'state': row.state, 'detail': row.detail, 'weight': row.weight,
            'threshold': row.threshold, 'before': _figure(row.imbalance_before),
            'after': _figure(row.imbalance_after)} for row in report.policies],
        'hosts': _hosts(report, snapshot),
        'moves': [{
            **names(move.instance_uuid), 'order': move.order, 'phase': move.phase,
            'source': move.source, 'destination': move.destination, 'memory_mb': move.memory_mb,
            'after': _figure(move.combined_after), 'reason': move.reason}
            for move in report.moves],
        'not_moved': [{
            'reason': skip.reason, 'count': len(skip.instances),
            'instances': [{**names(uuid), 'host': instances[uuid].host}
                          for uuid in skip.instances[:LISTED]]} for skip in report.not_moved],
        'emptied': list(report.hosts_emptied), 'warnings': list(report.warnings)}


def _hosts(report, snapshot):
    counts = collections.Counter(instance.host for instance in snapshot.instances)
    gained = collections.Counter(move.destination for move in report.moves)
    gained.subtract(move.source for move in report.moves)
    scores = {(score.host, score.policy): score for score in report.host_scores}
    inside = set(snapshot.hosts_of(report.name))
    return [{
        'name': host.name, 'state': _state(host.service),
        'vms': [counts[host.name], counts[host.name] + gained[host.name]],
        'scores': [[_figure(score.value), _figure(score.after)]
                   if (score := scores.get((host.name, policy.name))) else None
                   for policy in report.policies]}
        for host in sorted(snapshot.hosts, key=lambda host: host.name) if host.name in inside]


def _state(service):
    if service.is_available:
        return 'up'
    if service.forced_down:
        return 'forced down'
    return 'disabled' if service.state == 'up' else 'down'


def _figure(value):
    return None if value is None else round(value, 4)
