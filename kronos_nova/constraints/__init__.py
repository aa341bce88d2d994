"""Constraints: reasons for which an instance may not go to a host. Each constraint is installed as
an entry point of the group ``kronos_nova.constraints``. Constraints are compiled into rules of the
model."""
