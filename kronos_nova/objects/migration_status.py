"""Statuses of Nova's migration records, for all types of migrations.

Nova stores a status as free text and has no list of statuses. Statuses are written by
``nova.compute.manager`` and ``nova.virt.libvirt.migration``.
"""

LIVE = 'live-migration'
COLD = 'migration'
"""Names of the types of live migrations (``LIVE``) and cold migrations (``COLD``). A resize has a
third type."""

ACCEPTED = 'accepted'
"""Status of a new migration that only the API or a conductor has handled so far."""
PREPARING = 'preparing'
NOT_COPIED = ('queued', PREPARING)
COPIED = ('running', 'running (post-copy)')
"""Statuses of a live migration during the copy of the guest's memory. :data:`NOT_COPIED` has the
statuses in nova-compute before the copy."""

COMPLETED, ERROR, CANCELLED = 'completed', 'error', 'cancelled'
SUCCEEDED = (COMPLETED, 'done')
FAILED = (ERROR, 'failed', CANCELLED)
FINISHED = 'finished'
"""Status of a cold migration that waits for its confirmation or revert."""
CONFIRMING = 'confirming'
"""Status of a cold migration that nova-compute was asked to confirm, until it is confirmed."""
CONFIRMED, REVERTED = 'confirmed', 'reverted'
SETTLED = (CONFIRMED, REVERTED)
ENDED = frozenset((*SUCCEEDED, *FAILED, *SETTLED))

LEAVING = (ACCEPTED, *NOT_COPIED, *COPIED, 'post-migrating', 'pre-migrating', 'migrating')
"""Statuses in which Nova's record of the instance still has the source as its host."""

ARRIVED = (FINISHED, CONFIRMING, 'reverting')
"""Statuses of a resize or cold migration whose instance is on the destination. The source still
keeps room for the instance."""

NOT_LET_GO_OF = ('post-migrating', *ARRIVED)
"""Statuses in which the instance may be on the destination while the source still has to keep room
for it."""

UNDER_WAY = (*LEAVING, *ARRIVED)
