"""Statuses of Nova's migration records, for all types of migrations.

Nova stores a status as free text and has no list of statuses. Statuses are written by
``nova.compute.manager`` and ``nova.virt.libvirt.migration``.
"""

LIVE = 'live-migration'
COLD = 'migration'
RESIZE = 'resize'
"""Names of the types of live migrations (``LIVE``), cold migrations (``COLD``) and resizes
(``RESIZE``)."""

MARKS = {LIVE: 'migrating', COLD: 'resize_prep', RESIZE: 'resize_prep'}
MARKED = tuple(dict.fromkeys(MARKS.values()))
"""``MARKS`` is {type of a migration: task_state with which Nova's API marks the instance when it
requests the migration}. ``MARKED`` has these task_states. Fixed by Nova."""

ACCEPTED = 'accepted'
"""Status of a new migration that only the API or a conductor has handled so far."""
PRE_MIGRATING = 'pre-migrating'
"""Status of a new cold migration or resize, until the source has begun. The migration has no
destination until nova-compute on the destination has received the request."""
MIGRATING = 'migrating'
"""Status of a cold migration or resize while the source powers off and moves the guest."""
POST_MIGRATING = 'post-migrating'
"""Status of a migration that the source has carried out, until the destination has started the
guest of a cold migration or resize, or Nova has recorded the new host of a live migration."""
PREPARING = 'preparing'
NOT_COPIED = ('queued', PREPARING)
COPIED = ('running', 'running (post-copy)')
"""Statuses of a live migration during the copy of the guest's memory. :data:`NOT_COPIED` has the
statuses in nova-compute before the copy."""

COMPLETED, ERROR, CANCELLED = 'completed', 'error', 'cancelled'
EVACUATED = 'done'
"""Status of an evacuation that has ended. Nova also writes this status into the record of a live
migration, if the instance is evacuated while nova-conductor prepares the live migration."""
FAILED = (ERROR, 'failed', CANCELLED)
FINISHED = 'finished'
"""Status of a cold migration that waits for its confirmation or revert."""
CONFIRMING = 'confirming'
"""Status of a cold migration that nova-compute was asked to confirm, until it is confirmed."""
CONFIRMED, REVERTED = 'confirmed', 'reverted'
SETTLED = (CONFIRMED, REVERTED)
ENDED = frozenset((COMPLETED, EVACUATED, *FAILED, *SETTLED))

LEAVING = (ACCEPTED, *NOT_COPIED, *COPIED, POST_MIGRATING, PRE_MIGRATING, MIGRATING)
"""Statuses in which Nova's record of the instance still has the source as its host."""

ARRIVED = (FINISHED, CONFIRMING, 'reverting')
"""Statuses of a resize or cold migration whose instance is on the destination. The source still
keeps room for the instance."""

NOT_LET_GO_OF = ('post-migrating', *ARRIVED)
"""Statuses in which the instance may be on the destination, and the source still has to keep room
for the instance."""

UNDER_WAY = (*LEAVING, *ARRIVED)
