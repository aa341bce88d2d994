"""Durations of live migrations, and the time at which each move of a plan begins."""
