"""Default bounds of numeric options. A value within these bounds is finite, and no time or size
that is computed from the value overflows."""

import math
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg
from oslo_config import types

LARGEST = 10**9
"""Largest value of a numeric option that has no maximum of its own (no unit). For an option in
seconds, this is about 32 years. Raised far above this value, to 10 ** 12, an option may lead to
times after the year 9999, which Python's datetime cannot represent; lowered, large values are
refused. Chosen as a thousandth of 10 ** 12."""

MOST_DAYS = 36_500
"""Maximum number of days (about 100 years) in an option in days that has no maximum of its own.
Fixed by Python's datetime: times computed from the value have to be within its range."""


class Finite(types.Float):
    """The type of options whose values are finite numbers within bounds. NaN has to be refused
    explicitly, because comparisons with the bounds do not refuse NaN."""

    def __call__(self, value: Any) -> Any:
        number: Any = super().__call__(value)
        if not math.isfinite(number):
            raise ValueError('must be a finite number')
        return number


def bound(options: Iterable[cfg.Opt]) -> None:
    """Set the default minimum and maximum of integer and float options that lack them."""
    for option in options:
        if type(option) is cfg.IntOpt:
            most = MOST_DAYS if option.name.endswith('_days') else LARGEST
            option.type = types.Integer(*_ends(option.type, most))
        elif type(option) is cfg.FloatOpt:
            option.type = Finite(*_ends(option.type, LARGEST))


def _ends(bounded: Any, most: int) -> tuple[Any, Any]:
    return (-most if bounded.min is None else bounded.min,
            most if bounded.max is None else bounded.max)
