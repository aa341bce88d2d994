"""Room in a cloud: how many more servers fit, which hosts may fail, and how room is made.

Everything here is by what is allocated, not by load.
"""
