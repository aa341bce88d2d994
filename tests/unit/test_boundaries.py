"""The places where long tests break a live migration are in the code."""

import ddt
import testtools
from oslo_utils import importutils

from tests import boundaries

PATHS = (*boundaries.CONDUCTOR, *boundaries.ARRIVAL, *boundaries.RETURN, *boundaries.EXECUTOR)


@ddt.ddt
class BoundariesTest(testtools.TestCase):
    @ddt.data(*PATHS)
    def test_each_is_a_method(self, path):
        owner, _, name = path.rpartition('.')
        self.assertTrue(callable(getattr(importutils.import_class(owner), name, None)), path)
