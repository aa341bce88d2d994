"""Random interleavings of moves, conflicts, crashes and deletions over a real placement."""
