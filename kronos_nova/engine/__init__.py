"""One cycle of the engine: :func:`kronos_nova.engine.planner.plan_cycle`."""
