"""``[kronos_claims]``: the claims that survive a restart of nova-compute."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_claims', title='Persistent claims', help="""
Resource claims of instances on a compute host. nova-compute stores the claims, so that they survive
a restart.
""")

OPTS = [
    cfg.StrOpt('store', default='sqlite', help="""
Store of the claims of a host: ``sqlite``, a file on the compute host, or ``central``, the control
database, which nova-compute reaches through nova-conductor. Other stores may be installed as entry
points of ``kronos_nova.claim_stores``.

By default, ``sqlite``.

Set it to ``central`` for one view of all hosts, at the price of a call to nova-conductor for each
claim. nova-conductor must have the same value, or it does not answer that call. Change it while
nova-compute is stopped; the new store is built from the instances and migrations of the host.

Related options: ``claim_db``.
"""),
    cfg.StrOpt('claim_db', default='claim.sqlite', help="""
Path of the SQLite file of the claims, relative to ``[DEFAULT] state_path``.

By default, ``claim.sqlite``.

Change it where ``state_path`` is not on a local disk: SQLite's locks do not work on network file
systems.

Related options: ``store``, ``[DEFAULT] state_path``.
"""),
    cfg.IntOpt('claim_expiry_time', default=300, min=1, help="""
Seconds after which a claim that belongs to no instance and no migration is released.

By default, five minutes.

Raise it above the slowest step between a claim and the moment at which Nova records it. Lower it
where room that a crash left claimed should be free sooner.
"""),
    cfg.PortOpt('metrics_port', help="""
TCP port at which nova-compute serves the metrics of its claims to Prometheus.

By default, no metrics are served.

Set it where Prometheus should watch the claims.

Related options: ``metrics_address``.
"""),
    cfg.HostAddressOpt('metrics_address', default='127.0.0.1', help="""
Address at which ``metrics_port`` listens. The metrics are served without authentication.

By default, only programs on the same host can connect.

Change it to an address that only your Prometheus can reach.

Related options: ``metrics_port``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
