"""Constraints: reasons for which an instance may not go to a host. Each is a module and an entry
point of ``kronos_nova.constraints``, and compiles into rules of the model."""
