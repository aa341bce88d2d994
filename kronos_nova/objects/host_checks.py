"""Names of the checks of a server against a host that plans make without a request to Nova."""

TRAITS = 'traits'
AGGREGATES = 'aggregates'
IMAGE = 'image'
HYPERVISOR = 'hypervisor'
CPU = 'cpu'
NUMA = 'numa'
ALL_CHECKS = (TRAITS, AGGREGATES, IMAGE, HYPERVISOR, CPU, NUMA)
MOVING_CHECKS = frozenset((HYPERVISOR, CPU))
"""Checks that only apply to a running guest. Nova does not make them when it restarts or boots a
server."""
