"""The parts that run inside Nova's own processes; the only package that imports nova."""
