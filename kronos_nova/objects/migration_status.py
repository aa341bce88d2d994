"""Statuses of Nova's migration records, of all kinds of migrations.

Nova keeps them as free text, and has no list of them; see ``nova.compute.manager`` and
``nova.virt.libvirt.migration`` for where they are written.
"""

LIVE = 'live-migration'
COLD = 'migration'
"""Types of migrations; a resize is another."""

SUCCEEDED = ('completed', 'done')
FAILED = ('error', 'failed', 'cancelled')
FINISHED = 'finished'
"""Of a cold one: it waits to be confirmed or reverted."""
CONFIRMED = 'confirmed'
SETTLED = (CONFIRMED, 'reverted')
ENDED = frozenset((*SUCCEEDED, *FAILED, *SETTLED))

LEAVING = ('accepted', 'queued', 'preparing', 'running', 'running (post-copy)', 'post-migrating',
           'pre-migrating', 'migrating')
"""The instance is still counted where it was."""

ARRIVED = (FINISHED, 'confirming', 'reverting')
"""Resized or migrated cold: the instance is at the destination, the source keeps room for it."""

NOT_LET_GO_OF = ('post-migrating', *ARRIVED)
"""The instance may be at the destination, and the source is needed still."""

UNDER_WAY = (*LEAVING, *ARRIVED)
