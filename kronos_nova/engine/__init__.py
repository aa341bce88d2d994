"""The scheduling of cycles and their processes; :class:`kronos_nova.cycle.evaluation.Cycle` is
one."""
