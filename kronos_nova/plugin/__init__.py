"""The code that runs inside Nova's own processes. No other package of Kronos imports nova."""
