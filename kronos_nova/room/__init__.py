"""Room in a cloud: the number of further servers that fit, the hosts whose loss is covered, and
moves that make room.

All results are computed from allocations. Load is not used.
"""
