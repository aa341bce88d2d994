"""Constraints: reasons for which an instance may not go to a host. Each constraint is an entry
point of the group ``kronos_nova.constraints``, and is compiled into rules of the model."""
