"""Formats of times, amounts and servers in commands.

A table for people shows local times with their zone, and names of servers. The other formats, for
programs, have ISO 8601 times with their offset, and uuids.
"""

import argparse
import datetime
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import msgspec
from cliff import columns

WIDE = 100_000
"""Number of characters that a line of a table may have if the output of a command is not a
terminal. Fixed: no table needs this many, so no line is cut or wrapped in a file or a pipe."""


class Missing(columns.FormattableColumn):
    """The base of cells whose value may be None. Such cells are sorted last."""

    def __lt__(self, other: Any) -> bool:
        if self._value is None or other._value is None:
            return self._value is not None
        return self._value < other._value


class Time(Missing):
    """A cell with a time in UTC. A table shows None as an empty cell."""

    def human_readable(self) -> str:
        return '' if self._value is None else local(self._value)

    def machine_readable(self) -> str | None:
        return self._value and self._value.isoformat(timespec='seconds')


class Optional(Missing):
    """A cell whose value may be None: empty in a table for people, null for programs.

    :param text: formats the value for people
    """

    def __init__(self, value: object, text: Callable[[Any], str] = str):
        super().__init__(value)
        self._text = text

    def human_readable(self) -> str:
        return '' if self._value is None else self._text(self._value)

    def machine_readable(self) -> Any:
        return msgspec.to_builtins(self._value)


class Figure(Optional):
    """A cell with a number or None. The number is rounded to four decimal places."""

    def __init__(self, value: float | None):
        super().__init__(None if value is None else round(value, 4))


class Lines(columns.FormattableColumn):
    """A cell with a list, joined into a text in a table for people.

    :param text: formats an entry for people
    """

    def __init__(self, value: Sequence[Any], text: Callable[[Any], str] = str,
                 separator: str = '\n'):
        super().__init__(value)
        self._text = text
        self._separator = separator

    def human_readable(self) -> str:
        return self._separator.join(self._text(each) for each in self._value)

    def machine_readable(self) -> Any:
        return msgspec.to_builtins(self._value)


def local(time: datetime.datetime) -> str:
    """Format a time in the time zone of the machine, with the zone's name."""
    return time.astimezone().strftime('%Y-%m-%d %H:%M:%S %Z')


def duration(seconds: float) -> str:
    """Format a length of time, such as ``2 h 05 min``, ``3 min 20 s`` or ``40 s``. A negative
    length, which means that a clock was set back, counts as 0 s."""
    seconds = max(round(seconds), 0)
    if seconds < 60:
        return f'{seconds} s'
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f'{minutes} min {rest:02} s'
    return f'{minutes // 60} h {minutes % 60:02} min'


def server(uuid: str, name: str | None) -> str:
    """Format a server as ``name (uuid)``, or as its uuid if the name is not known."""
    return f'{name} ({uuid})' if name else uuid


def add_text_or_json(parser: argparse.ArgumentParser) -> None:
    """Add ``-f`` to a command whose output for people is not a table."""
    parser.add_argument('-f', '--format', choices=('text', 'json'), default='text',
                        help='Format of the output: "text" for people or "json" for programs; '
                             'default: text.')
