"""``[kronos_executor]``: the limits, timeouts and retries of moves, and the workers that carry them
out."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_executor', title='Executor', help="""
Options for carrying out the moves of plans: limits on concurrent moves, time limits, and retries.
""")

OPTS = [
    cfg.IntOpt('max_concurrent_migrations', mutable=True, default=4, min=1, help="""
Maximum number of moves that are in progress at the same time in the whole cloud.

By default, four.

Raise it in large clouds where plans do not end within ``stale_plan_age``. Lower it where migrations
slow down the network.

Related options: ``max_concurrent_per_source``, ``max_concurrent_per_destination``,
``stale_plan_age``.
"""),
    cfg.IntOpt('max_concurrent_per_source', mutable=True, default=1, min=1, help="""
Maximum number of moves from one host that are in progress at the same time.

By default, one.

Raise it where hosts have to be emptied fast. A value above ``[DEFAULT]
max_concurrent_live_migrations`` of nova-compute has no benefit, because nova-compute queues the
surplus migrations.

Related options: ``max_concurrent_migrations``, ``[DEFAULT] max_concurrent_live_migrations``.
"""),
    cfg.IntOpt('max_concurrent_per_destination', mutable=True, default=2, min=1, help="""
Maximum number of moves to one host that are in progress at the same time.

By default, two.

Raise it where network links are fast. Lower it where a host is slow while servers arrive.

Related options: ``max_concurrent_migrations``.
"""),
    cfg.IntOpt('link_mbps', mutable=True, default=0, min=0, max=10_000_000, help="""
Capacity of the network link that each host has for live migration, in megabits per second in each
direction. Kronos predicts the durations of moves from this capacity and from past migrations. By
the predicted durations, Kronos chooses an order of the moves in which the whole plan takes little
time.

By default, 0: the link is assumed to carry only as much as one migration (``stream_mbps``).

Set it to the speed of the link, such as 10000 for 10 Gbit/s, minus the bandwidth that other traffic
on the link needs.

Related options: ``stream_mbps``.
"""),
    cfg.IntOpt('stream_mbps', mutable=True, default=0, min=0, max=10_000_000, help="""
Largest bandwidth that one live migration reaches on an idle link, in megabits per second. Kronos
predicts the durations of moves from this bandwidth. One thread of QEMU copies some 8000 to 10000
megabits per second.

By default, 0: Kronos learns the bandwidth from moves that have ended.

Set it where one migration gets less than ``link_mbps``. If ``[libvirt] live_migration_bandwidth``
(MiB per second) is set, set ``stream_mbps`` to 8.4 times that value. Otherwise, an initial value is
8000, multiplied by ``[libvirt] live_migration_parallel_connections``.

Related options: ``link_mbps``, ``[libvirt] live_migration_bandwidth``.
"""),
    cfg.IntOpt('downtime_ms', mutable=True, default=500, min=1, max=600_000, help="""
Maximum downtime of a guest at the end of its live migration, in milliseconds, as configured in
Nova. Kronos only predicts the durations of moves from this value; the value in Nova does not
change.

By default, 500, which is also Nova's default.

Set it to ``[libvirt] live_migration_downtime`` of your nova-computes. With any other value, the
predicted durations are wrong.

Related options: ``[libvirt] live_migration_downtime``.
"""),
    cfg.BoolOpt('copies_local_disks', mutable=True, default=False, help="""
Whether live migrations copy the disks of instances (block migration). Kronos predicts the durations
of moves accordingly.

By default, off: durations are predicted as if only memory is copied.

Turn it on where the disks of instances are local disks of their hosts. Leave it off where the disks
are on Ceph, NFS or volumes, even if placement reports ``DISK_GB`` for these instances.
"""),
    cfg.IntOpt('migration_timeout', mutable=True, default=1800, min=1, help="""
Maximum duration of a live migration, in seconds. If a live migration takes longer, Kronos aborts it
or lets Nova complete it, as ``timeout_action`` specifies.

By default, half an hour.

Raise it where instances are large or busy. An initial value is three times the time in which your
network copies the memory of the largest instance. Lower it where a migration that hangs should make
way for other moves sooner.

Related options: ``timeout_action``.
"""),
    cfg.StrOpt('timeout_action', mutable=True, default='abort', choices=[
        ('abort', 'Abort the migration; the instance stays on its host.'),
        ('force_complete', 'Let Nova pause the instance until the migration is complete. If it is '
                           'not complete after the same time again, abort it.'),
    ], help="""
Action on a live migration that takes longer than ``migration_timeout``.

By default, ``abort``: the migration is aborted and counts as failed.

Set it to ``force_complete`` where a migration must end although the guest writes memory faster than
the network copies it. The guest is then paused while the rest of its memory is copied.

Related options: ``migration_timeout``.
"""),
    cfg.FloatOpt('start_interval', deprecated_name='stagger', mutable=True, default=0.0, min=0.0,
                 max=3600.0, help="""
Minimum number of seconds between the starts of two successive moves of a plan.

By default, 0: a move starts as soon as the limits on concurrent moves permit it.

Raise it where many migrations that start at the same time slow down the network or the storage. The
number of moves in a plan times ``start_interval`` must stay well below ``stale_plan_age``.
Otherwise the last moves of the plan are abandoned.

Related options: ``max_concurrent_migrations``, ``stale_plan_age``.
"""),
    cfg.IntOpt('worker_threads', default=8, min=1, help="""
Number of threads in which one worker carries out moves. Each thread handles one move at a time and
may wait for an answer of Nova. The other tasks of the worker continue meanwhile.

By default, eight.

Raise it where ``max_concurrent_migrations`` is higher and one worker has to carry out all moves.
Lower it where a worker uses too much memory.

Related options: ``max_concurrent_migrations``.
"""),
    cfg.FloatOpt('poll_interval', mutable=True, default=2.0, min=0.1, help="""
Seconds between two requests to Nova for the state of a move in progress.

By default, two seconds.

Raise it where these requests load Nova's API too much. Lower it where a move that waits for the end
of another move should start sooner.

Related options: ``worker_timeout``.
"""),
    cfg.IntOpt('max_retries', mutable=True, default=2, min=0, help="""
Number of times that a move is retried after a failure. If the last retry fails, the move has failed
for good.

By default, two.

Raise it where migrations often fail for temporary reasons. Lower it where each attempt disturbs
users.

Related options: ``retry_interval``, ``[kronos] instance_quarantine_seconds``.
"""),
    cfg.FloatOpt('retry_interval', mutable=True, default=30.0, min=1.0, help="""
Seconds between the failure of a move and its first retry. The wait doubles with each further retry.
A random time of up to half the wait is added. The wait never exceeds ten minutes.

By default, half a minute.

Raise it where the causes of failures last longer than the waits. Lower it where a plan should end
sooner.

Related options: ``max_retries``.
"""),
    cfg.FloatOpt('request_grace', mutable=True, default=60.0, min=5.0, help="""
Seconds within which Nova has to begin a migration after Kronos has requested it. After this time,
the request counts as lost, and the attempt to move the instance has failed.

By default, a minute.

Raise it where requests wait longer than a minute because nova-conductors are busy. Lower it where
lost requests should be repeated sooner.

Related options: ``message_grace``, ``max_retries``.
"""),
    cfg.FloatOpt('message_grace', mutable=True, default=30.0, min=1.0, help="""
Seconds after which a message between the processes of Kronos counts as lost. If a message asked an
executor to carry out a move, the message is sent again. If a message reported the result of a move,
the result is read from the control database instead.

By default, half a minute.

Raise it where executors take longer than half a minute to answer. Lower it where the message broker
often loses messages.

Related options: ``request_grace``.
"""),
    cfg.FloatOpt('worker_timeout', mutable=True, default=60.0, min=5.0, help="""
Seconds without a heartbeat after which a worker counts as dead. Other workers then adopt its moves.
Each worker measures this time by its own monotonic clock.

By default, a minute.

Raise it where busy workers are delayed for longer than a minute; the value should be several times
``poll_interval``. Lower it where the moves of a dead worker should continue sooner.

Related options: ``poll_interval``.
"""),
    cfg.FloatOpt('drain_timeout', mutable=True, default=60.0, min=0.0, help="""
Seconds for which a ``kronos-executor`` continues its moves after SIGTERM, before it exits. Moves
that are still in progress after this time are adopted by another executor, or by the same executor
when it is started again. Despite its name, the option has nothing to do with drains of hosts.

By default, a minute.

Raise it where no other executor runs, and moves should end before the executor exits. Lower it
where the host of the executor has to shut down fast.
"""),
    cfg.IntOpt('stale_plan_age', mutable=True, default=1800, min=1, help="""
Seconds after which a planned move is abandoned if it has not started. By then, the load may no
longer be the load for which the move was planned.

By default, half an hour.

Raise it where plans are long and load changes slowly. Lower it where load changes fast.

Related options: ``max_concurrent_migrations``, ``start_interval``.
"""),
    cfg.BoolOpt('masakari', default=False, help="""
Whether Kronos sets a drained host to maintenance in masakari, so that masakari does not act on the
host. When a drain begins, Kronos sets ``on_maintenance`` of the host in every segment of masakari
that contains the host. The setting is cleared when the host is released or enabled. If
``on_maintenance`` was set before the drain, the setting is not cleared.

By default, off: masakari regards a host that is rebooted during a drain as failed.

Turn it on where masakari watches the hosts of the aggregates. The user of ``[kronos_nova]`` then
needs permission to update hosts of masakari. ``[kronos_nova]`` is needed even where Kronos runs in
nova-conductor.

Related options: ``[kronos_nova]``, ``ha_disabled_reasons``.
"""),
    cfg.ListOpt('ha_disabled_reasons', mutable=True, default=['Masakari', 'instanceha'], help="""
First words of the ``disabled_reason`` that high-availability services, such as masakari, give to a
host. With this list, Kronos can enable a host after a drain although such a service has replaced
the ``disabled_reason`` that the drain had set. A service may do so if the host is rebooted during
the drain, because the host then seems to have failed. When the host is released, Kronos enables the
host if the ``disabled_reason`` is that of the drain, or begins with an entry of this list. Kronos
enables only hosts that the drain itself had disabled.

By default, the first words that masakari and instanceha write. With an empty list, hosts with a
``disabled_reason`` of a high-availability service stay disabled.

Add the first words of ``[host_failure] service_disable_reason`` if you have set this option of
masakari.

Related options: ``masakari``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
