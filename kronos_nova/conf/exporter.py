"""``[kronos_exporter]``: the service that serves the metrics of Kronos to Prometheus."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_exporter', title='Exporter', help="""
``kronos-exporter`` reads the control database and serves metrics of Kronos to Prometheus. One
exporter is enough. Where several exporters run, for instance on several controllers, Prometheus may
scrape all of them: they report the same values, and alerts fire once for each exporter.
""")

OPTS = [
    cfg.PortOpt('port', default=9789, help="""
TCP port on which ``kronos-exporter`` serves ``/metrics``.

By default, 9789.

Change it where another program uses this port.

Related options: ``address``.
"""),
    cfg.HostAddressOpt('address', default='127.0.0.1', help="""
IP address or host name on which ``kronos-exporter`` listens, at ``port``. The metrics are served
without authentication, and contain names of aggregates and hosts.

By default, ``127.0.0.1``: only programs on the same host can connect.

Change it to an address that only your Prometheus can reach.

Related options: ``port``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
