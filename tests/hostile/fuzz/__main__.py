"""``python -m tests.hostile.fuzz --seed N --minutes M``

Each case mutates one kind of input and gives it to the code that reads it. What may come of it: an
error of Kronos' own tree, or a sound result. A finding is everything else: another exception, more
time or memory than a case may take, a plan that breaks a rule, a healthy aggregate that is planned
otherwise, a control character in what people are shown. Exit status: 0 no finding, 1 some.
"""

import argparse
import collections
import json
import logging
import random
import resource
import signal
import sys
import time
import traceback

from tests.hostile.fuzz import targets

CPU_SECONDS = 10
"""CPU seconds of a case. Most take a hundredth; a busy machine must not make findings."""

WALL_SECONDS = 900
"""That a case waits for something shows in these; at the lowest priority on a busy machine one that
only computes takes minutes."""
MEMORY_BYTES = 3 << 30


class TookTooLong(BaseException):
    """Raised in the middle of a case; none of the code under test catches it."""


def parse(argv):
    parser = argparse.ArgumentParser(prog='python -m tests.hostile.fuzz', description=__doc__)
    parser.add_argument('--seed', default=str(time.time_ns()),
                        help='any text; the same seed gives the same cases (default: the clock)')
    parser.add_argument('--minutes', type=float, default=1.0)
    parser.add_argument('--target', choices=sorted(targets.TARGETS), action='append',
                        help='only these; may be repeated')
    parser.add_argument('--case', type=int, help='only this one, with its traceback')
    return parser.parse_args(argv)


def run_case(target, rng):
    """:returns: None, or (kind of the finding, where, what)"""
    started = time.process_time()
    signal.alarm(WALL_SECONDS)
    try:
        targets.TARGETS[target](rng)
    except targets.Unsound as error:
        return 'unsound', target, str(error)
    except TookTooLong:
        return 'hang', target, ''.join(traceback.format_exc(limit=-3))
    except (Exception, SystemExit) as error:
        return type(error).__name__, _where(error), traceback.format_exc(limit=-6)
    finally:
        signal.alarm(0)
    spent = time.process_time() - started
    if spent > CPU_SECONDS:
        return 'slow', target, f'{spent:.1f} s of the processor'
    return None


def _where(error):
    """The innermost line of ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if 'kronos_nova' in frame.filename]
    frame = (frames or traceback.extract_tb(error.__traceback__))[-1]
    return f'{frame.filename.rpartition("kronos_nova/")[2]}:{frame.lineno}'


def _stop(_signal, _frame):
    raise TookTooLong


def main(argv=None):
    args = parse(argv)
    signal.signal(signal.SIGALRM, _stop)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    logging.disable(logging.CRITICAL)
    names = args.target or sorted(targets.TARGETS)
    cases, findings = collections.Counter(), {}
    deadline, number = time.monotonic() + args.minutes * 60, args.case or 0
    print(f'seed {args.seed}', flush=True)
    while time.monotonic() < deadline:
        name = names[number % len(names)]
        found = run_case(name, random.Random(f'{args.seed}/{name}/{number}'))
        cases[name] += 1
        if found and found[:2] not in findings:
            findings[found[:2]] = found[2]
            print(f'FINDING in case {number} ({name}): {found[0]} at {found[1]}\n{found[2]}',
                  flush=True)
        if args.case is not None:
            break
        number += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({'seed': args.seed, 'cases': dict(sorted(cases.items())),
                      'findings': len(findings), 'peak_mib': peak}))
    targets.clean_up()
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
