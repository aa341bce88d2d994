"""``[kronos_executor]``: the limits, timeouts and retries of moves, and the workers that carry them
out."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_executor', title='Executor', help="""
Options for carrying out the moves of plans: limits on concurrent moves, time limits, and retries.
""")

OPTS = [
    cfg.IntOpt('max_concurrent_migrations', mutable=True, default=4, min=1, help="""
Maximum number of moves that run in the whole cloud at once.

By default, four.

Raise it in large clouds where plans do not end within ``stale_plan_age``. Lower it where migrations
slow down the network.

Related options: ``max_concurrent_per_source``, ``max_concurrent_per_destination``,
``stale_plan_age``.
"""),
    cfg.IntOpt('max_concurrent_per_source', mutable=True, default=1, min=1, help="""
Maximum number of moves that leave one host at once.

By default, one.

Raise it where hosts have to be emptied fast. More than ``[DEFAULT] max_concurrent_live_migrations``
of nova-compute is of no use, because Nova queues the rest.

Related options: ``max_concurrent_migrations``, ``[DEFAULT] max_concurrent_live_migrations``.
"""),
    cfg.IntOpt('max_concurrent_per_destination', mutable=True, default=2, min=1, help="""
Maximum number of moves that arrive at one host at once.

By default, two.

Raise it where links are fast. Lower it where a host is slow while servers arrive.

Related options: ``max_concurrent_migrations``.
"""),
    cfg.IntOpt('link_mbps', mutable=True, default=0, min=0, max=10_000_000, help="""
Capacity of each host's link for live migration, in megabits per second in each direction. Kronos
predicts from it, and from past migrations, how long moves take, and starts them in an order in
which all moves of a plan end soon.

By default, 0: the link is assumed to carry as much as one migration gets (``stream_mbps``).

Set it to the speed of the link, such as 10000 for 10 Gbit/s, where the link carries little else.
Lower it by the share of other traffic.

Related options: ``stream_mbps``.
"""),
    cfg.IntOpt('stream_mbps', mutable=True, default=0, min=0, max=10_000_000, help="""
Largest bandwidth of one live migration on an idle link, in megabits per second. One thread of QEMU
copies some 8000 to 10000.

By default, 0: Kronos learns the bandwidth from moves that have ended.

Set it where one migration gets less than ``link_mbps``: to your ``[libvirt]
live_migration_bandwidth`` (in MiB) times 8.4. Raise it where
``live_migration_parallel_connections`` is above 1.

Related options: ``link_mbps``, ``[libvirt] live_migration_bandwidth``.
"""),
    cfg.IntOpt('downtime_ms', mutable=True, default=500, min=1, max=600_000, help="""
Milliseconds for which a guest may be stopped at the end of its live migration, as configured in
Nova. Kronos uses the value to predict how long moves take, and does not change it in Nova.

By default, 500, as in Nova.

Set it to ``[libvirt] live_migration_downtime`` of your nova-computes. With another value, predicted
durations are wrong.

Related options: ``[libvirt] live_migration_downtime``.
"""),
    cfg.BoolOpt('copies_local_disks', mutable=True, default=False, help="""
Whether instances have disks on their hosts that live migration copies (block migration).

By default, only memory is expected to be copied.

Turn it on where the disks of instances are on their hosts. Leave it off where disks are on Ceph,
NFS or volumes: their data stays in place, whatever ``DISK_GB`` placement reports.
"""),
    cfg.IntOpt('migration_timeout', mutable=True, default=1800, min=1, help="""
Maximum duration of a live migration, in seconds. ``timeout_action`` says what happens to a live
migration that takes longer.

By default, half an hour.

Raise it where instances are large or busy. An initial value is their memory in MiB, divided by the
MiB that your network copies in a second, times three. Lower it where a migration that hangs should
make room for others sooner.

Related options: ``timeout_action``.
"""),
    cfg.StrOpt('timeout_action', mutable=True, default='abort', choices=[
        ('abort', 'Abort the migration; the instance stays on its host.'),
        ('force_complete', 'Let Nova pause the instance until the migration is complete. If it is '
                           'not complete after the same time again, abort it.'),
    ], help="""
Action on a live migration that takes longer than ``migration_timeout``.

By default, ``abort``: the migration is aborted and counts as failed.

Set it to ``force_complete`` where a move must end although the guest writes faster than the network
copies. The guest then stops for as long as the rest of its memory takes to copy.

Related options: ``migration_timeout``.
"""),
    cfg.FloatOpt('start_interval', deprecated_name='stagger', mutable=True, default=0.0, min=0.0,
                 max=3600.0, help="""
Minimum number of seconds between the starts of two successive moves of a plan.

By default, 0: moves start as soon as the limits on concurrent moves permit it.

Raise it where many migrations that start at once slow down the network or the storage.
``start_interval`` times the moves of a plan must stay well below ``stale_plan_age``.

Related options: ``max_concurrent_migrations``, ``stale_plan_age``.
"""),
    cfg.IntOpt('worker_threads', default=8, min=1, help="""
Number of moves that one worker handles at the same time. Where Nova is slow to answer, up to that
many moves wait for it; the other tasks of the worker continue.

By default, eight.

Raise it where ``max_concurrent_migrations`` is higher and one worker has to carry them all. Lower
it where a worker takes too much memory.

Related options: ``max_concurrent_migrations``.
"""),
    cfg.FloatOpt('poll_interval', mutable=True, default=2.0, min=0.1, help="""
Seconds between two requests to Nova for the state of a migration in progress.

By default, two seconds.

Raise it where many moves in progress load Nova's API. Lower it where moves that wait for others
should start sooner.

Related options: ``worker_timeout``.
"""),
    cfg.IntOpt('max_retries', mutable=True, default=2, min=0, help="""
Number of times that a failed move is tried again before it counts as failed for good.

By default, two.

Raise it where migrations often fail for passing reasons. Lower it where each try harms users.

Related options: ``retry_interval``, ``[kronos] instance_quarantine_seconds``.
"""),
    cfg.FloatOpt('retry_interval', mutable=True, default=30.0, min=1.0, help="""
Seconds before a failed move is tried again. Each further try waits twice as long, up to ten
minutes, plus a random time.

By default, half a minute.

Raise it where causes of failures last longer. Lower it where a plan should end sooner.

Related options: ``max_retries``.
"""),
    cfg.FloatOpt('request_grace', mutable=True, default=60.0, min=5.0, help="""
Seconds that Nova has to begin a requested migration before the request counts as lost.

By default, a minute.

Raise it where nova-conductors are so busy that requests wait longer. Lower it where lost requests
should be repeated sooner.

Related options: ``message_grace``.
"""),
    cfg.FloatOpt('message_grace', mutable=True, default=30.0, min=1.0, help="""
Seconds after which a message counts as lost. A move that no worker accepted is then dispatched
again, and the result of a move that ended is read from the journal.

By default, half a minute.

Raise it where executors take longer to answer. Lower it where a broker loses messages.

Related options: ``request_grace``.
"""),
    cfg.FloatOpt('worker_timeout', mutable=True, default=60.0, min=5.0, help="""
Seconds without a sign of life after which a worker counts as dead and other workers adopt its
moves. Each worker measures this time by its own monotonic clock.

By default, a minute.

Raise it where busy workers are delayed for long. Lower it where other workers should adopt moves
sooner. An initial value is several times ``poll_interval``.

Related options: ``poll_interval``.
"""),
    cfg.FloatOpt('drain_timeout', mutable=True, default=60.0, min=0.0, help="""
Seconds for which a ``kronos-executor`` continues its moves after SIGTERM. It then leaves them to
other executors, or to its own next start.

By default, a minute.

Raise it where no other executor runs and moves should end first. Lower it where a host has to stop
fast.
"""),
    cfg.IntOpt('stale_plan_age', mutable=True, default=1800, min=1, help="""
Seconds after which a planned move that was not started is abandoned, because the load has changed
since it was planned.

By default, half an hour.

Raise it where plans are long and load changes slowly. Lower it where load changes fast.

Related options: ``max_concurrent_migrations``, ``start_interval``.
"""),
    cfg.BoolOpt('masakari', default=False, help="""
Whether drains keep masakari from acting on their hosts. A drain then sets ``on_maintenance`` of its
host in every segment that has it, and clears it when the host is released or enabled. A value that
was set before the drain stays.

By default, off: masakari then regards a host that is rebooted during a drain as failed.

Turn it on where masakari watches the hosts of the aggregates. ``[kronos_nova]`` then has to name a
user who may update hosts of masakari, also where Kronos runs in nova-conductor.

Related options: ``[kronos_nova]``, ``ha_disabled_reasons``.
"""),
    cfg.ListOpt('ha_disabled_reasons', mutable=True, default=['Masakari', 'instanceha'], help="""
Reasons that do not keep Kronos from enabling a drained host when it is released, each given by its
first words. They are the reasons (``disabled_reason``) with which services for high availability
disable nova-compute. If a host is rebooted during a drain, such a service regards the host as
failed, and replaces the reason of the drain with its own. Kronos enables only hosts that the drain
itself had disabled.

By default, those of masakari and of instanceha. An empty list leaves such hosts disabled.

Add the first words of your own reason where you have set one (``[host_failure]
service_disable_reason`` of masakari).

Related options: ``masakari``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
