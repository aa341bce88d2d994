"""Names of what plans compare between a server and a host before Nova is asked."""

TRAITS = 'traits'
AGGREGATES = 'aggregates'
IMAGE = 'image'
HYPERVISOR = 'hypervisor'
CPU = 'cpu'
NUMA = 'numa'
ALL_CHECKS = (TRAITS, AGGREGATES, IMAGE, HYPERVISOR, CPU, NUMA)
MOVING_CHECKS = frozenset((HYPERVISOR, CPU))
"""Checks that are about a running guest: Nova restarts and boots servers without them."""
