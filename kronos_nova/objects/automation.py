"""Levels of automation and pauses, and what they permit."""

import dataclasses
import datetime
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import field

OFF = 'off'
OBSERVE = 'observe'
APPROVE = 'approve'
AUTO = 'auto'
LEVELS = (OFF, OBSERVE, APPROVE, AUTO)
"""Levels of automation, each of which permits more than the one before."""

WITHOUT_APPROVAL = (OFF, OBSERVE)
"""Levels at which no plan is started, approved or not."""

EVERY = '*'
"""Stands for all aggregates in place of an aggregate's name."""

# Kinds of switches.
LEVEL = 'level'
REPAIR_LEVEL = 'repair_level'
PAUSE = 'pause'
OF_LEVELS = (LEVEL, REPAIR_LEVEL)
"""Kinds of switches that set a level. An aggregate has at most one of each."""

# Purposes of plans.
BALANCE = 'balance'
REPAIR = 'repair'
DRAIN = 'drain'
MAKE_ROOM = 'make_room'
ORDERED = (DRAIN, MAKE_ROOM)
"""Purposes of plans that an operator has ordered: they run at every level."""

# When violated rules are repaired.
TOGETHER = 'together'
FIRST = 'first'
LAST = 'last'
NEVER = 'never'


def lower(one: str, other: str) -> str:
    """Return the one of two levels that permits less."""
    return min(one, other, key=LEVELS.index)


def repair_order(level: str, repairs: str) -> str:
    """Return when violated rules are repaired. If both levels are equal, it is in the same plan as
    all other moves. Otherwise it is in a plan of their own, and of the two plans the one with the
    higher level is made first.

    :param level: level of the aggregate
    :param repairs: level of its repairs
    """
    if level == repairs:
        return TOGETHER
    if repairs == OFF:
        return NEVER
    return FIRST if lower(level, repairs) == level else LAST


# Words of the log for the values of a pause.
_DONE = {'pause': 'Paused', 'stop': 'Stopped', '': 'Resumed'}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A level or a pause that an operator has set, for one aggregate or for :data:`EVERY` one.

    kind : LEVEL, REPAIR_LEVEL or PAUSE
    value : name of the level; for a pause the command, ``pause`` or ``stop``
    """

    kind: str
    aggregate: str
    value: str
    set_at: datetime.datetime
    set_by: str
    reason: str = ''

    def __str__(self) -> str:
        return f'{self.value} by {self.set_by}{self.why}'

    @property
    def sentence(self) -> str:
        """The change as a sentence for the log. With an empty ``value`` it says that a pause ended,
        or that the level is that of nova.conf again."""
        whose = 'all aggregates' if self.aggregate == EVERY else f'aggregate {self.aggregate}'
        if self.kind in OF_LEVELS:
            level = self.value or 'that of nova.conf again'
            what = 'level of rule repairs' if self.kind == REPAIR_LEVEL else 'level'
            return f'The {what} of {whose} is {level}, set by {self.set_by}{self.why}'
        return f'{_DONE[self.value]} {whose}, by {self.set_by}{self.why}'

    @property
    def why(self) -> str:
        """The reason in brackets after a space, as the end of a sentence; '' where no reason was
        given."""
        return f' ({self.reason})' if self.reason else ''


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The automation levels that nova.conf sets.

    level : level of every aggregate that is not in ``levels``
    levels : aggregate to its level
    ceiling : the highest level that takes effect; a command that sets a higher level has the effect
        of this one
    repairs : level of repairs of violated rules; None for the level of their aggregate
    """

    level: str = OBSERVE
    levels: Mapping[str, str] = field(default_factory=dict)
    ceiling: str = AUTO
    repairs: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Switches:
    """The switches in force. An aggregate has one level and any number of pauses."""

    levels: Mapping[str, Switch] = field(default_factory=dict)
    pauses: Mapping[str, tuple[Switch, ...]] = field(default_factory=dict)
    repair_levels: Mapping[str, Switch] = field(default_factory=dict)

    @classmethod
    def from_switches(cls, switches: Iterable[Switch]) -> 'Switches':
        levels: dict[str, dict[str, Switch]] = {kind: {} for kind in OF_LEVELS}
        pauses: dict[str, list[Switch]] = {}
        for switch in switches:
            if switch.kind in OF_LEVELS:
                levels[switch.kind][switch.aggregate] = switch
            else:
                pauses.setdefault(switch.aggregate, []).append(switch)
        return cls(levels=levels[LEVEL], repair_levels=levels[REPAIR_LEVEL],
                   pauses={name: tuple(found) for name, found in pauses.items()})

    def all_pauses(self) -> list[Switch]:
        """Return every pause and stop, the oldest first."""
        return sorted((each for found in self.pauses.values() for each in found),
                      key=lambda each: each.set_at)

    def pauses_of(self, aggregate: str) -> list[Switch]:
        """Return the pauses and stops that keep moves of an aggregate from being started. Those of
        all aggregates come first, then stops before pauses, then the oldest."""
        found = (*self.pauses.get(EVERY, ()), *self.pauses.get(aggregate, ()))
        return sorted(found, key=lambda each: (
            each.aggregate != EVERY, each.value != 'stop', each.set_at))

    def pause(self, aggregate: str) -> Switch | None:
        """Return the first of :meth:`pauses_of`; None where moves may be started."""
        return next(iter(self.pauses_of(aggregate)), None)

    def paused_by(self, aggregate: str) -> str | None:
        """Return a text with every pause and stop of an aggregate, each with its user and reason;
        None where there is none."""
        return '; '.join(map(str, self.pauses_of(aggregate))) or None

    def level(self, aggregate: str, defaults: Defaults, purpose: str = BALANCE) -> str:
        """Return the level of an aggregate, or with REPAIR as ``purpose`` the level of its repairs
        of violated rules. It is never above the ceiling of nova.conf.

        A level set for the aggregate takes precedence over one set for all aggregates, and this
        over nova.conf. But a level set for all does not raise an aggregate above its own level in
        nova.conf.

        Repairs have the level of their aggregate unless nova.conf or a command sets one for them.
        In an aggregate with the level ``off`` nothing is repaired.
        """
        if purpose == REPAIR:
            return self._repair_level(aggregate, defaults)
        own = self.levels.get(aggregate)
        every = self.levels.get(EVERY)
        if own is not None:
            found = own.value
        elif every is not None:
            found = lower(every.value, defaults.levels.get(aggregate, AUTO))
        else:
            found = defaults.levels.get(aggregate, defaults.level)
        return lower(found, defaults.ceiling)

    def _repair_level(self, aggregate: str, defaults: Defaults) -> str:
        level = self.level(aggregate, defaults)
        set_by_command = self.repair_levels.get(aggregate) or self.repair_levels.get(EVERY)
        found = set_by_command.value if set_by_command else defaults.repairs
        if found is None or level == OFF:
            return level
        return lower(found, defaults.ceiling)

    def planning_level(self, aggregate: str, defaults: Defaults, purpose: str = BALANCE) -> str:
        """Return the level at which plans are made: at most ``observe`` while the aggregate is
        paused."""
        level = self.level(aggregate, defaults, purpose)
        return lower(level, OBSERVE) if self.pause(aggregate) else level

    def repair_order(self, aggregate: str, defaults: Defaults) -> str:
        """Return when violated rules of an aggregate are repaired now; see :func:`repair_order`."""
        return repair_order(self.planning_level(aggregate, defaults),
                            self.planning_level(aggregate, defaults, REPAIR))

    def hold(self, aggregate: str) -> str | None:
        """Return the reason why moves of all plans of the aggregate have to wait; None if they need
        not."""
        pause = self.pause(aggregate)
        return f'Kronos is paused: {pause}' if pause else None

    def refusal(self, aggregate: str, defaults: Defaults, purpose: str,
                is_approved: bool) -> str | None:
        """Return the reason why no further moves of a plan may be started, now or later; None if
        they may be.

        Drains and moves that make ordered room run at every level. Other plans need an approval
        below ``auto``, and do not run below ``approve``.
        """
        level = self.level(aggregate, defaults, purpose)
        if purpose in ORDERED or level == AUTO or (level == APPROVE and is_approved):
            return None
        whose = f'rule repairs in {aggregate}' if purpose == REPAIR else aggregate
        return f'the level of {whose} is {level} now'
