"""Types of arguments for argparse: numbers, names and times. For a wrong value, argparse names the
argument and exits with 2."""

import argparse
import datetime
import math
import re
from collections.abc import Callable

from kronos_client import sanitize

LARGEST = 10 ** 9
"""Largest number that a command accepts as an argument (no unit). For an argument in seconds, this
is about 32 years. Raised far above this number, to 10 ** 12, an argument may lead to times outside
the range of Python's datetime; lowered, long times are refused. Fixed by the options in nova.conf,
which have the same limit."""

PAST = 'a local time (03:12, 2026-11-22T18:00) or how long ago (90m, 2h, 3d)'
"""Description of the times that :func:`past` accepts, for the help of arguments."""

AGO = re.compile(r'(\d{1,6})([mhd])')
UNITS = {'m': 60, 'h': 3600, 'd': 86400}
"""Seconds in each unit of time that an argument such as ``45m`` may have. Fixed by the definition
of the units."""
TIME_OF_DAY = re.compile(r'\d{1,2}:\d{2}(:\d{2})?')


def at_least(least: int, most: int = LARGEST) -> Callable[[str], int]:
    """Return the type, for argparse, of an argument that is a whole number from ``least`` to
    ``most``."""
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f'"{text:.40}" is not a whole number') from None
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f'must be from {least} to {most}')
        return value

    return number


MINUTES_DIGITS = 6
"""Maximum number of digits of an argument that is read as minutes from now. An argument with more
digits is read as a date. Fixed by the formats: 999999 minutes are almost two years, which suffices
for every argument, and a date such as 20261122 has eight digits."""

COUNT = at_least(0)
POSITIVE = at_least(1)


def remark(text: str) -> str:
    """Parse an argument that is stored in the control database and shown to people. No text is
    refused; characters that cannot be stored or printed are replaced."""
    return sanitize.remark(text)


def name(text: str) -> str:
    """Parse an argument that is a name or a uuid. An empty text is refused. A script may pass an
    empty text because a variable is not set, and the command would then act on all objects."""
    if not text:
        raise argparse.ArgumentTypeError('must not be empty')
    return text


def seconds(text: str) -> float:
    """Parse an argument that is a length of time in seconds."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text:.40}" is not a number of seconds') from None
    if not (math.isfinite(value) and 0 <= value <= LARGEST):
        raise argparse.ArgumentTypeError(f'must be from 0 to {LARGEST} seconds')
    return value


def duration(text: str) -> int:
    """Return the seconds of an argument that is a length of time with its unit, such as 45m."""
    found = AGO.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f'"{text:.40}" is not a length of time; write it as 45m, 8h or 3d')
    return int(found[1]) * UNITS[found[2]]


def pause(text: str) -> float:
    """Parse an argument that is the number of seconds between two queries. A number below 0.1 is
    refused, because so many queries would load a database or an API."""
    value = seconds(text)
    if value < 0.1:
        raise argparse.ArgumentTypeError('must be 0.1 seconds or more')
    return value


def past(text: str) -> datetime.datetime:
    """Parse an argument that is a time in the past (see :data:`PAST`), and return it in UTC.

    A time of day without a date is read as its last occurrence: today, or yesterday if the time of
    day has not passed today.
    """
    now = datetime.datetime.now(datetime.UTC)
    try:
        ago = AGO.fullmatch(text)
        if ago is not None:
            return now - datetime.timedelta(seconds=int(ago[1]) * UNITS[ago[2]])
        if TIME_OF_DAY.fullmatch(text):
            today = datetime.datetime.combine(
                now.astimezone().date(), datetime.time.fromisoformat(
                    text if text[2] == ':' else f'0{text}'))
            # The day before may have another offset from UTC.
            found = today if today.astimezone() <= now else today - datetime.timedelta(days=1)
            return found.astimezone(datetime.UTC)
        return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f'"{text:.40}" is not a time; give {PAST}') from None


def later(text: str) -> datetime.datetime:
    """Parse an argument that is a time in the future, either minutes from now or a local time, and
    return it in UTC."""
    now = datetime.datetime.now(datetime.UTC)
    try:
        if text.isdigit() and len(text) <= MINUTES_DIGITS:
            found = now + datetime.timedelta(minutes=int(text))
        else:
            found = datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f'"{text:.40}" is neither minutes from now nor a time such as 2026-11-22T18:00'
        ) from None
    if found <= now:
        raise argparse.ArgumentTypeError(f'"{text:.40}" has passed already')
    return found
