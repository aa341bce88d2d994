"""``[kronos_scheduler]``: what the filter and the weigher in nova-scheduler go by."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_scheduler', title='Scheduler', help="""
What KronosFilter and KronosWeigher go by. They take effect when they are named in
``[filter_scheduler]``.
""")

OPTS = [
    cfg.FloatOpt('weight_multiplier', default=1.0, help="""
How much the load that Kronos measured counts beside Nova's other weighers. 0 turns the weigher off;
negative values turn it round.
"""),
    cfg.IntOpt('score_max_age', default=900, min=1, help="""
Seconds after which a measured load is too old to go by and the weigher keeps neutral. Some
evaluation intervals.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
