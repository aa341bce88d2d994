"""The present time and conversions of times. Inside Kronos every time is in UTC and has a time
zone.

Times in Nova's tables and in texts of its API are in UTC, but have no time zone. Code that reads
such a time adds the time zone.
"""

import datetime

DAY = datetime.timedelta(days=1)


def utcnow() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def aware(time: datetime.datetime) -> datetime.datetime:
    """Return the time with a time zone. A time without a zone counts as UTC."""
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def naive(time: datetime.datetime) -> datetime.datetime:
    """Convert a time to UTC and return it without a zone, as databases store it.

    :raises ValueError: the time has no zone, and is therefore ambiguous
    """
    if time.tzinfo is None:
        raise ValueError(f'{time!r} has no time zone')
    return time.astimezone(datetime.UTC).replace(tzinfo=None)


def parsed(text: str) -> datetime.datetime:
    """Parse a time in ISO 8601 and return it with its time zone. A time without a zone counts as
    UTC.

    :raises ValueError: the text is no such time
    """
    return aware(datetime.datetime.fromisoformat(text))


def stamp(time: datetime.datetime) -> str:
    """Format a time for other programs, in ISO 8601, in UTC and to the microsecond, such as
    ``2026-11-22T18:00:00.000000Z``."""
    return f'{naive(time).isoformat(timespec="microseconds")}Z'


def seconds_between(begin: datetime.datetime | None, end: datetime.datetime | None) -> float | None:
    """Return the seconds from ``begin`` to ``end``. Return None if a time is None, or if ``end`` is
    not later than ``begin``, because the clock was set back between them."""
    if begin is None or end is None or end <= begin:
        return None
    return (end - begin).total_seconds()


def earlier(time: datetime.datetime, length: datetime.timedelta) -> datetime.datetime:
    """Return a time minus a duration, but no earlier than the first time that datetime can
    represent."""
    first = datetime.datetime.min.replace(tzinfo=datetime.UTC)
    return time - length if time.astimezone(datetime.UTC) - first > length else first
