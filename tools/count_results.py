"""Count the last run of stestr here: ``N passed, N failed, N skipped``.

The names of the tests that failed are appended to the file that is given.
Exit status 1 when there is no run, or it ran nothing.

Usage: count_results.py FILE
"""

import collections
import sys
from typing import Any

import subunit
import testtools
from stestr.repository import file as stestr_file

FAILED = ('fail', 'uxsuccess', 'inprogress')


def main(path: str) -> int:
    tests: list[Any] = []
    result = testtools.StreamToDict(tests.append)
    stream = stestr_file.RepositoryFactory().open('.').get_latest_run().get_subunit_stream()
    result.startTestRun()
    subunit.ByteStreamToStreamResult(stream).run(result)
    result.stopTestRun()
    statuses = collections.Counter(test['status'] for test in tests)
    with open(path, 'a', encoding='utf-8') as failed:
        failed.writelines(f'{test["id"]}\n' for test in tests if test['status'] in FAILED)
    print(f'{statuses["success"] + statuses["xfail"]} passed, '
          f'{sum(statuses[status] for status in FAILED)} failed, {statuses["skip"]} skipped')
    return 0 if statuses else 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
