"""Scheduling of evaluation cycles (:class:`kronos_nova.cycle.evaluation.Cycle`) and their
processes."""
