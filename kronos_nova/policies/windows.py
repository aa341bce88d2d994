"""Maintenance windows: recurring times at which moves may be started.

A cron expression gives the local times at which a window opens. When a clock is set back, an hour
occurs twice, and a window opens only in the first of the two. When a clock is set forward, an hour
is skipped. A window that would open in the skipped hour opens later, by the length of the skipped
time.
"""

import dataclasses
import datetime
import re
import typing
import zoneinfo
from collections.abc import Iterable
from collections.abc import Iterator

from oslo_config import cfg

from kronos_nova import boundary
from kronos_nova import exception

if typing.TYPE_CHECKING:  # a command without windows does not need it
    import croniter

EVERY = '*'
FORM = 'AGGREGATE; CRON; MINUTES[; TIME ZONE]'

LONGEST_MINUTES = 31 * 24 * 60
"""Maximum minutes for which a maintenance window stays open. Fixed at 31 days: a window that opens
every month and stays open for longer would never close."""

# Fields of a cron expression that are accepted. croniter would accept more than cron does, such as
# random times.
_FIELD = re.compile(r'[0-9*/,#L?-]+|[a-z0-9,*/-]{1,60}', re.ASCII | re.IGNORECASE)
_RANDOM = re.compile(r'(^|,)[hr](\W|$)', re.ASCII | re.IGNORECASE)
_LONGEST_CRON = 200
"""Maximum number of characters of the cron expression of a maintenance window. Raised, an invalid
expression can fill a message; lowered, expressions with long lists of times are refused. Not
measured."""

_YEARS = 9
"""Number of years within which a cron expression must match at least once. Fixed by the calendar:
two leap days are up to eight years apart."""
_BEFORE = datetime.datetime(2024, 1, 1)

# No clock change is larger than this.
_CLOCK_CHANGE = datetime.timedelta(hours=3)
_AROUND = datetime.timedelta(days=1)
_SECOND = datetime.timedelta(seconds=1)
_YEAR_OF_DAYS = 400
"""Number of days from now in which clock changes of a time zone are searched, such as the beginning
of daylight saving time. Fixed: clock changes recur every year, and this is more than a year."""


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """A recurring maintenance window. It opens at each time of the cron expression, and stays open
    for ``minutes``."""

    aggregate: str
    cron: str
    minutes: int
    zone: str = 'UTC'

    def is_open(self, now: float) -> bool:
        """Return True if the window is open at a time, else False.

        :param now: Unix seconds
        """
        local, margin = self._local(now), self._margin(now)
        starts = self._starts(local + margin + _SECOND)
        while True:
            start = starts.get_prev(datetime.datetime)
            begun = self._unix(start)
            if begun <= now < begun + self.minutes * 60:
                return True
            if begun <= now and start <= local - margin:
                return False

    def opens_at(self, now: float) -> float:
        """Return the time after ``now`` at which the window opens next. Both times are in Unix
        seconds."""
        starts = self._starts(self._local(now) - self._margin(now))
        while (opens := self._unix(starts.get_next(datetime.datetime))) <= now:
            pass
        return opens

    def clock_changes(self, now: float) -> Iterator[datetime.datetime]:
        """Yield the times, within the next year, at which the local clock is set forward or back
        while the window is open. By the local clock, the window then ends later or earlier than
        usual, in most cases by an hour. The times are in UTC."""
        yield from (change for change in self._changes(now) if self._is_open_at(change))

    def late_openings(self, now: float) -> Iterator[datetime.datetime]:
        """Yield the times, within the next year, at which the local clock is set forward and skips
        the opening time of the window. By the local clock, the window then opens later than usual.
        The times are in UTC."""
        for change in self._changes(now):
            before, after = self.clock_around(change)
            opens = self._starts(before - _SECOND).get_next(datetime.datetime)
            if opens < after and not self._is_open_at(change):
                yield change

    def clock_around(self, change: datetime.datetime) -> tuple[datetime.datetime,
                                                               datetime.datetime]:
        """Return the local times immediately before and after a clock change.

        :param change: a moment from :meth:`clock_changes` or :meth:`late_openings`
        """
        zone = zoneinfo.ZoneInfo(self.zone)
        was = (change - _SECOND).astimezone(zone).replace(tzinfo=None, fold=0) + _SECOND
        return was, change.astimezone(zone).replace(tzinfo=None, fold=0)

    def _changes(self, now: float) -> Iterator[datetime.datetime]:
        """Yield the clock changes of the window's time zone within a year, as times in UTC."""
        zone = zoneinfo.ZoneInfo(self.zone)
        for day in range(_YEAR_OF_DAYS):
            early = datetime.datetime.fromtimestamp(now, datetime.UTC) + day * _AROUND
            late = early + _AROUND
            if early.astimezone(zone).utcoffset() == late.astimezone(zone).utcoffset():
                continue
            while late - early > _SECOND:
                middle = early + (late - early) / 2
                is_before = (middle.astimezone(zone).utcoffset()
                             == early.astimezone(zone).utcoffset())
                early, late = (middle, late) if is_before else (early, middle)
            yield late.replace(microsecond=0)

    def _is_open_at(self, change: datetime.datetime) -> bool:
        return self.is_open(change.timestamp() - 1) or self.is_open(change.timestamp() + 1)

    def _margin(self, now: float) -> datetime.timedelta:
        """Return the longest time by which the local clock may be set forward or back near ``now``.
        The result is 0 if the clock's offset from UTC is the same shortly before and shortly after
        ``now``."""
        zone = zoneinfo.ZoneInfo(self.zone)
        moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
        offsets = {(moment + by).astimezone(zone).utcoffset() for by in (-_AROUND, _AROUND)}
        return _CLOCK_CHANGE if len(offsets) > 1 else datetime.timedelta()

    def _local(self, now: float) -> datetime.datetime:
        """Return the local time as a datetime without a time zone. The reason is the day on which
        the clock is set back: one hour occurs twice, and with a time zone, croniter would open a
        window in both hours."""
        return datetime.datetime.fromtimestamp(now, zoneinfo.ZoneInfo(self.zone)).replace(
            tzinfo=None, fold=0)

    def _starts(self, local: datetime.datetime) -> 'croniter.croniter':
        """Return an iterator over the times of the cron expression. The iterator starts at the time
        ``local``, and can go forwards and backwards."""
        import croniter
        return croniter.croniter(self.cron, local)

    def _unix(self, local: datetime.datetime) -> float:
        return local.replace(tzinfo=zoneinfo.ZoneInfo(self.zone), fold=0).timestamp()


@dataclasses.dataclass(frozen=True, slots=True)
class Windows:
    """The maintenance windows of all aggregates. An aggregate without a window is always open to
    moves."""

    windows: tuple[Window, ...] = ()

    def of_aggregate(self, aggregate: str) -> tuple[Window, ...]:
        return tuple(w for w in self.windows if w.aggregate in (aggregate, EVERY))

    def is_open(self, aggregate: str, now: float) -> bool:
        """Return True if moves of the aggregate may be started, else False.

        :param now: Unix seconds
        """
        mine = self.of_aggregate(aggregate)
        return not mine or any(window.is_open(now) for window in mine)

    def opens_at(self, aggregate: str, now: float) -> float:
        """Return the time at which the next window of an aggregate opens. Times are in Unix
        seconds.

        :param aggregate: name of an aggregate that has a window
        """
        return min(window.opens_at(now) for window in self.of_aggregate(aggregate))


def may_start(conf: cfg.ConfigOpts, aggregate: str, now: datetime.datetime) -> bool:
    """Return True if ``[kronos] maintenance_window`` permits the start of moves of an aggregate
    now, else False.

    :raises ConfigurationError: a window is invalid
    """
    windows = parse(conf.kronos.maintenance_window)
    return windows.is_open(aggregate, now.timestamp())


def parse(lines: Iterable[str]) -> Windows:
    """Return the windows that lines ``AGGREGATE; CRON; MINUTES[; TIME ZONE]`` describe.

    :raises ConfigurationError: a line is invalid; the message lists all invalid lines
    """
    windows, wrong = [], []
    for line in lines:
        try:
            windows.append(_window(line))
        except ValueError as error:
            wrong.append(f'"{boundary.shown(line, _LONGEST_CRON)}": {boundary.shown(error)}')
    if wrong:
        raise exception.ConfigurationError(
            what='[kronos] maintenance_window', problem='; '.join(wrong),
            remedy=f'Write it as {FORM}, such as "gpu; 0 22 * * sat; 360; Europe/Berlin"')
    return Windows(tuple(windows))


def _window(line: str) -> Window:
    parts = [part.strip() for part in line.split(';')]
    if len(parts) not in (3, 4) or not all(parts):
        raise ValueError(f'does not have the form {FORM}')
    aggregate, cron, minutes, *zone = parts
    if not re.fullmatch('[0-9]{1,6}', minutes) or not 0 < int(minutes) <= LONGEST_MINUTES:
        raise ValueError(f'{minutes} is not a number of minutes from 1 to {LONGEST_MINUTES}')
    _check_cron(cron)
    _check_zone(*zone)
    return Window(aggregate, cron, int(minutes), *zone)


def _check_cron(cron: str) -> None:
    fields = cron.split()
    if (len(cron) > _LONGEST_CRON or len(fields) != 5 or not all(map(_FIELD.fullmatch, fields))
            or any(map(_RANDOM.search, fields))):
        raise ValueError(f'{cron} is not a cron expression of five fields')
    import croniter
    try:
        croniter.croniter(cron, _BEFORE, max_years_between_matches=_YEARS).get_next()
    except croniter.CroniterBadDateError as error:
        raise ValueError(f'{cron} never occurs: no year has such a day') from error
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f'{cron} is not a cron expression of five fields') from error


def _check_zone(zone: str = 'UTC') -> None:
    try:
        zoneinfo.ZoneInfo(zone)
    except (OSError, ValueError, LookupError) as error:  # a folder, a path, a name too long
        raise ValueError(f'there is no time zone {zone}') from error
