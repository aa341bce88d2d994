"""The load of each guest: synthetic days, a recorded trace, and what a test says."""

import dataclasses
import hashlib
import json
import math
import pathlib

import numpy


@dataclasses.dataclass(frozen=True)
class Days:
    """Synthetic days: every guest has its own mean, swing and hour of peak, by its name."""

    day_seconds: float

    def cpu(self, name, now):
        """Share of its CPUs that a guest wants, 0 to 1."""
        mean, swing, peak = 0.15 + 0.5 * _draw(name, 'mean'), 0.1, _draw(name, 'peak')
        wave = math.sin(2 * math.pi * (now / self.day_seconds + peak))
        return min(max(mean + swing * wave, 0.0), 1.0)


class Trace:
    """Recorded days: an .npz whose first two-dimensional array is percent, (guests, samples)."""

    def __init__(self, path, day_seconds):
        with numpy.load(path) as arrays:
            self._percent = next(arrays[key] for key in arrays.files if arrays[key].ndim == 2)
        self._day_seconds = day_seconds

    def cpu(self, name, now):
        guests, samples = self._percent.shape
        row = self._percent[int(_draw(name, 'row') * guests)]
        position = now / self._day_seconds * samples % samples
        before = int(position)
        after = (before + 1) % samples
        share = position - before
        return float(row[before] * (1 - share) + row[after] * share) / 100


class Load:
    """A load to play, with ``load.json`` of the box over it.

    ``{"instances": {"<uuid or display name>": {"cpu": 0.9, "memory": 0.5}}}``, both 0 to 1 of what
    the guest has.
    """

    def __init__(self, base, orders):
        self._base = base
        self._orders = pathlib.Path(orders)

    def said(self):
        try:
            return json.loads(self._orders.read_text()).get('instances', {})
        except FileNotFoundError:
            return {}

    def of(self, uuid, name, now, said):
        """CPU and memory of a guest, each a share of its own."""
        order = {**said.get(name, {}), **said.get(uuid, {})}
        return (order.get('cpu', self._base.cpu(name, now)),
                order.get('memory', 0.3 + 0.5 * _draw(name, 'memory')))


def _draw(name, what):
    """A number in [0, 1) that is always the same for a name."""
    digest = hashlib.sha256(f'{name}/{what}'.encode()).digest()
    return int.from_bytes(digest[:8], 'big') / 2 ** 64
