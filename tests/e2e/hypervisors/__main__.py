"""Run tests of real hypervisors several times in a row, each class on one cloud.

    python -m tests.e2e.hypervisors [--times 3] [CLASS | CLASS.test | ...]

The exit status is 0 if all passed each time, else 1.
"""

import argparse
import sys
import time
import unittest

MODULES = ('test_faults', 'test_killed_computes', 'test_processors', 'test_shared', 'test_tenants')


class Times(unittest.TextTestResult):
    """``seconds`` is {test: of each run its seconds, or None where it did not pass}."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seconds = {}

    def startTest(self, test):
        super().startTest(test)
        self._begun = time.monotonic()

    def addSuccess(self, test, *args, **kwargs):
        super().addSuccess(test, *args, **kwargs)
        self._note(test, time.monotonic() - self._begun)

    def addFailure(self, test, *args, **kwargs):
        super().addFailure(test, *args, **kwargs)
        self._note(test, None)

    def addError(self, test, *args, **kwargs):
        super().addError(test, *args, **kwargs)
        self._note(test, None)

    def _note(self, test, seconds):
        self.seconds.setdefault('.'.join(test.id().split('.')[-2:]), []).append(seconds)
        self.stream.writeln(f'    after {time.monotonic() - self._begun:.0f} s')


def suite(chosen, times):
    """The tests whose name begins with one of those chosen; all of a class, then all again."""
    whole = unittest.TestSuite()
    for module in MODULES:
        for cases in unittest.defaultTestLoader.loadTestsFromName(
                f'tests.e2e.hypervisors.{module}'):
            names = [(type(case), case._testMethodName) for case in cases
                     if is_chosen(case.id(), chosen)]
            whole.addTests(kind(name) for _time in range(times) for kind, name in names)
    return whole


def is_chosen(name, chosen):
    short = name.partition('hypervisors.')[2].partition('.')[2]
    return not chosen or any(short == each or short.startswith(f'{each}.') for each in chosen)


def main():
    parser = argparse.ArgumentParser(prog='python -m tests.e2e.hypervisors',
                                     description=__doc__.splitlines()[0])
    parser.add_argument('--times', type=int, default=3, help='how often each test is run (3)')
    parser.add_argument('chosen', nargs='*', metavar='CLASS[.test]', help='all without any')
    arguments = parser.parse_args()
    result = unittest.TextTestRunner(verbosity=2, resultclass=Times).run(
        suite(arguments.chosen, arguments.times))
    for name, seconds in result.seconds.items():
        reported = ' '.join('FAILED' if each is None else f'{each:.0f} s' for each in seconds)
        print(f'{name}: {reported}')
    return 0 if result.wasSuccessful() and result.seconds else 1


if __name__ == '__main__':
    sys.exit(main())
