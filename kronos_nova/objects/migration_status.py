"""Statuses of Nova's migration records, of all kinds of migrations.

Nova keeps them as free text, and has no list of them; see ``nova.compute.manager`` and
``nova.virt.libvirt.migration`` for where they are written.
"""

LIVE = 'live-migration'
COLD = 'migration'
"""Types of migrations; a resize is another."""

ACCEPTED = 'accepted'
"""The first status, while only the API or a conductor handles the migration."""
NOT_COPIED = ('queued', 'preparing')
COPIED = ('running', 'running (post-copy)')
"""Statuses of a live migration in nova-compute: before the guest is copied (:data:`NOT_COPIED`),
and during the copy."""

COMPLETED, ERROR, CANCELLED = 'completed', 'error', 'cancelled'
SUCCEEDED = (COMPLETED, 'done')
FAILED = (ERROR, 'failed', CANCELLED)
FINISHED = 'finished'
"""Status of a cold migration that waits to be confirmed or reverted."""
CONFIRMED = 'confirmed'
SETTLED = (CONFIRMED, 'reverted')
ENDED = frozenset((*SUCCEEDED, *FAILED, *SETTLED))

LEAVING = (ACCEPTED, *NOT_COPIED, *COPIED, 'post-migrating', 'pre-migrating', 'migrating')
"""Statuses in which the instance still counts on its source."""

ARRIVED = (FINISHED, 'confirming', 'reverting')
"""Statuses of a resize or cold migration whose instance is on the destination while the source
keeps its room."""

NOT_LET_GO_OF = ('post-migrating', *ARRIVED)
"""Statuses in which the instance may be on the destination, and the source is still needed."""

UNDER_WAY = (*LEAVING, *ARRIVED)
