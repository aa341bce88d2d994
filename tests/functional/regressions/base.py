"""What the regression tests start from."""

import functools
import unittest

from tests.functional.mixed import base


class RegressionTestCase(base.MixedCloud):
    """Two hosts with Kronos everywhere."""


def on_stock_nova(story):
    """The same tests on stock Nova, where each has to fail: one that passes says that the bug is
    gone there."""
    tests = {name: _failing(getattr(story, name))
             for name in dir(story) if name.startswith('test_')}
    return type(f'Stock{story.__name__}', (story,), {
        **tests, 'kronos': base.STOCK, '__module__': story.__module__})


def _failing(test):
    @unittest.expectedFailure
    @functools.wraps(test)
    def fails(self):
        test(self)

    return fails
