"""How commands show times, amounts and servers: for people in tables, for programs otherwise.

A person reads local times with their zone and names; a program gets ISO 8601 with its offset, and
uuids.
"""


from cliff import columns
from oslo_db import exception as db_exc

from kronos_nova import boundary

# Nothing is cut or folded where nobody's screen is: a program reads it, or less -S shows it.
WIDE = 100_000


class Time(columns.FormattableColumn):
    """A time in UTC; None is shown as nothing."""

    def human_readable(self):
        return '' if self._value is None else local(self._value)

    def machine_readable(self):
        return self._value and self._value.isoformat(timespec='seconds')


class Optional(columns.FormattableColumn):
    """A value that may be missing: nothing for people, null for programs."""

    def human_readable(self):
        return '' if self._value is None else str(self._value)


class Lines(columns.FormattableColumn):
    """A list: a line each for people, by ``text``."""

    def __init__(self, value, text=str):
        super().__init__(value)
        self._text = text

    def human_readable(self):
        return '\n'.join(self._text(each) for each in self._value)


def local(time):
    """A time as the clock on the wall shows it, with its zone."""
    return time.astimezone().strftime('%Y-%m-%d %H:%M:%S %Z')


def duration(seconds):
    """Such as ``2 h 05 min``, ``3 min 20 s`` or ``40 s``."""
    seconds = round(seconds)
    if seconds < 60:
        return f'{seconds} s'
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f'{minutes} min {rest:02} s'
    return f'{minutes // 60} h {minutes % 60:02} min'


def error_text(error):
    """An error as one sentence; of a DBError without the statement and what was to be written."""
    if not isinstance(error, db_exc.DBError):
        return boundary.shown(error)
    cause = getattr(error, 'inner_exception', None) or error
    why = getattr(cause, 'orig', None) or cause
    return f'A database does not answer, or refuses: {boundary.shown(why)}.'


def count(number, noun):
    """Such as ``1 host`` or ``2 hosts``."""
    return f'{number} {noun}{"" if number == 1 else "s"}'


def add_text_or_json(parser):
    """``-f`` of the commands whose page for people is no table."""
    parser.add_argument('-f', '--format', choices=('text', 'json'), default='text',
                        help='text for people (default) or JSON for programs')


def server(uuid, names):
    """A server as people know it.

    :param names: {uuid: name}
    """
    name = names.get(uuid)
    return f'{name} ({uuid})' if name else uuid
