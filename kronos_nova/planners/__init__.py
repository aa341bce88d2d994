"""Choose moves: each planner an entry point of ``kronos_nova.planners``."""
