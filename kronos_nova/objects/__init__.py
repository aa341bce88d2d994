"""The value objects that the parts of Kronos pass to each other. They are immutable and need only
the standard library.

Each module has one subject. Examples: :mod:`snapshot <kronos_nova.objects.snapshot>` is the cloud
at one moment, :mod:`metrics <kronos_nova.objects.metrics>` its load, :mod:`plan
<kronos_nova.objects.plan>` decisions with their reasons, :mod:`move <kronos_nova.objects.move>` the
progress of a move.
"""
