"""Predicted durations of live migrations, and the times at which the moves of a plan begin."""
