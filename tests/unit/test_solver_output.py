"""Standard output has only what a command prints, and nothing of the solver."""

import contextlib
import ctypes
import os
import tempfile
import threading
from unittest import mock

import testtools
from scipy import optimize

from kronos_nova import solver_output
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.planners.base import Limits
from kronos_nova.room import defragmenting
from kronos_nova.room import shapes
from tests.unit.room import clouds

NOISE = b'HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();\n'


@contextlib.contextmanager
def standard_files():
    """Files in the place of standard output and standard error."""
    saved = [os.dup(number) for number in (1, 2)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            yield out, err
        finally:
            for number, each in enumerate(saved, 1):
                os.dup2(each, number)
                os.close(each)


def read(file):
    file.seek(0)
    return file.read()


class SolverOutputTest(testtools.TestCase):
    def test_what_the_solver_prints_is_not_on_standard_output(self):
        solve = optimize.milp

        def noisy(*args, **kwargs):
            os.write(1, NOISE)
            return solve(*args, **kwargs)

        cloud = clouds.cloud([clouds.host('a'), clouds.host('b')],
                             [clouds.server('s', 'a', 2), clouds.server('t', 'b', 2)])
        with standard_files() as (out, err), mock.patch.object(optimize, 'milp', noisy):
            found = defragmenting.plan(cloud, ConstraintRules(), shapes.parse('8:4096'),
                                       Limits(budget=9))
            self.assertEqual((b'', NOISE), (read(out), read(err)))
        self.assertEqual(1, len(found.moves))

    def test_what_the_library_of_c_keeps_in_its_buffer_is_redirected(self):
        library = ctypes.CDLL(None)
        with standard_files() as (out, err):
            with solver_output.redirected():
                library.printf(b'noise ')
            library.printf(b'answer')
            library.fflush(None)
            self.assertEqual((b'answer', b'noise '), (read(out), read(err)))

    def test_an_error_ends_the_redirection(self):
        def fail():
            with solver_output.redirected():
                raise ValueError

        with standard_files() as (out, err):
            self.assertRaises(ValueError, fail)
            os.write(1, b'answer')
            self.assertEqual((b'answer', b''), (read(out), read(err)))

    def test_the_last_of_several_threads_restores(self):
        first, second = threading.Event(), threading.Event()

        def longer():
            with solver_output.redirected():
                first.set()
                second.wait(60)
                os.write(1, b'noise')

        with standard_files() as (out, err):
            thread = threading.Thread(target=longer)
            with solver_output.redirected():
                thread.start()
                first.wait(60)
            second.set()
            thread.join()
            os.write(1, b'answer')
            self.assertEqual((b'answer', b'noise'), (read(out), read(err)))

    def test_a_process_without_standard_output_solves_as_well(self):
        for number in (1, 2):
            with standard_files() as (out, _err):
                os.close(number)
                with solver_output.redirected():
                    pass
                self.assertRaises(OSError, os.fstat, number)
                self.assertEqual(b'', read(out))
