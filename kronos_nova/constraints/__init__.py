"""Where an instance may not go: each reason its own module and an entry point of
``kronos_nova.constraints``."""
