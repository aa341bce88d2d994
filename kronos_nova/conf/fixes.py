"""``[kronos_fixes]``: a switch for each repair of a fault in Nova, see kronos_nova.plugin.fixes."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_fixes', title='Fixes', help="""
Faults of Nova, and of libraries that Nova uses, that Kronos repairs in the services it is loaded
into. Every fix is on by default. A fix is switched off to find out whether it causes a problem, or
once Nova itself has the repair. Restart the service after a change.
""")

OPTS = [
    cfg.BoolOpt('broken_migrations', default=True, help="""
Ask the hypervisors of both hosts where the guest runs when a live migration breaks off, and
complete it or roll it back accordingly. In nova-compute, at the source.

By default, it is on. If disabled, Nova decides by what its driver raised: an instance whose guest
runs on may be put into ERROR, and a guest whose QEMU died may be recorded as moved. An instance
whose guest has arrived is put into ERROR if placement does not delete the allocation of the
migration.

Related options: ``interrupted_migrations``, which needs this one.
"""),
    cfg.BoolOpt('interrupted_migrations', default=True, help="""
Complete or roll back the live migrations that were in progress when nova-compute at the source
ended, once it has started again. The data that this needs is written below
``$state_path/live-migrations``.

By default, it is on. If disabled, Nova aborts the copy and clears the task state of the instance:
what was prepared at the destination stays there, and a guest that has arrived is recorded at the
source.

Related options: ``broken_migrations``, which it needs.
"""),
    cfg.BoolOpt('post_migration_retry', default=True, help="""
Repeat the request that completes a live migration at its destination if nova-compute there was
restarted in the meantime. In nova-compute, at the source.

By default, it is on. If disabled, Nova asks once, and puts an instance whose guest has arrived into
ERROR after ``[DEFAULT] rpc_response_timeout``.
"""),
    cfg.BoolOpt('status_retry', default=True, help="""
Repeat a change of the status of a migration that no nova-conductor answered, for up to three
minutes. In nova-compute.

By default, it is on. If disabled, Nova asks once: a migration whose end could not be recorded looks
as if it were still in progress.
"""),
    cfg.BoolOpt('libvirt_connection', default=True, help="""
Replace the lock around Nova's connection to libvirt by one that a thread may take again. In
nova-compute with native threads and the libvirt driver.

By default, it is on. If disabled, nova-compute may wait for itself forever after libvirtd was
restarted, and has to be killed.
"""),
    cfg.BoolOpt('fork_safety', default=True, help="""
Give each worker of nova-conductor a placement client of its own.

By default, it is on. If disabled, workers share the connections that the parent process had opened
before it forked, and may read each other's answers.
"""),
    cfg.BoolOpt('image_credentials', default=True, help="""
Fetch images from Glance as ``[service_user]`` if a move was requested without a token, as the moves
of a plan are. In nova-compute.

By default, it is on. If disabled, moves of a plan to hosts with local disks fail where the
destination has to fetch an image.
"""),
    cfg.BoolOpt('cold_migration_rollback', default=True, help="""
Restore allocations by a single request to placement after a cold migration or resize could not
begin. An instance that was deleted in the meantime gets no allocations. In nova-conductor.

By default, it is on. If disabled, Nova does this in several requests, also for a deleted instance
(bug 1848343).

Related options: ``[kronos] atomic_moves``; turned off there, this fix has no effect.
"""),
    cfg.BoolOpt('request_clock', default=True, help="""
Measure the time between requests to other services by a clock that no correction changes. In
nova-compute, nova-conductor and nova-scheduler.

By default, it is on. If disabled, a service whose clock is set back sends no request to placement,
neutron, glance or cinder for as long as the step was: after a step of an hour nova-compute answers
nothing for an hour.
"""),
    cfg.BoolOpt('log_filters', default=True, help="""
Drop the deprecation warning of neutronclient that Nova causes in every step of every migration. In
nova-conductor.

By default, it is on. If disabled, the warning is logged each time.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
