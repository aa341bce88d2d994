"""Factors between units of time and of memory."""

HOUR = 3600
"""Seconds in an hour. Fixed by the definition of the units."""

DAY = 86_400
"""Seconds in a day. Fixed by the definition of the units."""

MIB = 1 << 20
"""Bytes in a MiB. Fixed by the definition of the units."""

GIB = 1 << 30
"""Bytes in a GiB. Fixed by the definition of the units."""

KIB_PER_MIB = 1024
"""Number of KiB in a MiB. Fixed by the definition of the units."""

MIB_PER_GIB = 1024
"""Number of MiB in a GiB. Fixed by the definition of the units."""
