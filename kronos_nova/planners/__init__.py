"""Planners, which choose moves. Each is an entry point of ``kronos_nova.planners``."""
