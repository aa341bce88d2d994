"""Records of the runs of each test, and conclusions from them."""

import collections
import dataclasses
import json
import pathlib
import re

import yaml

KRONOS, STOCK = 'kronos', 'stock'
PASSED, FAILED, SKIPPED, HUNG = 'passed', 'failed', 'skipped', 'hung'
BAD = (FAILED, HUNG)
DIFFERENCES = pathlib.Path(__file__).with_name('differences.yaml')


class Records:
    """Runs of tests in a file, a line of JSON each: a run that is broken off goes on from there."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        self.runs = collections.defaultdict(list)
        if path.exists():
            for line in path.read_text().splitlines():
                run = json.loads(line)
                self.runs[run['id']].append(run)

    def add(self, run: dict) -> None:
        details = run.pop('details', '')
        if run['outcome'] in BAD:
            self._keep(run['id'], details)
        self.runs[run['id']].append(run)
        with self._path.open('a') as file:
            file.write(json.dumps(run) + '\n')

    def _keep(self, test, details):
        directory = self._path.with_suffix('')
        directory.mkdir(exist_ok=True)
        name = re.sub(r'[^\w.-]', '_', test)[-200:]
        (directory / f'{name}.{len(self.runs[test])}.txt').write_text(details)

    def failures(self, test: str) -> int:
        return sum(run['outcome'] in BAD for run in self.runs.get(test, ()))

    def live(self, tests) -> list[str]:
        """The tests in which a live migration was Nova's own."""
        return [test for test in tests
                if any(run['counts']['live'] for run in self.runs.get(test, ()))]

    def failed(self, tests) -> list[str]:
        return [test for test in tests if self.failures(test)]


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """A test that ends otherwise with Kronos than without.

    ``reason`` is that of differences.yaml, None where it is not known there.
    """

    test: str
    kronos: tuple[int, int]
    stock: tuple[int, int]
    reason: str | None

    @property
    def is_steady(self) -> bool:
        """Return whether it fails every time with Kronos, and never without."""
        return self.kronos[0] == self.kronos[1] and not self.stock[0]

    def __str__(self):
        return (f'{self.test}: failed in {self.kronos[0]} of {self.kronos[1]} runs with Kronos, '
                f'in {self.stock[0]} of {self.stock[1]} without'
                f'{": " + self.reason if self.reason else ""}')


def compare(tests, kronos: Records, stock: Records, release: str) -> list[Difference]:
    """The tests that fail oftener with Kronos than without."""
    known = yaml.safe_load(DIFFERENCES.read_text()) or {}
    found = []
    for test in kronos.failed(tests):
        ours = kronos.failures(test), len(kronos.runs[test])
        theirs = stock.failures(test), len(stock.runs.get(test, ()))
        if theirs[1] and theirs[0] * ours[1] >= ours[0] * theirs[1]:
            continue
        entry = known.get(test.removeprefix('nova.tests.functional.'), {})
        reason = entry.get('reason') if release in entry.get('releases', (release,)) else None
        found.append(Difference(test, ours, theirs, reason))
    return found


def figures(tests, records: Records) -> str:
    """One line that sums up the last run of each test."""
    last = [records.runs[test][-1] for test in tests if records.runs.get(test)]
    outcomes = collections.Counter(run['outcome'] for run in last)
    counts = collections.Counter()
    for run in last:
        counts.update(run['counts'])
    return (f'{len(last)} tests: {outcomes[PASSED]} passed, {outcomes[FAILED]} failed, '
            f'{outcomes[HUNG]} hung, {outcomes[SKIPPED]} skipped; '
            f'{counts["atomic"]} atomic live migrations, {counts["live"]} of Nova\'s own, '
            f'{counts["writes"]} requests that write allocations; '
            f'{sum(run["cpu"] for run in last):.0f} s of CPU')
