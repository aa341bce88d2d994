"""``[kronos_executor]``: how fast and how carefully moves are carried out."""

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_executor', title='Executor', help="""
How fast and how carefully the moves of a plan are carried out.
""")

OPTS = [
    cfg.IntOpt('max_concurrent_migrations', default=4, min=1, help="""
How many moves may be under way in the whole cloud at once.
"""),
    cfg.IntOpt('max_concurrent_per_source', default=1, min=1, help="""
How many moves may leave one host at once. More than ``[DEFAULT] max_concurrent_live_migrations`` of
nova-compute is of no use: Nova queues the rest.
"""),
    cfg.IntOpt('max_concurrent_per_destination', default=2, min=1, help="""
How many moves may arrive at one host at once.
"""),
    cfg.IntOpt('migration_timeout', default=1800, min=1, help="""
Seconds after which a live migration that has not ended is aborted and counted as failed. Large or
busy instances need longer: memory in MiB divided by what your network copies in a second, times
three, is a start.
"""),
    cfg.FloatOpt('poll_interval', default=2.0, min=0.1, help="""
Seconds between two looks at a migration under way.
"""),
    cfg.IntOpt('max_retries', default=2, min=0, help="""
How often a move that failed is tried again before it is failed for good.
"""),
    cfg.FloatOpt('retry_interval', default=30.0, min=1.0, help="""
Seconds before a move that failed is tried again; each further try waits twice as long, up to ten
minutes, and some more by chance.
"""),
    cfg.FloatOpt('request_grace', default=60.0, min=5.0, help="""
Seconds that Nova has to begin a migration it was asked for before the request counts as lost. Raise
it where conductors are so busy that requests wait for longer.
"""),
    cfg.FloatOpt('worker_timeout', default=60.0, min=5.0, help="""
Seconds without a sign of life after which a worker counts as dead and others take over its moves.
Some poll intervals, and more than your controllers' clocks may differ.
"""),
    cfg.IntOpt('stale_plan_age', default=1800, min=1, help="""
Seconds after which a planned move that nobody started is abandoned: the load it was planned for is
no longer the load there is.
"""),
]


def register_opts(conf):
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts():
    return OPTS
