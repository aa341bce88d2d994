"""``[kronos_exporter]``: the service that gives Prometheus the metrics of Kronos."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_exporter', title='Exporter', help="""
``kronos-exporter`` reads the control database and serves metrics of what Kronos does to Prometheus.
One exporter is enough; where several run, scrape one of them.
""")

OPTS = [
    cfg.PortOpt('port', default=9789, help="""
TCP port at which ``kronos-exporter`` serves ``/metrics``.

By default, 9789.

Change it where another program has this port.

Related options: ``address``.
"""),
    cfg.HostAddressOpt('address', default='127.0.0.1', help="""
Address at which ``port`` listens. The metrics are served without authentication, and name
aggregates and hosts.

By default, only programs on the same host can connect.

Change it to an address that only your Prometheus can reach.

Related options: ``port``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
