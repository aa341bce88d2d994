"""Run Nova's own functional tests with Kronos in the services, and compare with stock Nova.

Exit status: 0 no test fails with Kronos that does not without; 1 some do; 2 wrong usage.
"""

import argparse
import fnmatch
import importlib.metadata
import pathlib
import pkgutil
import re
import sys

from tests.nova_suite import processes
from tests.nova_suite import records
from tests.nova_suite import tree

PACKAGE = 'nova.tests.functional'
HOME = pathlib.Path(__file__).parents[2] / '.nova-suite'
# What moves instances, claims, or writes allocations.
EVERYTHING = (
    'compute', 'libvirt', 'regressions', 'wsgi', 'test_servers*', 'test_cold_migrate',
    'test_cross_cell_migrate', 'test_graceful_shutdown', 'test_report_client',
    'notification_sample_tests.test_instance', 'notification_sample_tests.test_compute_task',
    'api_sample_tests.test_migrate_server', 'api_sample_tests.test_migrations',
    'api_sample_tests.test_server_migrations')
WITH_SAMPLES = ('notification_sample_tests', 'api_sample_tests')
# Of what each release's conductor and scheduler run under as installed, and its fixtures want.
ENVIRONMENT = {'33': {'OS_NOVA_DISABLE_EVENTLET_PATCHING': 'false'},
               '34': {'OS_NOVA_DISABLE_EVENTLET_PATCHING': 'true'}}


def main():
    options = _parse()
    release = importlib.metadata.version('nova').split('.')[0]
    options.results.mkdir(parents=True, exist_ok=True)
    place = tree.make(HOME / f'nova-{release}')
    names = options.tests_from.read_text().split() if options.tests_from else []
    modules = _modules(place, options.modules or _modules_of(names) or EVERYTHING)
    if not modules:
        print('No module of Nova\'s functional tests has such a name.', file=sys.stderr)
        return 2
    if any(name.startswith(WITH_SAMPLES) for name in modules):
        tree.add_samples(place)
    runner = Runner(options, release, place, names)
    if options.stock:
        runner.run(records.STOCK, modules)
        return 0
    runner.run(records.KRONOS, modules)
    return runner.compare()


def _parse():
    parser = argparse.ArgumentParser(prog='tools/nova-suite.sh', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('modules', nargs='*', help=(
        f'modules or packages below {PACKAGE}, "*" stands for anything; by default: '
        f'{" ".join(EVERYTHING)}'))
    parser.add_argument('--stock', action='store_true', help='run stock Nova, compare nothing')
    parser.add_argument('--only', metavar='REGEX', help='run only tests whose id matches')
    parser.add_argument('--tests-from', type=pathlib.Path, metavar='FILE',
                        help='run only the tests that FILE names, one a line')
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--time-limit', type=float, default=300, metavar='SECONDS',
                        help='how long a test may take before it counts as hanging')
    parser.add_argument('--patience', type=float, default=1, metavar='FACTOR', help=(
        'how many times as long as they say tests wait for a server or a migration to become what '
        'they expect, on a machine that does much else (default: 1)'))
    parser.add_argument('--repeat', type=int, default=2, metavar='N', help=(
        'run a test that failed with Kronos so often again, and without Kronos as often '
        '(default: 2, three runs together)'))
    parser.add_argument('--results', type=pathlib.Path, metavar='DIRECTORY', default=HOME,
                        help='where results are kept (default: .nova-suite)')
    parser.add_argument('--afresh', action='store_true',
                        help='forget earlier results; else tests that have one are not run again')
    return parser.parse_args()


def _modules(place, wanted):
    """The names, below the package, of the modules that hold tests."""
    patterns = [pattern for name in wanted for pattern in (name, f'{name}.*')]
    root = place.joinpath(*PACKAGE.split('.'))
    found = []
    for module in _walk(root, ''):
        if any(fnmatch.fnmatchcase(module, pattern) for pattern in patterns):
            found.append(module)
    return found


def _modules_of(tests):
    """The modules of tests that are named below the package."""
    return sorted({test.rpartition('.')[0].rpartition('.')[0] for test in tests})


def _walk(directory, prefix):
    for module in sorted(pkgutil.iter_modules([str(directory)]), key=lambda each: each.name):
        if module.ispkg:
            yield from _walk(directory / module.name, f'{prefix}{module.name}.')
        elif module.name.startswith('test_'):
            yield prefix + module.name


class Runner:
    def __init__(self, options, release, place, names):
        self._options = options
        self._release = release
        self._place = place
        self._only = options.only or '|'.join(f'{re.escape(name)}$' for name in names)
        self._records = {}
        self._seen = set()

    def records(self, variant):
        if variant not in self._records:
            path = self._options.results / f'{self._release}-{variant}.jsonl'
            if self._options.afresh:
                path.unlink(missing_ok=True)
            self._records[variant] = records.Records(path)
        return self._records[variant]

    def run(self, variant, modules):
        known = self.records(variant)
        orders = []
        for module in modules:
            name = f'{PACKAGE}.{module}'
            done = [test for test in known.runs if test.startswith(f'{name}.')]
            self._seen.update(done)
            orders.append({'module': name, 'only': self._only, 'without': done})
        self._carry_out(variant, orders)
        print(f'Nova {importlib.metadata.version("nova")}, {variant}: '
              f'{records.figures(self._matching(), known)}', flush=True)

    def compare(self):
        kronos, stock = self.records(records.KRONOS), self.records(records.STOCK)
        failed = kronos.failed(self._matching())
        for number in range(self._options.repeat + 1):
            self._again(records.STOCK, stock, failed, number + 1)
            if number:
                self._again(records.KRONOS, kronos, failed, number + 1)
        differences = records.compare(failed, kronos, stock, self._release)
        steady = [each for each in differences if each.is_steady and not each.reason]
        for each in differences:
            print(f'{"known " if each.reason else ""}'
                  f'{"difference" if each.is_steady else "unsteady"}: {each}')
        print(f'{len(steady)} differences that differences.yaml does not explain, '
              f'{len(differences) - len(steady)} known or unsteady, '
              f'{len(failed) - len(differences)} tests that fail without Kronos too')
        stock_moves = kronos.live(self._matching())
        if stock_moves:
            print(f'Live migrations that were not atomic, with Kronos: {", ".join(stock_moves)}')
        return 1 if steady or stock_moves else 0

    def _again(self, variant, known, tests, times):
        """Run those of ``tests`` that ran less often, each in a process that ran none before."""
        orders = [{'module': test.rpartition('.')[0].rpartition('.')[0],
                   'only': f'^{re.escape(test)}$', 'without': []}
                  for test in tests if len(known.runs.get(test, ())) < times]
        self._carry_out(variant, orders)

    def _carry_out(self, variant, orders):
        known = self.records(variant)

        def ended(run):
            known.add(run)
            self._seen.add(run['id'])
            if run['outcome'] in records.BAD:
                print(f'{variant} {run["outcome"]}: {run["id"]}', flush=True)

        processes.Pool(
            path=self._place, variant=variant, environment=ENVIRONMENT.get(self._release, {}),
            workers=self._options.workers, time_limit=self._options.time_limit,
            patience=self._options.patience,
            log=self._options.results / f'{self._release}-{variant}.log').run(orders, ended)

    def _matching(self):
        return [test for test in sorted(self._seen) if re.search(self._only, test)]


if __name__ == '__main__':
    sys.exit(main())
