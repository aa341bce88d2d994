"""The values that the parts of Kronos hand to each other: frozen, standard library only.

One module a noun: :mod:`snapshot <kronos_nova.objects.snapshot>` is what was read of the cloud,
:mod:`metrics <kronos_nova.objects.metrics>` what was read of its load, :mod:`plan
<kronos_nova.objects.plan>` what was decided and why, :mod:`move <kronos_nova.objects.move>` how a
decision fares.
"""
