"""``[kronos_executor]``: how fast and how carefully moves are carried out."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_executor', title='Executor', help="""
How fast and how carefully the moves of a plan are carried out.
""")

OPTS = [
    cfg.IntOpt('max_concurrent_migrations', mutable=True, default=4, min=1, help="""
How many moves may run in the whole cloud at once.
"""),
    cfg.IntOpt('max_concurrent_per_source', mutable=True, default=1, min=1, help="""
How many moves may leave one host at once. More than ``[DEFAULT] max_concurrent_live_migrations`` of
nova-compute is of no use: Nova queues the rest.
"""),
    cfg.IntOpt('max_concurrent_per_destination', mutable=True, default=2, min=1, help="""
How many moves may arrive at one host at once.
"""),
    cfg.IntOpt('link_mbps', mutable=True, default=0, min=0, max=10_000_000, help="""
What each host's link for live migration carries, in megabits a second each way. By it and by what
was copied before, Kronos predicts how long moves take, and lets them begin in an order in which all
of a plan are over soon. 0 takes it for what one migration gets. 10000 for links of 10 Gbit/s that
carry little else.
"""),
    cfg.IntOpt('stream_mbps', mutable=True, default=0, min=0, max=10_000_000, help="""
What one live migration gets at most of a link that is idle, in megabits a second. 0 learns it from
moves that ended. One thread of QEMU copies some 8000 to 10000; set it where that is less than
``link_mbps``, to your ``[libvirt] live_migration_bandwidth`` (which is in MiB) times 8.4, or higher
where ``live_migration_parallel_connections`` is above 1.
"""),
    cfg.IntOpt('downtime_ms', mutable=True, default=500, min=1, max=600_000, help="""
Milliseconds for which a guest may be stopped at the end of its live migration: ``[libvirt]
live_migration_downtime`` of your nova-computes.
"""),
    cfg.BoolOpt('copies_local_disks', mutable=True, default=False, help="""
Whether instances have disks on their hosts that live migration copies (block migration). Leave it
off where disks are on Ceph, NFS or volumes: nothing of them is copied then, whatever placement says
of ``DISK_GB``.
"""),
    cfg.IntOpt('migration_timeout', mutable=True, default=1800, min=1, help="""
Seconds after which a live migration that has not ended is aborted and counted as failed. Large or
busy instances need longer: memory in MiB divided by what your network copies in a second, times
three, is a start.
"""),
    cfg.StrOpt('timeout_action', mutable=True, default='abort', choices=[
        ('abort', 'End it; the instance stays where it is.'),
        ('force_complete', 'Let Nova pause the instance until it is over. If it is not over '
                           'after as much time again, end it.'),
    ], help="""
What to do with a live migration that takes longer than ``migration_timeout``. Forcing stops the
guest for as long as the rest of its memory takes to copy.
"""),
    cfg.FloatOpt('start_interval', deprecated_name='stagger', mutable=True, default=0.0, min=0.0,
                 max=3600.0, help="""
Seconds by which every move of a plan is due after the one before it, for networks or storage that
many migrations beginning at once would hurt. 0 lets all go as soon as the caps above have room.
``start_interval`` times the moves of a plan must stay well below ``stale_plan_age``.
"""),
    cfg.IntOpt('worker_threads', default=8, min=1, help="""
How many moves one worker attends to at the same time. A Nova that is slow to answer holds up that
many; the rest of a worker goes on.
"""),
    cfg.FloatOpt('poll_interval', mutable=True, default=2.0, min=0.1, help="""
Seconds between two looks at a migration in progress.
"""),
    cfg.IntOpt('max_retries', mutable=True, default=2, min=0, help="""
How often a move that failed is tried again before it is failed for good.
"""),
    cfg.FloatOpt('retry_interval', mutable=True, default=30.0, min=1.0, help="""
Seconds before a move that failed is tried again; each further try waits twice as long, up to ten
minutes, and some more by chance.
"""),
    cfg.FloatOpt('request_grace', mutable=True, default=60.0, min=5.0, help="""
Seconds that Nova has to begin a migration it was asked for before the request counts as lost. Raise
it where conductors are so busy that requests wait for longer.
"""),
    cfg.FloatOpt('message_grace', mutable=True, default=30.0, min=1.0, help="""
Seconds after which a message counts as lost: a move that was dispatched and no worker accepted is
dispatched again, the result of one that ended is taken from the journal. Raise it where executors
take longer to answer.
"""),
    cfg.FloatOpt('worker_timeout', mutable=True, default=60.0, min=5.0, help="""
Seconds without a sign of life after which a worker counts as dead and others adopt its moves, each
measuring by its own monotonic clock. Raise it where workers stand still for long under load; lower
it for moves to be adopted sooner. A good value is some poll intervals. Related option:
``poll_interval``.
"""),
    cfg.FloatOpt('drain_timeout', mutable=True, default=60.0, min=0.0, help="""
Seconds for which a ``kronos-executor`` goes on with its moves after a signal to end.
Then it leaves them to others, and where there are none, to its own next start.
"""),
    cfg.IntOpt('stale_plan_age', mutable=True, default=1800, min=1, help="""
Seconds after which a planned move that was not started is abandoned: the load it was planned for is
no longer the load there is.
"""),
    cfg.BoolOpt('masakari', default=False, help="""
Whether drains keep masakari from acting on their hosts. A drain sets ``on_maintenance`` of its host
in every segment that has it, and clears it when the host is released or enabled; what was set
before the drain stays. By default masakari takes a host that is rebooted while it is drained for a
failed one. Set it where masakari watches the hosts of the aggregates. Related options:
``[kronos_nova]`` has to name a user who may update hosts of masakari, also where Kronos runs in
nova-conductor; ``ha_disabled_reasons``.
"""),
    cfg.ListOpt('ha_disabled_reasons', mutable=True, default=['Masakari', 'instanceha'], help="""
Beginnings of the reasons with which a service for high availability disables nova-compute. By
default those of masakari and of instanceha. Such a service takes a host that is rebooted while
Kronos drains it for a failed one, and writes its reason over that of the drain. When the host is
released, Kronos enables it all the same, if the drain had disabled it. Add the beginning of your
own reason where you have set another (``[host_failure] service_disable_reason`` of masakari). An
empty list leaves such hosts disabled.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
