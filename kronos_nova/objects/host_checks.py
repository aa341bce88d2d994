"""Names of the checks of a server against a host. Kronos makes these checks while planning, without
requests to Nova."""

TRAITS = 'traits'
AGGREGATES = 'aggregates'
IMAGE = 'image'
HYPERVISOR = 'hypervisor'
CPU = 'cpu'
NUMA = 'numa'
ALL_CHECKS = (TRAITS, AGGREGATES, IMAGE, HYPERVISOR, CPU, NUMA)
MOVING_CHECKS = frozenset((HYPERVISOR, CPU))
"""Checks that apply only to the live migration of a running guest. Nova does not make these checks
when it boots or restarts a server."""
