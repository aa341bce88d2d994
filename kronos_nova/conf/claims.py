"""``[kronos_claims]``: the claims that outlive nova-compute."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_claims', title='Persistent claims', help="""
The resource claims of a compute node, kept so that they survive a restart of nova-compute.
""")

OPTS = [
    cfg.StrOpt('store', default='sqlite', help="""
Where the claims are kept: ``sqlite`` (default), a file on the compute host, or ``central``, the
control database, which nova-compute reaches through nova-conductor. ``central`` gives one view of
all hosts and adds a call to nova-conductor to every claim; nova-conductor has to be configured
with it too, or it does not serve that call. Others may be installed as entry points
of ``kronos_nova.claim_stores``. Change it while nova-compute is stopped; the new store is built
from the instances and migrations of the host.
"""),
    cfg.StrOpt('claim_db', default='claim.sqlite', help="""
The SQLite file of the claims, relative to ``[DEFAULT] state_path``. It must be on a local disk.
"""),
    cfg.IntOpt('claim_expiry_time', default=300, min=1, help="""
Seconds after which a claim that belongs to no instance and no migration is released. It must be
longer than the slowest step between a claim and the moment at which Nova records it.
"""),
    cfg.PortOpt('metrics_port', help="""
TCP port at which nova-compute serves the metrics of its claims to Prometheus. Unset (default), it
serves none. Related: ``metrics_address``.
"""),
    cfg.HostAddressOpt('metrics_address', default='127.0.0.1', help="""
Address at which ``metrics_port`` listens. Only ever one that your Prometheus alone can reach: the
metrics are served without authentication.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
