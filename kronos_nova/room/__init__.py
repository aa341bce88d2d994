"""Room in a cloud: the number of further servers that fit, the hosts whose servers could all
restart elsewhere, and moves that make room.

All results are computed from allocations. Load is not used.
"""
