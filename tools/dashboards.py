"""Writes the Grafana dashboards of Kronos into etc/kronos/grafana; see doc/source/monitoring.rst.

A dashboard is rows of panels, a panel a title, a unit and its queries. Run it after a change; a
test compares what it gives with what is shipped.
"""

import json
import pathlib
import re
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

TARGET = pathlib.Path(__file__).parents[1] / 'etc/kronos/grafana'
SCHEMA = 39
"""Version of the JSON: that of Grafana 11. Later ones migrate it when it is imported."""

Panel = dict[str, Any]

SOURCE = {'type': 'prometheus', 'uid': '${source}'}
WIDTH, HEIGHT = 24, 8

_SERIES = re.compile(r"""(?x)
    (?: increase | rate ) \( kronos_\w+ (?: \{[^}]*\} )? \[ \w+ \] \)
    | \b kronos_\w+ (?: \{[^}]*\} )?""")
"""A metric of Kronos, with the function of a range around it."""


def counted_once(query: str) -> str:
    """Return a query that gives the same however many exporters are scraped: all of them report the
    same control database."""
    return _SERIES.sub(lambda found: f'max without (instance) ({found[0]})', query)


def stat(title: str, unit: str, query: str, **options: Any) -> Panel:
    return _panel('stat', title, unit, [(query, '')], {
        'colorMode': 'value', 'graphMode': 'area', 'reduceOptions': {'calcs': ['lastNotNull']},
    }, **options)


def lines(title: str, unit: str, *queries: tuple[str, str], **options: Any) -> Panel:
    """Make a panel with a line for each series.

    :param queries: (PromQL, legend)
    """
    return _panel('timeseries', title, unit, queries,
                  {'legend': {'displayMode': 'list', 'placement': 'bottom'},
                   'tooltip': {'mode': 'multi', 'sort': 'desc'}}, **options)


def bars(title: str, unit: str, query: str, legend: str, **options: Any) -> Panel:
    return _panel('bargauge', title, unit, [(query, legend)], {
        'displayMode': 'gradient', 'orientation': 'horizontal',
        'reduceOptions': {'calcs': ['lastNotNull']}}, **options)


def heatmap(title: str, query: str) -> Panel:
    panel = _panel('heatmap', title, 's', [(query, '{{le}}')], {'calculate': False})
    panel['targets'][0]['format'] = 'heatmap'
    return panel


def _panel(kind: str, title: str, unit: str, queries: Iterable[tuple[str, str]], options: Panel, *,
           at: Iterable[tuple[float | None, str]] = (), minimum: float | None = None,
           maximum: float | None = None) -> Panel:
    """Make a panel of a dashboard.

    :param at: (value, colour) from which on a figure is shown in the colour, ascending
    """
    steps = [{'color': 'green', 'value': None}] + [
        {'color': colour, 'value': value} for value, colour in at]
    defaults: Panel = {'unit': unit, 'thresholds': {'mode': 'absolute', 'steps': steps}}
    if minimum is not None:
        defaults['min'] = minimum
    if maximum is not None:
        defaults['max'] = maximum
    return {'type': kind, 'title': title, 'datasource': SOURCE, 'options': options,
            'fieldConfig': {'defaults': defaults, 'overrides': []},
            'targets': [{'refId': chr(ord('A') + number), 'expr': counted_once(query),
                         'legendFormat': legend, 'datasource': SOURCE}
                        for number, (query, legend) in enumerate(queries)]}


A = '{aggregate=~"$aggregate"}'
ERRORS = '{aggregate=~"$aggregate",error!=""}'

FLEET = ('Kronos: fleet', 'kronos-fleet', [
    [stat('Health, worst aggregate', 'none', 'min(kronos_health_score)', minimum=0, maximum=100),
     stat('Moves in progress', 'none', 'sum(kronos_moves_under_way)'),
     stat('Problems', 'none', 'sum(kronos_problems) or vector(0)', at=[(1, 'orange')]),
     stat('Servers in quarantine', 'none', 'max(kronos_quarantined_servers) or vector(0)',
          at=[(10, 'orange')])],
    [bars('Health by aggregate', 'none', 'sort(kronos_health_score)', '{{aggregate}}',
          minimum=0, maximum=100),
     bars('Imbalance in parts of its threshold', 'percentunit',
          'sort_desc(kronos_imbalance_ratio / on (policy) group_left () '
          'kronos_imbalance_threshold_ratio)',
          '{{aggregate}}: {{policy}}', at=[(1, 'red')], minimum=0)],
    [lines('Age of the last good evaluation', 's',
           ('time() - (kronos_last_good_cycle_timestamp_seconds > 0) > 0', '{{aggregate}}')),
     lines('Evaluations by outcome, an hour', 'none',
           ('sum by (outcome) (increase(kronos_cycles_total[1h]))', '{{outcome}}'), minimum=0),
     lines('Processes', 'none', ('kronos_workers', '{{role}}, {{state}}'), minimum=0)],
    [lines('Hosts that are being emptied', 'none',
           ('kronos_drain_servers_left', '{{host}}: {{state}}'), minimum=0),
     lines('Remaining time of drains', 's', ('kronos_drain_remaining_seconds', '{{host}}'),
           minimum=0)],
    [lines('Repairs of allocations', 'none',
           ('kronos_allocation_repairs', '{{kind}}: {{state}}'), minimum=0),
     lines('Findings of the last audit', 'none', ('kronos_audit_findings', '{{kind}}'),
           minimum=0)],
    [lines('Notifications that wait', 'none',
           ('max(kronos_notifications_waiting) or vector(0)', 'waiting'), minimum=0),
     lines('Size of the control database', 'bytes', ('kronos_control_database_size_bytes', 'size'),
           minimum=0)],
])

AGGREGATE = ('Kronos: aggregate', 'kronos-aggregate', [
    [stat('Health', 'none', f'min(kronos_health_score{A})', minimum=0, maximum=100),
     stat('Hosts', 'none', f'sum(kronos_hosts{A})'),
     stat('Hot hosts', 'none', f'sum(kronos_hot_hosts{A}) or vector(0)', at=[(1, 'orange')]),
     stat('Paused', 'bool', f'max(kronos_paused{A}) or vector(0)', at=[(1, 'orange')])],
    [lines('Imbalance', 'percentunit', (f'kronos_imbalance_ratio{A}', '{{policy}}'),
           ('kronos_imbalance_threshold_ratio', '{{policy}}: threshold'), minimum=0),
     lines('Load of the hosts', 'percentunit',
           ('topk(50, kronos_host_score_ratio)', '{{host}}: {{policy}}'), minimum=0, maximum=1)],
    [lines('Servers that stay, by reason', 'none', (f'kronos_stayed_servers{A}', '{{reason}}'),
           minimum=0),
     lines('Planned moves', 'none', (f'kronos_last_cycle_moves{A}', '{{aggregate}}'), minimum=0)],
    [lines('Outcome of the last evaluation', 'none',
           (f'sum by (outcome) (kronos_last_cycle_outcome{A})', '{{outcome}}'), minimum=0),
     lines('Duration of evaluations', 's',
           (f'kronos_last_cycle_duration_seconds{A}', '{{aggregate}}'), minimum=0)],
    [lines('Hosts with a sample', 'percentunit',
           (f'kronos_policy_coverage_ratio{A}', '{{aggregate}}'), minimum=0, maximum=1),
     lines('Age of the oldest sample', 's',
           (f'kronos_policy_sample_age_seconds{A}', '{{aggregate}}'), minimum=0)],
    [lines('Highest imbalance of the hours to come', 'percentunit',
           (f'kronos_imbalance_ahead_ratio{A}', '{{policy}}'),
           ('kronos_imbalance_threshold_ratio', '{{policy}}: threshold'), minimum=0),
     lines('Error of the forecast, and of the present', 'percentunit',
           (f'kronos_forecast_error_ratio{A}', '{{policy}}: forecast'),
           (f'kronos_forecast_present_error_ratio{A}', '{{policy}}: present'), minimum=0),
     lines('Whether the forecast is planned by', 'bool',
           (f'kronos_forecast_used{A}', '{{policy}}'), minimum=0, maximum=1)],
    [lines('Hosts, if each were lost', 'none', (f'kronos_failover_hosts{A}', '{{verdict}}'),
           minimum=0),
     lines('Of those that fit, in the order of Nova', 'none',
           (f'kronos_failover_hosts_in_order{A}', '{{verdict}}'), minimum=0)],
])

MOVES = ('Kronos: moves', 'kronos-moves', [
    [stat('In progress', 'none', 'sum(kronos_moves_under_way)'),
     stat('Waiting', 'none', 'sum(kronos_moves_waiting)'),
     stat('Moved in 24 hours', 'bytes', 'sum(increase(kronos_moved_memory_bytes_total[24h]))'),
     stat('Remaining time of open plans', 's',
          'max(kronos_open_plan_remaining_seconds) or vector(0)')],
    [lines('Moves that ended, an hour', 'none',
           (f'sum by (state) (increase(kronos_moves_total{A}[1h]))', '{{state}}'), minimum=0),
     lines('Errors, an hour', 'none',
           (f'sum by (error) (increase(kronos_moves_total{ERRORS}[1h]))', '{{error}}'), minimum=0)],
    [heatmap('Duration of completed moves',
             'sum by (le) (increase(kronos_move_duration_seconds_bucket[1h]))'),
     lines('Duration of completed moves', 's',
           ('histogram_quantile(0.5, sum by (le) (rate(kronos_move_duration_seconds_bucket[1h])))',
            'median'),
           ('histogram_quantile(0.95, sum by (le) (rate(kronos_move_duration_seconds_bucket[1h])))',
            '95 %'), minimum=0)],
    [lines('Servers that are left alone', 'none',
           ('max(kronos_quarantined_servers) or vector(0)', 'quarantine'),
           ('max(kronos_cooling_servers) or vector(0)', 'cooling'),
           ('max(kronos_resting_servers) or vector(0)', 'resting'), minimum=0),
     lines('Moves of open plans', 'none',
           (f'kronos_open_plan_moves{A}', '{{aggregate}}: {{state}}'),
           (f'kronos_open_plan_ended_moves{A}', '{{aggregate}}: ended'), minimum=0)],
    [lines('Memory of the servers that the last evaluation moves', 'bytes',
           (f'kronos_last_cycle_moves_memory_bytes{A}', '{{aggregate}}'), minimum=0),
     lines('Median error of predicted durations', 'percentunit',
           ('kronos_move_duration_error_ratio', 'error'), minimum=0)],
])

DEMO = ('Kronos: demo', 'kronos-demo', [
    [stat('Health, worst aggregate', 'none', 'min(kronos_health_score)', minimum=0, maximum=100),
     stat('Moves in progress', 'none', 'sum(kronos_moves_under_way)'),
     stat('Moves that ended', 'none', 'sum(kronos_moves_total)'),
     stat('Moved', 'bytes', 'sum(kronos_moved_memory_bytes_total)')],
    [lines('Imbalance', 'percentunit', ('kronos_imbalance_ratio', '{{aggregate}}: {{policy}}'),
           ('max(kronos_imbalance_threshold_ratio)', 'threshold'), minimum=0),
     lines('Load of the hosts', 'percentunit', ('kronos_host_score_ratio', '{{host}}: {{policy}}'),
           minimum=0, maximum=1)],
    [lines('Servers by host', 'none',
           ('count by (host) (libvirt_domain_info_virtual_cpus)', '{{host}}'), minimum=0),
     lines('Processor time of the hosts', 'none',
           ('sum by (host) (rate(node_cpu_seconds_total{mode="user"}[30s]))', '{{host}}'),
           minimum=0)],
])

DASHBOARDS = (FLEET, AGGREGATE, MOVES, DEMO)


def dashboard(title: str, uid: str, rows: Iterable[Sequence[Panel]]) -> dict:
    """Return a dashboard in the form that Grafana imports."""
    panels: list[Panel] = []
    top = 0
    for row in rows:
        height = HEIGHT if len(row) < 4 else HEIGHT // 2
        for number, panel in enumerate(row):
            width = WIDTH // len(row)
            panels.append({**panel, 'id': len(panels) + 1, 'gridPos': {
                'x': number * width, 'y': top, 'w': width, 'h': height}})
        top += height
    return {'uid': uid, 'title': title, 'tags': ['kronos'], 'schemaVersion': SCHEMA, 'version': 1,
            'editable': True, 'refresh': '1m', 'time': {'from': 'now-6h', 'to': 'now'},
            'timezone': '', 'panels': panels, 'annotations': {'list': []},
            'links': [{'type': 'dashboards', 'title': 'Kronos', 'tags': ['kronos'],
                       'asDropdown': True}],
            'templating': {'list': [
                {'name': 'source', 'type': 'datasource', 'query': 'prometheus',
                 'label': 'Prometheus'},
                {'name': 'aggregate', 'type': 'query', 'datasource': SOURCE, 'multi': True,
                 'includeAll': True, 'allValue': '.*', 'refresh': 2, 'label': 'Aggregate',
                 'query': 'label_values(kronos_automation_level, aggregate)',
                 'current': {'text': 'All', 'value': '$__all'}}]}}


def written() -> dict[str, str]:
    """Return {file name: its text}."""
    return {f'{uid}.json': json.dumps(dashboard(title, uid, rows), indent=1) + '\n'
            for title, uid, rows in DASHBOARDS}


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, text in written().items():
        (TARGET / name).write_text(text)


if __name__ == '__main__':
    main()
