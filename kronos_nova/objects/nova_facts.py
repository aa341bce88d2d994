"""Microversions of Nova and placement that Kronos needs."""

COMPUTE_INVENTORY = '2.73'
"""Microversion of Nova's API for reading the cloud. It is at least 2.69, because Nova then also
lists the servers of a cell that is down. It is below 2.88, because Nova then asks every host for
its uptime when hypervisors are listed."""

COMPUTE_IMAGES = '2.98'
"""Microversion of Nova from which lists of servers show properties of their images. With a lower
one, rules by image properties select nothing."""

COMPUTE_EXECUTION = '2.84'
"""Microversion of Nova for moves. From 2.59 on migrations have a uuid, from 2.65 on queued ones can
be aborted, from 2.84 on failed events have their reason."""

COMPUTE_MIGRATIONS = '2.59'
"""Microversion of Nova from which migrations have a uuid and a type."""

PLACEMENT_ALLOCATIONS = (1, 38)
"""Highest microversion of placement (no unit) that Kronos uses, the first in which consumers have
types. Fixed by placement; with an older one, moves work too."""

PLACEMENT_NEEDED = {
    (1, 13): 'POST /allocations', (1, 28): 'consumer generations',
    (1, 36): 'same_subtree in allocation candidates'}
"""Features of placement that moves need, by the microversion that brought them."""
