"""What may be typed for numbers and times; argparse tells which argument was wrong, and ends
with 2."""

import argparse
import datetime
import math

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova.conf import bounds


def at_least(least: int, most: int = bounds.LARGEST):
    """The type of an argument that is a whole number within bounds."""
    def number(text):
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f'"{text:.40}" is no whole number') from None
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f'it has to be from {least} to {most}')
        return value

    return number


MINUTES_DIGITS = 6
"""Of minutes from now, which is two years at most. 20261122 is a day."""

COUNT = at_least(0)
POSITIVE = at_least(1)


def remark(text: str) -> str:
    """The type of an argument that is kept and shown to people, and never refused."""
    return boundary.remark(text)


def seconds(text: str) -> float:
    """The type of an argument that is a length of time."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text:.40}" is no number of seconds') from None
    if not (math.isfinite(value) and 0 <= value <= bounds.LARGEST):
        raise argparse.ArgumentTypeError(f'it has to be from 0 to {bounds.LARGEST} seconds')
    return value


def pause(text: str) -> float:
    """The type of an argument that says how long to wait between two looks: at no time a database
    or an API is asked without a pause."""
    value = seconds(text)
    if value < 0.1:
        raise argparse.ArgumentTypeError('it has to be 0.1 seconds or more')
    return value


def later(text: str) -> datetime.datetime:
    """The type of an argument that is a time to come: minutes from now, or a local time."""
    now = clock.utcnow()
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
        raise argparse.ArgumentTypeError(f'"{text:.40}" is over already')
    return found
