"""Permissions to start moves, which are checked before each move."""

import collections
import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_config import cfg

from kronos_nova import exception
from kronos_nova.db import drains
from kronos_nova.db import holds
from kronos_nova.db import switches
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import Session
from kronos_nova.objects import automation
from kronos_nova.objects import hold
from kronos_nova.objects.automation import Defaults
from kronos_nova.objects.automation import Switches
from kronos_nova.objects.plan import RunningPlan


class Permits:
    """A checker of whether moves of running plans are permitted to start. The checker uses levels,
    pauses, stops, maintenance windows, drains and requests for room.

    :param database: the control database
    :param defaults: returns the levels that nova.conf sets
    :param is_open: called with the name of an aggregate and a time; returns whether a maintenance
        window of the aggregate is open at this time
    :param hold: called with the name of an aggregate; returns the reason of a stop that is in force
        for the aggregate but not in the database yet; None if there is no such stop
    """

    def __init__(self, database: Database, defaults: Callable[[], Defaults],
                 is_open: Callable[[str, datetime.datetime], bool],
                 hold: Callable[[str], str | None] = lambda _aggregate: None):
        self._database = database
        self._defaults = defaults
        self._is_open = is_open
        self._hold_here = hold

    def sort(self, running: Iterable[RunningPlan],
             now: datetime.datetime) -> tuple[list[str], dict[str, str]]:
        """Divide the running plans into three sorts: plans whose moves may start now, plans whose
        moves can never start again, and plans whose moves have to wait.

        :returns: (uuids of the plans of the first sort, {uuid of a plan of the second sort:
            reason}); the result does not have the plans of the third sort
        :raises ConfigurationError, cfg.Error: nova.conf has an invalid level or window
        """
        with self._database.reader() as session:
            found, ordered = switches.read(session), _ordered(session)
        going, forbidden = [], {}
        for plan in running:
            if why := self._refusal(found, ordered, plan):
                forbidden[plan.uuid] = why
            elif not self._hold(found, plan, now):
                going.append(plan.uuid)
        return going, forbidden

    def why_not(self, session: Session, plan: RunningPlan, emptied: str | None,
                now: datetime.datetime) -> str | None:
        """Return the reason why a move of a plan is not permitted to start now; None if the move is
        permitted. The database is read in the transaction of ``session``.

        :param emptied: the host that the move leaves; None if the move only makes room for other
            moves of the plan
        """
        found, ordered = switches.read(session), _ordered(session)
        try:
            return (self._refusal(found, ordered, plan) or self._hold(found, plan, now) or
                    _opened(ordered.draining, plan, emptied))
        except (exception.ConfigurationError, cfg.Error) as error:  # oslo.config checks values late
            return str(error)

    def _refusal(self, found: Switches, ordered: '_Ordered', plan: RunningPlan) -> str | None:
        draining = ordered.draining
        if plan.purpose == automation.MAKE_ROOM and plan.uuid not in ordered.room:
            return 'the request for the room that it makes has ended'
        if plan.purpose == automation.DRAIN and plan.aggregate not in draining:
            return 'no host of its aggregate is being drained any more'
        if plan.purpose != automation.DRAIN and plan.aggregate in draining:
            return f'{draining[plan.aggregate][0]} is being drained, which goes first'
        return found.refusal(plan.aggregate, self._defaults(), plan.purpose, plan.is_approved)

    def _hold(self, found: Switches, plan: RunningPlan, now: datetime.datetime) -> str | None:
        why = self._hold_here(plan.aggregate) or found.hold(plan.aggregate)
        # Moves that an operator has requested do not wait for a window.
        if why is None and plan.purpose not in automation.ORDERED and not self._is_open(
                plan.aggregate, now):
            return 'outside the maintenance windows of its aggregate'
        return why


@dataclasses.dataclass(frozen=True, slots=True)
class _Ordered:
    """The requests of operators that are in force. There are two kinds: drains, and requests to
    make room for new servers.

    draining : {aggregate: names of its hosts that are being drained}
    room : uuids of the plans that make room for new servers and whose request is still in force
    """

    draining: Mapping[str, Sequence[str]]
    room: Collection[str]


def _ordered(session: Session) -> _Ordered:
    draining = collections.defaultdict(list)
    for drain in drains.read(session):
        draining[drain.aggregate].append(drain.host)
    return _Ordered(draining, {each.plan_uuid for each in holds.read(session, hold.WANTED)})


def _opened(draining: Mapping[str, Sequence[str]], plan: RunningPlan,
            emptied: str | None) -> str | None:
    if (plan.purpose == automation.DRAIN and emptied is not None
            and emptied not in draining[plan.aggregate]):
        return f'{emptied} is not drained any more'
    return None
