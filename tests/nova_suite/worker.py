"""A process that runs tests of Nova's that it is given, and reports each as soon as it ended.

It reads lines of JSON, ``{"module": dotted name, "only": regular expression or null, "without":
[test ids]}``, and answers to each with lines ``{"started": id}`` and
``{"id", "outcome", "seconds", "cpu", "counts", "details"}``, at last ``{"module": name}``.
"""

import argparse
import json
import os
import re
import sys
import time
import types
import unittest

# Before anything else of Nova: it decides its concurrency mode.
import nova.tests.functional  # noqa: F401 isort: skip
import testtools
from nova.tests.functional import integrated_helpers

from tests.nova_suite import counts

PASSED, FAILED, SKIPPED = 'passed', 'failed', 'skipped'


class Telling(testtools.TestResult):
    """Reports a test when it starts and when it ended."""

    def __init__(self, tell, wanted):
        super().__init__()
        self._tell = tell
        self._wanted = wanted

    def startTest(self, test):  # noqa: N802 - unittest's way
        super().startTest(test)
        self._tell({'started': test.id()})
        self._outcome, self._details = PASSED, ''
        counts.counted.clear()
        self._began = time.monotonic(), time.process_time()

    def stopTest(self, test):  # noqa: N802
        super().stopTest(test)
        self._tell({'id': test.id(), 'outcome': self._outcome, 'details': self._details,
                    'seconds': round(time.monotonic() - self._began[0], 2),
                    'cpu': round(time.process_time() - self._began[1], 2),
                    'counts': {name: counts.counted[name]
                               for name in (counts.LIVE, counts.ATOMIC, counts.WRITES)}})

    def addError(self, test, err=None, details=None):  # noqa: N802
        self._fail(test, err, details)

    addFailure = addError

    def addUnexpectedSuccess(self, test, details=None):  # noqa: N802
        self._fail(test, None, details or {})

    def addSkip(self, test, reason=None, details=None):  # noqa: N802
        self._outcome = SKIPPED

    def addExpectedFailure(self, test, err=None, details=None):  # noqa: N802
        """As good as passed."""

    def addSuccess(self, test, details=None):  # noqa: N802
        """It is what is assumed."""

    def _fail(self, test, err, details):
        self._outcome = FAILED
        if err is not None:
            self._details += self._exc_info_to_string(err, test) if not isinstance(
                err, str) else err
        for name, content in (details or {}).items():
            self._details += f'{name}:\n{content.as_text()}\n'


def run(order, tell):
    suite = unittest.defaultTestLoader.loadTestsFromName(order['module'])
    pattern, without = re.compile(order['only'] or ''), set(order['without'])
    result = Telling(tell, None)
    for test in testtools.iterate_tests(suite):
        if pattern.search(test.id()) and test.id() not in without:
            test.run(result)
    tell({'module': order['module']})


def be_patient(factor):
    """Let the helpers of Nova's tests wait so many times as long for a state before they give up:
    they look a fixed number of times."""
    integrated_helpers.time = types.SimpleNamespace(
        sleep=lambda seconds: time.sleep(seconds * factor))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--stock', action='store_true')
    parser.add_argument('--patience', type=float, default=1)
    options = parser.parse_args()
    be_patient(options.patience)
    if not options.stock:
        from tests.nova_suite import loaded

        loaded.load()
        counts.start_atomic()
    counts.start()
    # What tests and libraries print must not come between.
    out = os.fdopen(os.dup(1), 'w', buffering=1)
    os.dup2(2, 1)

    def tell(message):
        out.write(json.dumps(message) + '\n')

    for line in sys.stdin:
        run(json.loads(line), tell)
    # Threads of tests that failed may still be there.
    os._exit(0)


if __name__ == '__main__':
    main()
