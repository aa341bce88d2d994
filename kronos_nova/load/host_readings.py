"""Readings of hosts: the answer to a query as one number for each host, or the reasons why these
numbers must not be used."""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova import plural
from kronos_nova.model import TOLERANCE
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector

NAMED = 3
"""Maximum number of hosts that a message names. Further hosts are only counted. Raised, messages
are longer; lowered, an operator sees fewer examples. Chosen so that the names fit into one line."""
ROUNDING = 0.1
"""Largest distance of a load from the range [0, 1], as a share of a host, that counts as a rounding
error. Rounding errors arise when rates are computed over different times. For a rounding error, a
warning advises to use ``clamp()``. For a higher load, a warning advises to divide the load by 100
or by the size of the host. Raised, loads in a wrong unit are taken for rounding errors; lowered,
rounding errors are taken for loads in a wrong unit. Chosen as the tolerance of the other checks of
measured loads."""
PERCENT = 100.0
"""Largest load, in percent, for which a warning advises to divide by 100. The warning is about a
query that returns percent in place of fractions of a host. Fixed by the definition of a
percentage."""
MOST_FULL = 2.0
"""Value of ``capacity_query`` above which a warning says that the query probably returns percent.
The query should return a fraction of a host. Raised, percentages of little used hosts cause no
warning; lowered, hosts with overcommitted memory cause a warning. Chosen above 1.5, a common ratio
of overcommitted memory, and below the percentages of most hosts."""
CLOCKS = 'compare the clocks of this host and of Prometheus, and look for a cache between them'


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """The range of valid values. Both ends are valid, with a tolerance for rounding."""

    lowest: float
    highest: float

    def violated_by(self, values: np.ndarray) -> np.ndarray:
        """Return bool in the shape of ``values``: True where a value is infinite or outside the
        range. The result is False for NaN."""
        return (values < self.lowest - TOLERANCE) | (values > self.highest + TOLERANCE) | np.isinf(
            values)

    def __str__(self) -> str:
        if np.isinf(self.highest):
            return f'{self.lowest:g} and above'
        return f'{self.lowest:g} to {self.highest:g}'


@dataclasses.dataclass(frozen=True, slots=True)
class ScoringRules:
    """Conditions under which readings are used.

    min_coverage : fraction of the available hosts that must have a sample
    oldest : Unix seconds; samples before this time are ignored
    newest : Unix seconds; a sample after this time shows that clocks differ. Its age is then not
        known
    """

    min_coverage: float = 1.0
    oldest: float = float('-inf')
    newest: float = float('inf')


@dataclasses.dataclass(frozen=True, slots=True)
class Readings:
    """The answer to a query for some hosts.

    values : float64 (H,), value of each host; NaN if the host has no sample
    problems : reasons why these values must not be used; empty if there are no reasons
    warnings : texts for an operator about values that may be used
    coverage : fraction of the available hosts that have a sample
    oldest : Unix seconds of the oldest of these samples; NaN if there is no sample
    """

    values: np.ndarray
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    coverage: float = 0.0
    oldest: float = float('nan')


def read(vector: Vector, label: str, hosts: tuple[str, ...], available: np.ndarray,
         allowed: Range, rules: ScoringRules) -> Readings:
    """Return the Readings of ``hosts``. The reading of a host is the sample that has the name of
    the host in the label ``label``.

    Series of other hosts are ignored, because they belong to other aggregates. A host that is not
    available needs no sample. But if such a host has a sample, its value must be in the allowed
    range, because a value out of range shows that the query is wrong.

    :param available: bool (H,), true for the hosts that need a sample
    :param allowed: the range of valid values
    """
    values, times = np.full(len(hosts), np.nan), np.full(len(hosts), -np.inf)
    samples = vector.by(label)
    for position, host in enumerate(hosts):
        for sample in samples.get(host, ()):
            values[position], times[position] = sample.value, sample.timestamp
    stale = (times < rules.oldest) & ~np.isnan(values)
    problems = [*_repeated(samples, hosts), *_outside(values, hosts, allowed)]
    values = np.where(stale, np.nan, values)
    missing = np.isnan(values) & available
    if not problems:
        problems += _coverage(missing, stale, available, hosts, rules)
    warnings = vector.warnings
    if not problems and missing.any():
        warnings += (f'no sample for {_names(hosts, missing)}: left out of the plan',)
    used = available & ~missing
    if not problems:
        warnings += tuple(_ahead(int((times[used] > rules.newest).sum())))
    return Readings(
        values, tuple(problems), warnings,
        coverage=float(used.sum() / available.sum()) if available.any() else 0.0,
        oldest=float(times[used].min()) if used.any() else float('nan'))


def normalised(values: np.ndarray) -> np.ndarray:
    """Return float64 (H,): values min-max normalised to [0, 1] for display. NaN stays NaN. The
    results are 0 if all values are equal."""
    if np.isnan(values).all():
        return values.copy()
    low, high = np.nanmin(values), np.nanmax(values)
    if high == low:
        return np.where(np.isnan(values), np.nan, 0.0)
    return (values - low) / (high - low)


def _repeated(samples: Mapping[str, Sequence[Sample]], hosts: Sequence[str]) -> Iterator[str]:
    repeated = sorted(host for host in hosts if len(samples.get(host, ())) > 1)
    if repeated:
        yield (f'more than one series for {_listed(repeated)}: aggregate the query by the host '
               'label')


def _outside(values: np.ndarray, hosts: Sequence[str], allowed: Range) -> Iterator[str]:
    wrong = allowed.violated_by(values)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        yield (f'{int(wrong.sum())} of {len(hosts)} hosts out of range {allowed}, such as '
               f'{hosts[first]} at {values[first]:g}{range_remedy(values[first], allowed)}')


def range_remedy(value: float, allowed: Range) -> str:
    """Return a text with the remedy for a value out of range; '' if no remedy is known."""
    if allowed.highest == 1.0 and -ROUNDING <= value <= 1.0 + ROUNDING:
        return ': rates are not exact, take clamp(QUERY, 0, 1)'
    if allowed.highest == 1.0 and 1.0 < value <= PERCENT:
        return ': divide a percentage by 100, an amount by what the host has'
    if np.isinf(value):
        return ': the query divides by 0'
    return ''


def too_full(values: np.ndarray, hosts: Sequence[str]) -> Iterator[str]:
    """Yield a warning if ``capacity_query`` returns values far above 1 for some hosts. A full host
    has the value 1.

    :param values: float64 (H,), NaN if not measured
    """
    which = np.nan_to_num(values) > MOST_FULL
    if which.any():
        first = int(np.flatnonzero(which)[0])
        yield (f'capacity_query has {int(which.sum())} of {len(hosts)} hosts above {MOST_FULL:g}, '
               f'such as {hosts[first]} at {values[first]:g}, and 1 is full: these take no server. '
               'Divide a percentage by 100, an amount by what the host has')


def _ahead(hosts: int) -> Iterator[str]:
    if hosts:
        yield (f'{plural.count(hosts, "host", "have")} samples from the future, so old ones are '
               'not recognised: '
               f'{CLOCKS}')


def _coverage(missing: np.ndarray, stale: np.ndarray, available: np.ndarray,
              hosts: Sequence[str], rules: ScoringRules) -> list[str]:
    needed = int(available.sum())
    if not needed:
        return ['no host is up and enabled']
    covered = 1.0 - missing.sum() / needed
    if missing.sum() < needed and covered >= rules.min_coverage - TOLERANCE:
        return []
    old = (f', {int((stale & available).sum())} of them only an old one ({CLOCKS})'
           if stale.any() else '')
    remedy = ('; min_coverage permits to plan without some' if missing.sum() < needed else
              '; kronos-test-config compares labels, windows and exporters')
    return [f'{int(missing.sum())} of {needed} available hosts '
            f'{plural.agreeing(int(missing.sum()), "have")} no sample{old}: '
            f'{_names(hosts, missing)}{remedy}']


def _names(hosts: Sequence[str], chosen: np.ndarray) -> str:
    return _listed([hosts[position] for position in np.flatnonzero(chosen).tolist()])


def _listed(names: Sequence[str]) -> str:
    more = f' and {len(names) - NAMED} more' if len(names) > NAMED else ''
    return ', '.join(names[:NAMED]) + more
