"""When moves may be made: maintenance windows."""

import dataclasses
import datetime
import zoneinfo

import croniter

from kronos_nova import exception

EVERY = '*'
FORM = 'AGGREGATE; CRON; MINUTES[; TIME ZONE]'


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """A time that comes again: ``minutes`` from every time that the cron expression names."""

    aggregate: str
    cron: str
    minutes: int
    zone: str = 'UTC'

    def is_open(self, now: float) -> bool:
        """:param now: Unix seconds"""
        # The last start that is not after now; croniter looks for one strictly before.
        moment = self._local(now) + datetime.timedelta(seconds=1)
        start = croniter.croniter(self.cron, moment).get_prev(datetime.datetime)
        return now < start.timestamp() + self.minutes * 60

    def opens_at(self, now: float) -> float:
        """When it opens next; Unix seconds."""
        cron = croniter.croniter(self.cron, self._local(now))
        return cron.get_next(datetime.datetime).timestamp()

    def _local(self, now):
        return datetime.datetime.fromtimestamp(now, zoneinfo.ZoneInfo(self.zone))


@dataclasses.dataclass(frozen=True, slots=True)
class Windows:
    """All windows; an aggregate that none names is always open."""

    windows: tuple[Window, ...] = ()

    def of(self, aggregate: str) -> tuple[Window, ...]:
        return tuple(w for w in self.windows if w.aggregate in (aggregate, EVERY))

    def is_open(self, aggregate: str, now: float) -> bool:
        """Whether moves of the aggregate may be started.

        :param now: Unix seconds
        """
        mine = self.of(aggregate)
        return not mine or any(window.is_open(now) for window in mine)

    def opens_at(self, aggregate: str, now: float) -> float:
        """When the next of its windows opens; Unix seconds."""
        return min(window.opens_at(now) for window in self.of(aggregate))


def may_start(conf, aggregate: str, now: datetime.datetime) -> bool:
    """Whether moves of an aggregate may be started, as the configuration says by now.

    :param now: UTC without a zone
    :raises ConfigurationError: some windows are wrong
    """
    windows = parse(conf.kronos.maintenance_window)
    return windows.is_open(aggregate, now.replace(tzinfo=datetime.UTC).timestamp())


def parse(lines) -> Windows:
    """Read ``AGGREGATE; CRON; MINUTES[; TIME ZONE]`` lines.

    :raises ConfigurationError: some are wrong; the message names each of them
    """
    windows, wrong = [], []
    for line in lines:
        try:
            windows.append(_window(line))
        except (ValueError, KeyError, zoneinfo.ZoneInfoNotFoundError) as error:
            wrong.append(f'"{line}": {error}')
    if wrong:
        raise exception.ConfigurationError(
            what='[kronos] maintenance_window', problem='; '.join(wrong),
            remedy=f'Write it as {FORM}, such as "gpu; 0 22 * * sat; 360; Europe/Berlin"')
    return Windows(tuple(windows))


def _window(line):
    parts = [part.strip() for part in line.split(';')]
    if len(parts) not in (3, 4) or not all(parts):
        raise ValueError(f'is not {FORM}')
    aggregate, cron, minutes, *zone = parts
    if not minutes.isdigit() or not int(minutes):
        raise ValueError(f'{minutes} is not a number of minutes')
    if len(cron.split()) != 5 or not croniter.croniter.is_valid(cron):
        raise ValueError(f'{cron} is not a cron expression of five fields')
    zoneinfo.ZoneInfo(*zone or ['UTC'])
    return Window(aggregate, cron, int(minutes), *zone)
