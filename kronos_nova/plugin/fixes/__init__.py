"""Repairs of faults in Nova and in its libraries, one module a fix.

Each fix has an option of its own name in ``[kronos_fixes]`` and a row in doc/source/fixes.rst.
"""
