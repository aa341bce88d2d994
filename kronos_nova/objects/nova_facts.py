"""Facts about Nova and placement that Kronos relies on."""

COMPUTE_INVENTORY = '2.73'
"""From 2.69 on Nova names what it cannot read because a cell is down, where before it left it out
in silence; 2.88 and later ask every host for its uptime when hypervisors are listed."""

COMPUTE_IMAGES = '2.98'
"""Version from which lists of servers show the properties of their images that Nova knows. Lower,
rules by an image's properties select nothing."""

COMPUTE_EXECUTION = '2.84'
"""2.59 gives migrations their uuid, 2.65 aborts queued ones, 2.84 tells why an event failed."""

COMPUTE_MIGRATIONS = '2.59'
"""Migrations by uuid, and the type of each, since then."""

PLACEMENT_ALLOCATIONS = (1, 38)
"""Microversion of placement (no unit) in which consumers have types. Fixed by placement; moves work
without it."""

PLACEMENT_NEEDED = {
    (1, 13): 'POST /allocations', (1, 28): 'consumer generations',
    (1, 36): 'same_subtree in allocation candidates'}
"""Features of placement that moves need, by the microversion that brought them."""
