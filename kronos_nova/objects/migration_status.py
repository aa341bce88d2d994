"""Statuses of Nova's migration records, of all kinds of migrations.

Nova keeps them as free text, and has no list of them; see ``nova.compute.manager`` and
``nova.virt.libvirt.migration`` for where they are written.
"""

LIVE = 'live-migration'
COLD = 'migration'
"""Types of migrations; a resize is another."""

ACCEPTED = 'accepted'
"""The first of all: only the API or a conductor has it in hand."""
NOT_COPIED = ('queued', 'preparing')
COPIED = ('running', 'running (post-copy)')
"""Statuses of a live migration that a nova-compute runs: before the guest is copied, and while."""

COMPLETED, ERROR, CANCELLED = 'completed', 'error', 'cancelled'
SUCCEEDED = (COMPLETED, 'done')
FAILED = (ERROR, 'failed', CANCELLED)
FINISHED = 'finished'
"""Status of a cold migration that waits to be confirmed or reverted."""
CONFIRMED = 'confirmed'
SETTLED = (CONFIRMED, 'reverted')
ENDED = frozenset((*SUCCEEDED, *FAILED, *SETTLED))

LEAVING = (ACCEPTED, *NOT_COPIED, *COPIED, 'post-migrating', 'pre-migrating', 'migrating')
"""The instance is still counted where it was."""

ARRIVED = (FINISHED, 'confirming', 'reverting')
"""Resized or migrated cold: the instance is at the destination, the source keeps room for it."""

NOT_LET_GO_OF = ('post-migrating', *ARRIVED)
"""The instance may be at the destination, and the source is needed still."""

UNDER_WAY = (*LEAVING, *ARRIVED)
