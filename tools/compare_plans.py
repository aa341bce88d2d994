"""Compares what two checkouts plan on the same snapshots.

    tools/compare-plans [--clusters] [--generate N] OLD_CHECKOUT NEW_CHECKOUT [FOLDER...]

A FOLDER is a snapshot, or has snapshots anywhere below it. Order, uuids, hosts, phases, counts and
figures (to 1e-9) have to be equal, also those of drains. Texts for people (reasons, warnings) may
differ: each that does is listed once. Exit codes: 0 the plans are equal; 1 they differ; 2 they
could not be compared.
"""

import argparse
import collections
import configparser
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from tools import random_snapshots

ROOT = pathlib.Path(__file__).parents[1]
CLIENT = 'kronos_nova/client'
"""The project folder of kronos-client in a checkout."""
PLANS = 'tools/plan_snapshots.py'
TOLERANCE = 1e-9
"""Difference of two figures that counts as none, relative for figures above 1."""
SHOWN = 12
"""Differences of a snapshot that are listed. More are counted."""
TEXTS = {'blocked', 'detail', 'error', 'reason', 'warnings'}
"""Keys of texts for people."""
WORDS = {('not_moved', 'reason')}
"""Keys, each with the one above it, that look like texts and are words of the interface."""
NUMBER = re.compile(r'(?<![\w.])-?\d+(\.\d+)?(?![\w.]*\w)')
PARTS = re.compile(r'; |: ')
"""Between the parts of a text. Only parts that differ are listed."""
MISSING = object()
FIELD = re.compile(r'(aggregates\.\d+|drains\.\d+\.report)\.\w+')
"""The path of a field of an aggregate's report."""


class Comparison:
    """The differences of two trees of JSON.

    :ivar differences: one line each
    :ivar texts: (old, new) to how often that text differs so
    :ivar fields: keys that only the new reports of aggregates have
    """

    def __init__(self, names: dict[str, str] | None = None):
        """
        :param names: names of a snapshot to what they are of, so that a text about many hosts
            counts as one
        """
        self.names = names or {}
        self.differences: list[str] = []
        self.texts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.fields: set[str] = set()

    def compare(self, old: Any, new: Any, path: tuple[str | int, ...] = ()) -> None:
        """Add what is different between two trees."""
        if old is MISSING and FIELD.fullmatch('.'.join(map(str, path))):
            self.fields.add(str(path[-1]))
        elif MISSING in (old, new):
            self._add(path, old, new)
        elif isinstance(old, dict) and isinstance(new, dict):
            for key in sorted({*old, *new}):
                self.compare(old.get(key, MISSING), new.get(key, MISSING), (*path, key))
        elif is_text(path):
            self._compare_texts(old, new)
        elif isinstance(old, list) and isinstance(new, list):
            if len(old) != len(new):
                self._add(path, f'{len(old)} of them', f'{len(new)}')
            for number, pair in enumerate(zip(old, new, strict=False)):
                self.compare(*pair, (*path, number))
        elif not are_equal(old, new):
            self._add(path, old, new)

    def _add(self, path: tuple[str | int, ...], old: object, new: object) -> None:
        where = ''.join(f'[{key}]' if isinstance(key, int) else f'.{key}' for key in path)
        self.differences.append(f'{where.lstrip(".")}: {_shown(old)} -> {_shown(new)}')

    def _compare_texts(self, old: object, new: object) -> None:
        """Pair the texts that only one side has, in order; '' stands for none."""
        for pair in itertools.zip_longest(*_different(_lines(old), _lines(new)), fillvalue=''):
            before, after = ('; '.join(side) for side in _different(*map(PARTS.split, pair)))
            masked = self._masked(before), self._masked(after)
            self.texts[(before, after) if masked[0] == masked[1] else masked] += 1

    def _masked(self, text: str) -> str:
        words = re.sub(r'[\w.-]*\w', lambda found: self.names.get(found[0], found[0]), text)
        return NUMBER.sub('N', words)


def is_text(path: tuple[str | int, ...]) -> bool:
    """Return whether a value is a text for people, by the keys that lead to it."""
    keys = [key for key in path if isinstance(key, str)]
    return bool(TEXTS.intersection(keys)) and tuple(keys[-2:]) not in WORDS and (
        keys[-1] in TEXTS or 'blocked' in keys)


def are_equal(old: Any, new: Any) -> bool:
    """Return whether two values of JSON are equal, numbers up to the tolerance."""
    numbers = [type(value) in (int, float) for value in (old, new)]
    if all(numbers):
        return old == new or math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (
            math.isnan(old) and math.isnan(new))
    return type(old) is type(new) and old == new


def _different(old: Iterable[str], new: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the entries that only the first list has, and those that only the second has."""
    ours, theirs = collections.Counter(old), collections.Counter(new)
    return list((ours - theirs).elements()), list((theirs - ours).elements())


def _lines(value: object) -> list[str]:
    if value is None:
        return []
    return [str(line) for line in value] if isinstance(value, list) else [str(value)]


def _shown(value: object) -> str:
    return 'missing' if value is MISSING else value if isinstance(value, str) else json.dumps(value)


def names_of(folder: pathlib.Path) -> dict[str, str]:
    """Return {name in a snapshot: kind of the thing that has the name}."""
    try:
        inventory = json.loads((folder / 'inventory.json').read_text())
    except (OSError, ValueError):    # the plans are errors, which are compared
        return {}
    found: dict[str, str] = {}
    for table, keys, word in (('instances', ('uuid', 'name', 'display_name'), 'SERVER'),
                              ('server_groups', ('uuid', 'name'), 'GROUP'),
                              ('hosts', ('name',), 'HOST')):
        found |= {row.get(key): word for row in inventory.get(table, ()) for key in keys}
    return found


def snapshots_in(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the snapshot in a folder, or all snapshots below it."""
    return sorted(path.parent for path in folder.rglob('meta.json'))


def plans_of(checkout: pathlib.Path, folders: list[pathlib.Path]) -> Iterator[dict]:
    """Yield the plans of a checkout for each snapshot, made in a process of its own.

    :raises subprocess.CalledProcessError: the process failed
    """
    own = checkout / PLANS
    with tempfile.TemporaryDirectory() as temporary:
        write_entry_points(checkout, pathlib.Path(temporary))
        output = pathlib.Path(temporary) / 'plans'
        subprocess.run(  # noqa: S603 - the interpreter that runs this, on files of the checkout
            [sys.executable, '-P', own if own.exists() else ROOT / PLANS, checkout, output,
             *folders], check=True, cwd=checkout,
            env=os.environ | {'PYTHONPATH': os.pathsep.join(
                map(str, (temporary, checkout, *_client_of(checkout))))})
        yield from map(json.loads, output.read_text().splitlines())


def _client_of(checkout: pathlib.Path) -> list[pathlib.Path]:
    """Return the project folder of kronos-client, which is in another package in older
    checkouts."""
    return [checkout / CLIENT] if (checkout / CLIENT / 'setup.cfg').exists() else []


def write_entry_points(checkout: pathlib.Path, folder: pathlib.Path) -> None:
    """Make a checkout's own entry points the installed ones, whichever version is installed."""
    setup = configparser.ConfigParser(interpolation=None, delimiters=('=',))
    setup.optionxform = str     # type: ignore[assignment,method-assign]
    with open(checkout / 'setup.cfg') as file:
        setup.read_file(file)
    metadata = folder / 'kronos_nova-0.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text('Metadata-Version: 2.1\nName: kronos-nova\nVersion: 0\n')
    (metadata / 'entry_points.txt').write_text('\n'.join(
        f'[{group}]{points}\n' for group, points in setup['entry_points'].items()))


def compare(old: pathlib.Path, new: pathlib.Path, folders: list[pathlib.Path]) -> int:
    """Print what differs between the plans of two checkouts. Returns how many snapshots differ.

    The texts of a snapshot with different plans are not listed, because they follow the plans.
    """
    texts: collections.Counter[tuple[str, str]] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    seconds, differing = [0, 0], 0
    fields: set[str] = set()
    # One after the other: two at a time would only make each other slower.
    for before, after in zip(list(plans_of(old, folders)), plans_of(new, folders), strict=True):
        comparison = Comparison(names_of(pathlib.Path(before['folder'])))
        comparison.compare(before['plans'], after['plans'])
        counts.update(counted(before['plans']))
        fields |= comparison.fields
        seconds = [seconds[0] + before['seconds'], seconds[1] + after['seconds']]
        if not comparison.differences:
            texts += comparison.texts
        else:
            differing += 1
            print(f'{before["folder"]}: {len(comparison.differences)} differences')
            for line in comparison.differences[:SHOWN]:
                print(f'    {line}')
    if fields:
        print(f'Fields of aggregates that only the new one has: {", ".join(sorted(fields))}')
    if texts:
        print('Texts that differ, old -> new:')
        for (was, now), count in sorted(texts.items(), key=lambda item: (-item[1], item[0])):
            print(f'    {count} times: {was!r}\n        -> {now!r}')
    print(', '.join(f'{count} {name}' for name, count in sorted(counts.items())))
    print(f'{len(folders)} snapshots in {seconds[0]:.1f} s (old) and {seconds[1]:.1f} s (new): '
          f'{differing} with different plans; {len(texts)} texts differ')
    return differing


def counted(plans: dict) -> Iterator[str]:
    """Yield the counts of what was compared, so that an empty comparison is noticed."""
    if 'error' in plans:
        yield 'snapshots that cannot be planned'
    for aggregate in plans.get('aggregates', ()):
        yield f'aggregates {aggregate["outcome"]}'
        yield from (f'moves to {move["phase"]}' for move in aggregate['moves'])
    for drain in plans.get('drains', ()):
        yield 'drains'
        yield from ('moves of drains' for _move in drain['report']['moves'])


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    summary, usage, *_rest = __doc__.split('\n\n')
    parser = argparse.ArgumentParser(
        prog='tools/compare-plans', description=__doc__.replace(usage, ''),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('old', metavar='OLD_CHECKOUT', type=pathlib.Path)
    parser.add_argument('new', metavar='NEW_CHECKOUT', type=pathlib.Path)
    parser.add_argument('folders', metavar='FOLDER', type=pathlib.Path, nargs='*')
    parser.add_argument('--clusters', action='store_true',
                        help='compare the clusters of bench/data/clusters too')
    parser.add_argument('--generate', metavar='N', type=int, default=0,
                        help='compare N random snapshots too; they are kept if plans differ')
    parser.add_argument('--seed', metavar='N', type=int, default=0,
                        help='of the first random snapshot (default 0)')
    return parser.parse_args(argv)


def made(arguments: argparse.Namespace, folder: pathlib.Path) -> None:
    """Write the random snapshots and those of the bench's clusters."""
    for seed in range(arguments.seed, arguments.seed + arguments.generate):
        random_snapshots.write(seed, folder / f'random-{seed:04}')
    if arguments.clusters:
        from bench import inputs  # with numpy and the package, which nothing else here needs
        from bench import recording

        for name in inputs.cluster_names():
            recording.write(name, folder / name)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare the plans of two checkouts.

    :returns: the exit code
    """
    arguments = parse(argv)
    for checkout in (arguments.old, arguments.new):
        if not (checkout / 'kronos_nova').is_dir():
            print(f'{checkout} is no checkout: it has no kronos_nova.', file=sys.stderr)
            return 2
    temporary = pathlib.Path(tempfile.mkdtemp(prefix='compare-plans-'))
    differing = 0
    try:
        made(arguments, temporary)
        folders = [found.resolve() for folder in (*arguments.folders, temporary)
                   for found in snapshots_in(folder)]
        if not folders:
            print('There is no snapshot: name a folder, or use --generate or --clusters.',
                  file=sys.stderr)
            return 2
        differing = compare(arguments.old.resolve(), arguments.new.resolve(), folders)
    except (OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if not differing:
            shutil.rmtree(temporary)
    if differing and (arguments.generate or arguments.clusters):
        print(f'Made snapshots: {temporary}')
    return 1 if differing else 0


if __name__ == '__main__':
    sys.exit(main())
