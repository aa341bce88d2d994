"""Two workers, aggregates that share hosts, and real locks: nothing is planned twice."""

import subprocess
import sys

import testtools


class SharedHostsTest(testtools.TestCase):
    """A short run of what ``python -m tests.functional.engine.shared_rounds`` does for long, in a
    process of its own: placement's database is one of the whole process."""

    def test_no_instance_is_planned_twice_and_no_move_is_refused_by_placement(self):
        ran = subprocess.run([sys.executable, '-m', 'tests.functional.engine.shared_rounds',
                              '--rounds', '4'], capture_output=True, text=True, check=False)
        self.assertEqual(0, ran.returncode, ran.stdout + ran.stderr)
