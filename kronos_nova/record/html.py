"""Reports of replays as one HTML file, which needs no other files."""

import json
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import TextIO

from kronos_client.contract import reasons
from kronos_nova import page
from kronos_nova.objects import domains
from kronos_nova.objects import host_load
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import CycleReport
from kronos_nova.objects.plan import PolicyReport
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.room import shapes

LISTED = 200
"""Maximum number of instances that the HTML report of a replay lists for each reason why instances
were not moved. The rest is only counted. Raised, reports are larger; lowered, fewer instances are
named. Not measured."""


class Page:
    """The HTML page with the reports of several replays. Of each report, only the data that the
    page shows is kept in memory, because a day may have hundreds of reports."""

    def __init__(self) -> None:
        self._cycles: list[str] = []

    def add(self, label: str, snapshot: Snapshot, report: CycleReport,
            note: str = '') -> None:
        """Add a report. The caller adds reports in the order of their times.

        :param label: name of the report in the page's list
        :param snapshot: the snapshot for which the replay planned
        :param note: sentence that says where the options of the replay come from
        """
        self._cycles.append(_embedded({**_cycle(label, snapshot, report), 'note': note}))

    def write(self, file: TextIO) -> None:
        """Write the page with all added reports into a text file."""
        style, script = page.read('page.css').decode(), page.joined('replay.js')
        template = page.read('replay.html').decode()
        for place, text in (('STYLE-HASH', page.source_hash(style)), ('STYLE', style),
                            ('SCRIPT-HASH', page.source_hash(script)), ('SCRIPT', script)):
            template = template.replace(f'/*{place}*/', text)
        before, _place, after = template.partition('/*DATA*/')
        file.writelines([before, '{"cycles":[', ',\n'.join(self._cycles), ']}', after])


def _embedded(value: Mapping[str, Any]) -> str:
    """Return a value as JSON for a script element of the page. "<" is escaped, because a server's
    name could otherwise end the element."""
    text = json.dumps(value, separators=(',', ':'), allow_nan=False)
    return text.replace('<', '\\u003c')


def _cycle(label: str, snapshot: Snapshot, report: CycleReport) -> dict[str, Any]:
    instances = {instance.uuid: instance for instance in snapshot.instances}
    loads = host_load.HostLoads(snapshot)
    return {'label': label, 'taken_at': snapshot.taken_at,
            'planning_seconds': round(report.planning_seconds, 3),
            'aggregates': [_aggregate(aggregate, instances, loads.of_aggregate(aggregate))
                           for aggregate in report.aggregates]}


def _aggregate(report: AggregateReport, instances: Mapping[str, Instance],
               loads: Iterable[host_load.HostLoad]) -> dict[str, Any]:
    def names(uuid: str) -> dict[str, Any]:
        instance = instances[uuid]
        return {'uuid': shapes.label(uuid), 'name': instance.display_name}

    return {
        'name': report.name, 'outcome': report.outcome, 'mode': report.mode,
        'planner': report.planner, 'before': _figure(report.combined_before),
        'after': _figure(report.combined_after),
        'policies': [{
            'name': row.name, 'state': row.state, 'detail': row.detail, 'weight': row.weight,
            'threshold': row.threshold, 'before': _figure(row.imbalance_before),
            'after': _figure(row.imbalance_after)} for row in report.policies],
        'hosts': [_host(load, report.policies) for load in loads],
        'moves': [{
            **names(move.instance_uuid), 'order': move.order, 'phase': move.phase,
            'source': move.source, 'destination': move.destination, 'memory_mb': move.memory_mb,
            'after': _figure(move.combined_after), 'reason': move.reason, 'group': move.group}
            for move in report.moves],
        'not_moved': [{
            'reason': skip.reason, 'count': len(skip.instances),
            'means': reasons.WHY_SERVERS_STAY[skip.reason],
            'instances': [{**names(uuid), 'host': instances[uuid].host}
                          for uuid in skip.instances[:LISTED]]} for skip in report.not_moved],
        'emptied': list(report.hosts_emptied), 'warnings': list(report.warnings)}


def _host(load: host_load.HostLoad, policies: Iterable[PolicyReport]) -> dict[str, Any]:
    return {'name': load.name, 'state': load.state, 'where': domains.names(load.domains),
            'servers': [load.servers, load.servers_after],
            'scores': [[_figure(value) for value in load.scores[policy.name]]
                       if policy.name in load.scores else None for policy in policies]}


def _figure(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
