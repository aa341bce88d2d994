"""All operations."""

from kronos_nova.contract import quarantine

OPERATIONS = (*quarantine.OPERATIONS,)
