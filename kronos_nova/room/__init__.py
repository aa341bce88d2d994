"""Room in a cloud: the number of further servers that fit, the hosts whose loss is covered, and
moves that make room.

All of it is computed from allocations, and nothing from load.
"""
