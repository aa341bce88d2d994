"""Count the last run of stestr here: ``N passed, N failed, N skipped``.

Exit status 1 when there is no run, or it ran nothing.
"""

import collections
import sys

import subunit
import testtools
from stestr.repository import file as stestr_file

FAILED = ('fail', 'uxsuccess', 'inprogress')


def main():
    statuses = collections.Counter()
    result = testtools.StreamToDict(lambda test: statuses.update([test['status']]))
    stream = stestr_file.RepositoryFactory().open('.').get_latest_run().get_subunit_stream()
    result.startTestRun()
    subunit.ByteStreamToStreamResult(stream).run(result)
    result.stopTestRun()
    print(f'{statuses["success"] + statuses["xfail"]} passed, '
          f'{sum(statuses[status] for status in FAILED)} failed, {statuses["skip"]} skipped')
    return 0 if statuses else 1


if __name__ == '__main__':
    sys.exit(main())
