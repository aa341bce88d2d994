"""The time now, and the one rule for times: inside, a time is UTC and has its zone.

Times without a zone come from Nova: the rows of its tables and the texts of its API have none. They
are UTC too, and get their zone where they are read.
"""

import datetime

DAY = datetime.timedelta(days=1)


def utcnow() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def aware(time: datetime.datetime) -> datetime.datetime:
    """Return the same time with a zone. A time without a zone is taken as UTC."""
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def naive(time: datetime.datetime) -> datetime.datetime:
    """Return the same time in UTC and without a zone, as databases store it.

    :raises ValueError: it has no zone, so it may be any of several times
    """
    if time.tzinfo is None:
        raise ValueError(f'{time!r} has no zone')
    return time.astimezone(datetime.UTC).replace(tzinfo=None)


def parsed(text: str) -> datetime.datetime:
    """Parse a time in ISO 8601; without a zone it is UTC.

    :raises ValueError: it is none
    """
    return aware(datetime.datetime.fromisoformat(text))


def stamp(time: datetime.datetime) -> str:
    """Return a time in ISO 8601 for other programs, to the microsecond, such as
    ``2026-11-22T18:00:00.000000Z``."""
    return f'{naive(time).isoformat(timespec="microseconds")}Z'


def earlier(time: datetime.datetime, length: datetime.timedelta) -> datetime.datetime:
    """Return a time minus a duration, or the first time of the calendar if that would be before
    it."""
    first = datetime.datetime.min.replace(tzinfo=datetime.UTC)
    return time - length if time.astimezone(datetime.UTC) - first > length else first
