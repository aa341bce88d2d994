"""Microversions of Nova's and placement's APIs that Kronos uses."""

COMPUTE_INVENTORY = '2.73'
"""Microversion of Nova's API for reading the cloud. It is at least 2.69, because Nova then lists
the servers of an unreachable cell as well. It is below 2.88, because from 2.88 on Nova asks every
host for its uptime when it lists hypervisors."""

COMPUTE_IMAGES = '2.98'
"""Lowest microversion of Nova in which lists of servers have image properties. With a lower
microversion, rules that select servers by image properties select no server."""

COMPUTE_EXECUTION = '2.84'
"""Microversion of Nova's API for moves. Migrations have a uuid from 2.59 on, queued migrations can
be aborted from 2.65 on, and failed events have their reason from 2.84 on."""

COMPUTE_MIGRATIONS = '2.59'
"""Lowest microversion of Nova in which migrations have a uuid and a type."""

PLACEMENT_ALLOCATIONS = (1, 38)
"""Highest microversion of placement's API that Kronos uses (no unit). From this microversion on,
the consumers of allocations have types. Moves need microversion 1.36 at least. Fixed by
placement."""

PLACEMENT_NEEDED = {
    (1, 13): 'POST /allocations', (1, 28): 'consumer generations',
    (1, 36): 'same_subtree in allocation candidates'}
"""Features of placement that moves need, by the microversion that introduced them."""
