"""Allocations after every kind of move are what stock Nova leaves, whichever services have Kronos.

Stock Nova is one of the clouds here: what is expected of the others is expected of it.
"""

import itertools

from tests.functional.mixed import base
from tests.functional.mixed import kinds

CLOUDS = [frozenset(chosen) for number in range(len(base.SERVICES) + 1)
          for chosen in itertools.combinations(base.SERVICES, number)]


def _matrix():
    """A class for each cloud and kind of thing to hold."""
    for kronos, (kind_name, kind) in itertools.product(CLOUDS, kinds.KINDS.items()):
        where = '_'.join(sorted(kronos)) or 'stock'
        name = f'Matrix_{where}_{kind_name.replace(" ", "_")}_Test'
        yield name, type(name, (base.MixedCloud,), {
            'kind': kind(), 'kronos': kronos, '__module__': __name__, **_tests(kind)})


def _tests(kind):
    operations = (base.NAMED,) * kind.may_name_host + base.OPERATIONS
    if kind.may_be_used_again:
        return {'test_every_move': lambda self: self.go_through(operations)}
    return {f'test_{operation}': lambda self, operation=operation: self.go_through([operation])
            for operation in operations}


class EverythingTest(base.MixedCloud):
    """A server that holds all of it at once, with Kronos in all services."""

    kind = kinds.Everything()

    def test_every_move(self):
        self.go_through(base.OPERATIONS)


globals().update(_matrix())
