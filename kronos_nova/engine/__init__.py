"""One cycle of the engine: :func:`kronos_nova.engine.pipeline.plan_cycle`."""
