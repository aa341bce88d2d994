"""Default bounds of numeric options, which keep a value finite, and so small that a time or size
computed from it does not overflow."""

import math
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg
from oslo_config import types

LARGEST = 10**9
"""Largest value of numeric options that have no maximum of their own, in the unit of each. In
seconds, it is 31 years. Raised far, a time that many seconds ahead is outside the range of Python's
datetime; lowered, long times are refused. Chosen well within that range, which ends with the year
9999; not measured."""

MOST_DAYS = 36_500
"""Largest number of days that an option may have, 100 years. Fixed by the range of Python's
datetime, far within which the resulting times have to stay."""


class Finite(types.Float):
    """A finite number within its bounds. NaN is refused, because it passes comparisons with any
    bound."""

    def __call__(self, value: Any) -> Any:
        number: Any = super().__call__(value)
        if not math.isfinite(number):
            raise ValueError('must be a finite number')
        return number


def bound(options: Iterable[cfg.Opt]) -> None:
    """Give each integer and float option that has no minimum or maximum the default one."""
    for option in options:
        if type(option) is cfg.IntOpt:
            most = MOST_DAYS if option.name.endswith('_days') else LARGEST
            option.type = types.Integer(*_ends(option.type, most))
        elif type(option) is cfg.FloatOpt:
            option.type = Finite(*_ends(option.type, LARGEST))


def _ends(bounded: Any, most: int) -> tuple[Any, Any]:
    return (-most if bounded.min is None else bounded.min,
            most if bounded.max is None else bounded.max)
