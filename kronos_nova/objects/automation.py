"""Automation levels and pauses of aggregates, and the moves that a level or a pause permits."""

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
"""Automation levels, in ascending order: each level permits more than the level before it."""

WITHOUT_APPROVAL = (OFF, OBSERVE)
"""Automation levels at which no plan is started, even if an operator has approved the plan."""

EVERY = '*'
"""Name that stands for all aggregates, in place of an aggregate's name."""

# Kinds of switches.
LEVEL = 'level'
REPAIR_LEVEL = 'repair_level'
PAUSE = 'pause'
OF_LEVELS = (LEVEL, REPAIR_LEVEL)
"""Kinds of switches that set an automation level. An aggregate has at most one switch of each
kind."""

# Purposes of plans.
BALANCE = 'balance'
REPAIR = 'repair'
DRAIN = 'drain'
MAKE_ROOM = 'make_room'
ORDERED = (DRAIN, MAKE_ROOM)
"""Purposes of plans that an operator has ordered. Plans with these purposes run at every automation
level."""

# When violated rules are repaired.
TOGETHER = 'together'
FIRST = 'first'
LAST = 'last'
NEVER = 'never'


def lower(one: str, other: str) -> str:
    """Return the lower of two automation levels, which is the level that permits less."""
    return min(one, other, key=LEVELS.index)


def repair_order(level: str, repairs: str) -> str:
    """Decide when repairs of an aggregate's violated rules are planned.

    :param level: level of the aggregate
    :param repairs: level of its repairs
    :returns: the first of these that applies:

        1. :data:`TOGETHER` if both levels are equal: one plan has the repairs and all other moves
        2. :data:`NEVER` if ``repairs`` is off
        3. :data:`FIRST` if ``repairs`` is the higher level: repairs have a plan of their own, which
           is made before other moves are planned
        4. :data:`LAST`: repairs have a plan of their own, which is made once no other moves are
           needed
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
    """A level or a pause that an operator has set for one aggregate, or for all aggregates.

    kind : LEVEL, REPAIR_LEVEL or PAUSE
    aggregate : name of the aggregate; :data:`EVERY` for all aggregates
    value : name of the level. For a pause, it is the command that set the pause: ``pause`` or
        ``stop``
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
        """A sentence for the log about the change that this switch makes. An empty ``value`` means
        that a pause has ended, or that the level of nova.conf applies again."""
        whose = 'all aggregates' if self.aggregate == EVERY else f'aggregate {self.aggregate}'
        if self.kind in OF_LEVELS:
            level = self.value or 'that of nova.conf again'
            what = 'level of rule repairs' if self.kind == REPAIR_LEVEL else 'level'
            return f'The {what} of {whose} is {level}, set by {self.set_by}{self.why}'
        return f'{_DONE[self.value]} {whose}, by {self.set_by}{self.why}'

    @property
    def why(self) -> str:
        """The operator's reason in brackets, to be added to the end of a sentence. The text begins
        with a space. It is '' if the operator gave no reason."""
        return f' ({self.reason})' if self.reason else ''


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The automation levels that nova.conf sets.

    level : level of each aggregate that is not in ``levels``
    levels : {aggregate: level of the aggregate}
    ceiling : highest level that takes effect; if a command sets a higher level, ``ceiling`` applies
    repairs : level of repairs of violated rules; None if repairs have the level of their aggregate
    """

    level: str = OBSERVE
    levels: Mapping[str, str] = field(default_factory=dict)
    ceiling: str = AUTO
    repairs: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Switches:
    """The levels and pauses that are in force. An aggregate has at most one level, at most one
    level for repairs, and any number of pauses."""

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
        """Return the pauses and stops of all aggregates, the oldest first."""
        return sorted((each for found in self.pauses.values() for each in found),
                      key=lambda each: each.set_at)

    def pauses_of(self, aggregate: str) -> list[Switch]:
        """Return the pauses and stops that prevent the start of moves of an aggregate. A stop is a
        pause whose command has also ended the moves and the approved plans.

        Switches for all aggregates come before switches for this aggregate, then stops before
        pauses, then older switches before newer switches."""
        found = (*self.pauses.get(EVERY, ()), *self.pauses.get(aggregate, ()))
        return sorted(found, key=lambda each: (
            each.aggregate != EVERY, each.value != 'stop', each.set_at))

    def pause(self, aggregate: str) -> Switch | None:
        """Return the first switch of :meth:`pauses_of`; None if no pause or stop applies to the
        aggregate."""
        return next(iter(self.pauses_of(aggregate)), None)

    def paused_by(self, aggregate: str) -> str | None:
        """Return a text that lists the pauses and stops of an aggregate, each with its user and
        reason. Return None if there is no pause or stop."""
        return '; '.join(map(str, self.pauses_of(aggregate))) or None

    def level(self, aggregate: str, defaults: Defaults, purpose: str = BALANCE) -> str:
        """Return the automation level that is in force for an aggregate. If ``purpose`` is REPAIR,
        return the level for repairs of violated rules. No level is above the ceiling of nova.conf.

        The first of these levels that is set applies:

        1. the level that a command set for the aggregate
        2. the level that a command set for all aggregates; if nova.conf sets a lower level for this
           aggregate, the lower level
        3. the level in nova.conf

        Repairs have the level of their aggregate unless nova.conf or a command sets a level for
        repairs. In an aggregate with the level ``off`` nothing is repaired.
        """
        if purpose == REPAIR:
            repairs = self.own_repair_level(aggregate, defaults)
            return self.level(aggregate, defaults) if repairs is None else repairs
        own = self.levels.get(aggregate)
        every = self.levels.get(EVERY)
        if own is not None:
            found = own.value
        elif every is not None:
            found = lower(every.value, defaults.levels.get(aggregate, AUTO))
        else:
            found = defaults.levels.get(aggregate, defaults.level)
        return lower(found, defaults.ceiling)

    def own_repair_level(self, aggregate: str, defaults: Defaults) -> str | None:
        """Return the level that is in force for repairs alone; None if repairs have the level of
        their aggregate."""
        set_by_command = self.repair_levels.get(aggregate) or self.repair_levels.get(EVERY)
        found = set_by_command.value if set_by_command else defaults.repairs
        if found is None or self.level(aggregate, defaults) == OFF:
            return None
        return lower(found, defaults.ceiling)

    def planning_level(self, aggregate: str, defaults: Defaults, purpose: str = BALANCE) -> str:
        """Return the level at which plans of an aggregate are made now. While the aggregate is
        paused, the level is at most ``observe``."""
        level = self.level(aggregate, defaults, purpose)
        return lower(level, OBSERVE) if self.pause(aggregate) else level

    def repair_order(self, aggregate: str, defaults: Defaults) -> str:
        """Return when repairs of an aggregate's violated rules are planned, at its present levels.
        The result is that of the function :func:`repair_order`."""
        return repair_order(self.planning_level(aggregate, defaults),
                            self.planning_level(aggregate, defaults, REPAIR))

    def hold(self, aggregate: str) -> str | None:
        """Return the reason why no move of the aggregate may start at present; None if moves may
        start. Moves wait while the aggregate is paused."""
        pause = self.pause(aggregate)
        return f'Kronos is paused: {pause}' if pause else None

    def refusal(self, aggregate: str, defaults: Defaults, purpose: str,
                is_approved: bool) -> str | None:
        """Return the reason why a plan may not start moves at the present automation level. Return
        None if the plan may start moves. Pauses are ignored, because a paused plan only waits.

        Drains and moves that make room for an operator's request run at every level. Other plans
        run at ``auto``, and at ``approve`` once an operator has approved the plan.
        """
        level = self.level(aggregate, defaults, purpose)
        if purpose in ORDERED or level == AUTO or (level == APPROVE and is_approved):
            return None
        whose = f'rule repairs in {aggregate}' if purpose == REPAIR else aggregate
        return f'the level of {whose} is {level} now'
