"""Microversions of Nova and placement that Kronos needs."""

COMPUTE_INVENTORY = '2.73'
"""Microversion of Nova for reading the cloud. From 2.69 on Nova names the servers that it cannot
read because a cell is down, instead of leaving them out. From 2.88 on it asks every host for its
uptime when hypervisors are listed, so this is lower."""

COMPUTE_IMAGES = '2.98'
"""Microversion of Nova from which lists of servers show properties of their images. With a lower
one, rules by image properties select nothing."""

COMPUTE_EXECUTION = '2.84'
"""Microversion of Nova for moves. From 2.59 on migrations have a uuid, from 2.65 on queued ones can
be aborted, from 2.84 on failed events have their reason."""

COMPUTE_MIGRATIONS = '2.59'
"""Microversion of Nova from which migrations have a uuid and a type."""

PLACEMENT_ALLOCATIONS = (1, 38)
"""Microversion of placement (no unit) in which consumers have types. Fixed by placement; moves work
without it."""

PLACEMENT_NEEDED = {
    (1, 13): 'POST /allocations', (1, 28): 'consumer generations',
    (1, 36): 'same_subtree in allocation candidates'}
"""Features of placement that moves need, by the microversion that brought them."""
