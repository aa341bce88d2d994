"""What runs inside Nova's own processes; the only package that imports nova."""
