"""``[kronos_fixes]``: a switch for each repair of a fault in Nova, see kronos_nova.plugin.fixes."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_fixes', title='Fixes', help="""
Fixes for faults of Nova and of libraries that Nova uses, in the services that load Kronos. Every
fix is on by default. Turn a fix off to find out whether it causes a problem, or once your version
of Nova has a fix of its own. Restart the service after a change.
""")

OPTS = [
    cfg.BoolOpt('broken_migrations', default=True, help="""
Whether nova-compute looks for the guest of a live migration that has broken off. nova-compute on
the source host asks the hypervisors of both hosts. If the guest has arrived at the destination,
nova-compute completes the migration; otherwise it rolls the migration back.

By default, it is on. If disabled, Nova relies on the error that its virt driver raised. Nova may
then put an instance into ERROR although its guest runs on, or record a guest as moved although its
QEMU died. If placement does not delete the allocation of the migration, Nova puts the instance into
ERROR although its guest has arrived.

Related options: ``interrupted_migrations``, which has no effect without ``broken_migrations``.
"""),
    cfg.BoolOpt('interrupted_migrations', default=True, help="""
Whether a restarted nova-compute completes or rolls back the live migrations from its host that the
restart interrupted. nova-compute stores the necessary data in the folder
``$state_path/live-migrations``.

By default, it is on. If disabled, Nova only aborts the copy and clears the task state of the
instance. Resources that were prepared on the destination are left behind. A guest that has already
arrived at the destination is still recorded on the source.

Related options: ``broken_migrations``, without which ``interrupted_migrations`` has no effect.
"""),
    cfg.BoolOpt('interrupted_cold_migrations', default=True, help="""
Whether a restarted nova-compute ends the cold migrations and resizes that the restart interrupted.
Migrations from its host are rolled back. Migrations to its host are completed; nova-compute stores
the necessary data in the folder ``$state_path/cold-migrations``. A migration whose request is
received after an evacuation of its instance began is ended.

By default, it is on. If disabled, such a migration seems to be in progress for ever, or Nova puts
the instance into ERROR although its guest is unharmed. A guest that was to be started on the
destination stays powered off. An evacuation in progress fails if such a request is received.
"""),
    cfg.BoolOpt('post_migration_retry', default=True, help="""
Whether nova-compute on the source host repeats the last requests of a live migration while a
service does not answer. The first is the request to neutron to bind the ports to the destination.
The second is the request to nova-compute on the destination to complete the migration. Both are
repeated for up to two minutes, and at least once.

By default, it is on. If disabled, Nova sends each request only once. If nova-compute on the
destination does not answer within ``[DEFAULT] rpc_response_timeout``, Nova puts the instance into
ERROR although its guest has arrived.

Related options: ``broken_migrations``, which completes the migration if the service still does not
answer.
"""),
    cfg.BoolOpt('status_retry', default=True, help="""
Whether nova-compute repeats a request to change the status of a migration while no nova-conductor
answers. The request is repeated for up to three minutes.

By default, it is on. If disabled, Nova sends the request only once. A migration whose final status
was not recorded then seems to be in progress for ever.
"""),
    cfg.BoolOpt('libvirt_connection', default=True, help="""
Whether Nova's connection to libvirt is guarded by a reentrant lock, which the same thread may
acquire again. The fix is for a nova-compute with native threads and the libvirt driver.

By default, it is on. If disabled, a deadlock may occur in nova-compute after a restart of libvirtd.
nova-compute then has to be killed.
"""),
    cfg.BoolOpt('cold_migration_retry', default=True, help="""
Whether nova-compute repeats the calls of a cold migration or resize while a service does not
answer. The calls are repeated for up to three minutes, and for up to 30 minutes once the guest is
powered off. If a service still does not answer and the guest has not been powered off, nova-compute
ends the migration, and the instance keeps its state.

By default, it is on. If disabled, Nova makes each call only once. If a service does not answer,
Nova puts the instance into ERROR although its guest is unharmed.

Related options: ``confirmation_retry``, for the confirmation of a cold migration or resize.
"""),
    cfg.BoolOpt('confirmation_retry', default=True, help="""
Whether nova-compute repeats the steps that confirm a cold migration or resize while a service does
not answer. The steps are repeated for up to three minutes. Kronos also repeats a request to confirm
a cold migration of a drain, if the request was lost.

By default, it is on. If disabled, Nova puts an instance into ERROR if a service does not answer
during the confirmation, although its guest is unharmed. A lost request leaves the instance in
VERIFY_RESIZE for ever.
"""),
    cfg.BoolOpt('fork_safety', default=True, help="""
Whether each worker process of nova-conductor has a placement client of its own.

By default, it is on. If disabled, all workers share the connections to placement that their parent
process opened before it forked. A worker may then read the answer to a request of another worker.
"""),
    cfg.BoolOpt('image_credentials', default=True, help="""
Whether nova-compute can fetch images from Glance for moves that are requested without a token.
nova-compute then uses the credentials of ``[service_user]``. The moves of a plan are requested
without a token.

By default, it is on. If disabled, a move of a plan to a host with local disks fails if the host has
to fetch an image.
"""),
    cfg.BoolOpt('cold_migration_rollback', default=True, help="""
Whether nova-conductor restores allocations by a single request to placement if a cold migration or
a resize could not begin. If the instance was deleted in the meantime, it gets no allocations. The
fix has no effect where ``[kronos] atomic_moves`` is ``off``.

By default, it is on. If disabled, Nova restores allocations by several requests, even if the
instance was deleted (bug 1848343).

Related options: ``[kronos] atomic_moves``.
"""),
    cfg.BoolOpt('request_clock', default=True, help="""
Whether Nova's services measure the time between requests to other services by a monotonic clock,
which does not change when the system clock is corrected. The fix is for nova-compute,
nova-conductor and nova-scheduler.

By default, it is on. If disabled, a service whose system clock is set back by an hour sends no
request to placement, neutron, glance or cinder for an hour. A nova-compute then stops answering for
an hour.
"""),
    cfg.BoolOpt('log_filters', default=True, help="""
Whether nova-conductor and commands drop the deprecation warning of neutronclient that Nova causes
in every step of every migration.

By default, it is on. If disabled, the warning is logged each time.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
