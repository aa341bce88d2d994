"""``[kronos_fixes]``: a switch for each repair of a fault in Nova, see kronos_nova.plugin.fixes."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_fixes', title='Fixes', help="""
Fixes for faults of Nova, and of libraries that Nova uses, in the services that load Kronos. Every
fix is on by default. Turn a fix off to find out whether it causes a problem, or once Nova itself
has the repair. Restart the service after a change.
""")

OPTS = [
    cfg.BoolOpt('broken_migrations', default=True, help="""
Whether nova-compute on the source host asks the hypervisors of both hosts where the guest runs when
a live migration breaks off, and then completes the migration or rolls it back accordingly.

By default, it is on. If disabled, Nova decides by what its driver raised: an instance whose guest
runs on may be put into ERROR, and a guest whose QEMU died may be recorded as moved. An instance
whose guest has arrived is put into ERROR if placement does not delete the allocation of the
migration.

Related options: ``interrupted_migrations``, which has no effect without this one.
"""),
    cfg.BoolOpt('interrupted_migrations', default=True, help="""
Whether nova-compute on the source host, after a restart, completes or rolls back the live
migrations that were in progress when it ended. nova-compute writes the data for this into the
folder ``$state_path/live-migrations``.

By default, it is on. If disabled, Nova aborts the copy and clears the task state of the instance:
the resources that were prepared on the destination stay there, and a guest that has arrived at the
destination is still recorded on the source.

Related options: ``broken_migrations``, which must be on too.
"""),
    cfg.BoolOpt('post_migration_retry', default=True, help="""
Whether nova-compute on the source host repeats the request that completes a live migration on the
destination, if nova-compute there was restarted in the meantime.

By default, it is on. If disabled, Nova sends the request once, and puts an instance whose guest has
arrived into ERROR after ``[DEFAULT] rpc_response_timeout``.
"""),
    cfg.BoolOpt('status_retry', default=True, help="""
Whether nova-compute repeats a request to change the status of a migration that no nova-conductor
answered, for up to three minutes.

By default, it is on. If disabled, Nova sends the request once, and a migration whose end could not
be recorded looks as if it were still in progress.
"""),
    cfg.BoolOpt('libvirt_connection', default=True, help="""
Whether the lock around Nova's connection to libvirt is replaced by a lock that the same thread may
acquire again. The fix is for nova-compute with native threads and the libvirt driver.

By default, it is on. If disabled, nova-compute may block itself for ever after a restart of
libvirtd, and then has to be killed.
"""),
    cfg.BoolOpt('fork_safety', default=True, help="""
Whether each worker of nova-conductor has a placement client of its own.

By default, it is on. If disabled, workers share the connections that the parent process had opened
before it forked, and may read each other's answers.
"""),
    cfg.BoolOpt('image_credentials', default=True, help="""
Whether nova-compute fetches images from Glance as ``[service_user]`` for a move that was requested
without a token, as the moves of a plan are.

By default, it is on. If disabled, moves of a plan to hosts with local disks fail where the
destination has to fetch an image.
"""),
    cfg.BoolOpt('cold_migration_rollback', default=True, help="""
Whether nova-conductor restores allocations by a single request to placement when a cold migration
or resize could not begin. An instance that was deleted in the meantime then gets no allocations.

By default, it is on. If disabled, Nova restores allocations by several requests, also those of a
deleted instance (bug 1848343). The fix has no effect where ``[kronos] atomic_moves`` is ``off``.

Related options: ``[kronos] atomic_moves``.
"""),
    cfg.BoolOpt('request_clock', default=True, help="""
Whether nova-compute, nova-conductor and nova-scheduler measure the time between requests to other
services by a monotonic clock, which no correction of the system clock changes.

By default, it is on. If disabled, a service whose clock is set back sends no request to placement,
neutron, glance or cinder for as long as the clock was set back: by an hour, and nova-compute
answers nothing for an hour.
"""),
    cfg.BoolOpt('log_filters', default=True, help="""
Whether nova-conductor drops the deprecation warning of neutronclient that Nova causes in every step
of every migration.

By default, it is on. If disabled, the warning is logged each time.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
