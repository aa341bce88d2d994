"""Performance figures of Kronos, measured the same way every time: ``python -m bench``.

Every module of this package that has a ``register(subparsers)`` is one subcommand; see
:mod:`bench.report` for what it gives back.
"""
