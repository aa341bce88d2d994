"""Start of evaluation cycles (:class:`kronos_nova.cycle.evaluation.Cycle`) and of the processes
that run cycles."""
