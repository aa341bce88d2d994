"""What live migrations take, and when each of a plan is to begin."""
