"""``[kronos_prometheus]``: where the load is read."""

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_prometheus', title='Metrics', help="""
Where Kronos reads the load of hosts and instances: Prometheus or anything with its HTTP API
(Thanos, Mimir, VictoriaMetrics).
""")

OPTS = [
    cfg.URIOpt('url', default='http://127.0.0.1:9090', schemes=['http', 'https'], help="""
Base URL of the Prometheus HTTP API, with a path prefix if it has one
(``https://metrics.example.com/prometheus``).
"""),
    cfg.FloatOpt('timeout', default=10.0, min=0.1, help="""
Seconds to wait for one answer. Raise it where the policies' queries are slow; a query over
thousands of hosts should still take a second or two.
"""),
    cfg.IntOpt('max_retries', default=3, min=0, help="""
How often a query that was refused or not answered is sent again, with growing pauses, before the
cycle goes on without it.
"""),
]


def register_opts(conf):
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts():
    return OPTS
