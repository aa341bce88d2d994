"""Planners, the components that choose moves. Each planner is installed as an entry point of the
group ``kronos_nova.planners``."""
