"""``[kronos_claims]``: the claims that outlive nova-compute."""

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_claims', title='Persistent claims', help="""
The resource claims of a compute node, kept so that they survive a restart of nova-compute.
""")

OPTS = [
    cfg.StrOpt('claim_db', default='claim.sqlite', help="""
The SQLite file of the claims, relative to ``[DEFAULT] state_path``. It must be on a local disk.
"""),
    cfg.IntOpt('claim_expiry_time', default=300, min=1, help="""
Seconds after which a claim that belongs to no instance and no migration is released. It must be
longer than the slowest step between a claim and the moment at which Nova records it.
"""),
]


def register_opts(conf):
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts():
    return OPTS
