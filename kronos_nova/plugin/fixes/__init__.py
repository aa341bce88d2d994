"""Repairs of faults in Nova and in its libraries, one module for each fix.

Each fix has an option of the same name in ``[kronos_fixes]`` and a row in doc/source/fixes.rst.
"""
