"""The present time and conversions of times. Inside Kronos every time is in UTC and has a time
zone.

Times in rows of Nova's tables and in texts of its API are in UTC, too, but have no time zone. They
get it where they are read.
"""

import datetime

DAY = datetime.timedelta(days=1)


def utcnow() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def aware(time: datetime.datetime) -> datetime.datetime:
    """Return a time with a zone. A time that has none is taken as UTC."""
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def naive(time: datetime.datetime) -> datetime.datetime:
    """Convert a time to UTC and return it without a zone, as databases store it.

    :raises ValueError: the time has no zone, so it is ambiguous
    """
    if time.tzinfo is None:
        raise ValueError(f'{time!r} has no zone')
    return time.astimezone(datetime.UTC).replace(tzinfo=None)


def parsed(text: str) -> datetime.datetime:
    """Parse a time in ISO 8601. A time without a zone is taken as UTC.

    :raises ValueError: the text is no such time
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
