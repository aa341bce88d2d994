"""Planners, the components that choose moves. Each planner is an entry point of the group
``kronos_nova.planners``."""
