"""The start of evaluation cycles (:class:`kronos_nova.cycle.evaluation.Cycle`), and of the
processes in which cycles run."""
