"""When and where cycles run: :class:`kronos_nova.cycle.evaluation.Cycle` is one."""
