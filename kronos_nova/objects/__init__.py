"""The immutable value objects that the packages of Kronos exchange.

The objects need only the standard library. Each module has one subject. :mod:`snapshot
<kronos_nova.objects.snapshot>` describes the cloud at one moment, and :mod:`metrics
<kronos_nova.objects.metrics>` its load. :mod:`plan <kronos_nova.objects.plan>` describes the chosen
moves with their reasons, and :mod:`move <kronos_nova.objects.move>` the progress of one move.
"""
