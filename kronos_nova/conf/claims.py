"""``[kronos_claims]``: the claims that survive a restart of nova-compute."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_claims', title='Persistent claims', help="""
Resource claims of the instances on a compute host. Kronos makes nova-compute store these claims, so
that they survive a restart of nova-compute.
""")

OPTS = [
    cfg.StrOpt('store', default='sqlite', help="""
Store of the claims of a compute host. ``sqlite`` is a file on the compute host. ``central`` is the
control database, which nova-compute reaches through nova-conductor. Other stores may be installed
as entry points of ``kronos_nova.claim_stores``.

By default, ``sqlite``.

Set it to ``central`` to see the claims of all hosts in one database. Each claim then needs a call
to nova-conductor. Set the same value for nova-conductor; otherwise nova-conductor does not answer
these calls. Change the value only while nova-compute is stopped. When nova-compute starts, it fills
the new store from the instances and migrations of the host.

Related options: ``claim_db``.
"""),
    cfg.StrOpt('claim_db', default='claim.sqlite', help="""
Path of the SQLite file with the claims of a compute host, relative to ``[DEFAULT] state_path``. The
file is used if ``store`` is ``sqlite``.

By default, ``claim.sqlite``.

Change it where ``state_path`` is not on a local disk, because the file locks of SQLite do not work
on network file systems.

Related options: ``store``, ``[DEFAULT] state_path``.
"""),
    cfg.IntOpt('claim_expiry_time', default=300, min=1, help="""
Seconds after which a claim is released if it belongs to no instance and to no migration.

By default, five minutes.

Raise it where Nova takes longer to record the instance or the migration for which a claim was made.
Lower it where the room of claims that a crash leaves behind should be free sooner.
"""),
    cfg.PortOpt('metrics_port', help="""
TCP port on which nova-compute serves metrics of its claims to Prometheus.

By default, no metrics are served.

Set it where Prometheus should collect metrics of claims.

Related options: ``metrics_address``.
"""),
    cfg.HostAddressOpt('metrics_address', default='127.0.0.1', help="""
IP address or host name on which nova-compute serves metrics of its claims, at ``metrics_port``. The
metrics are served without authentication.

By default, ``127.0.0.1``: only programs on the same host can connect.

Change it to an address that only your Prometheus can reach.

Related options: ``metrics_port``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
