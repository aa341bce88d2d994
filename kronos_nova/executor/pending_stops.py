"""Operators' orders to stop moves (stops) that are not in the control database yet.

While the control database does not answer, ``kronos-manage stop`` writes a stop into a file of the
state directory, and casts the stop to every executor. A worker that finds the stop starts no move.
The worker writes the stop into the database as soon as the database answers. From then on the stop
is like any other.
"""

import dataclasses
import datetime
import json
import os
import threading
from collections.abc import Mapping

from oslo_config import cfg
from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova.db import engine as db_engine
from kronos_nova.db import stopping
from kronos_nova.db.engine import Database
from kronos_nova.objects import automation
from kronos_nova.objects.automation import Switch

LOG = logging.getLogger(__name__)

FILE = 'kronos.stop'
"""Name (no unit) of the file of stops, below ``state_path``."""

UNREADABLE = 'a file that cannot be read'
"""Name (no unit) that is shown in place of the user who set a stop, if the file of stops is
damaged. A damaged file stops the moves of all aggregates."""


@dataclasses.dataclass(frozen=True, slots=True)
class PendingStop:
    """A stop that an operator has set while the control database did not answer. It is written to
    the database later.

    switch : Switch of kind PAUSE
    let_finish : True if moves that were already requested from Nova may continue to their end;
        False if they are aborted
    """

    switch: Switch
    let_finish: bool = False

    def to_json(self) -> dict:
        """Return the JSON object of the stop, for the file and the message."""
        return {'aggregate': self.switch.aggregate, 'set_by': self.switch.set_by,
                'set_at': self.switch.set_at.isoformat(), 'reason': self.switch.reason,
                'let_finish': self.let_finish}

    @classmethod
    def from_json(cls, found: object) -> 'PendingStop':
        """Create a stop from a JSON object.

        :raises OutOfBounds: the object is not a valid stop
        """
        if not isinstance(found, Mapping):
            raise boundary.OutOfBounds(what="an operator's order to stop moves",
                                       problem='must be a JSON object')
        try:
            set_at = clock.parsed(str(found.get('set_at')))
        except ValueError:
            raise boundary.OutOfBounds(what='set_at', problem='must be a time') from None
        return cls(Switch(
            kind=automation.PAUSE, value='stop', set_at=set_at,
            aggregate=boundary.storable(found.get('aggregate'), 'aggregate'),
            set_by=boundary.storable(found.get('set_by'), 'set_by'),
            reason=boundary.remark(found.get('reason') or '')), bool(found.get('let_finish')))

    @property
    def sentence(self) -> str:
        """Describe the stop in a sentence, for logs and commands."""
        whose = ('all aggregates' if self.switch.aggregate == automation.EVERY
                 else f'aggregate {self.switch.aggregate}')
        return f'Stop of {whose}: {self.switch}'


class PendingStops:
    """The stops that are in force on one host and not in the control database yet. Each stop is in
    the file of the host, or this process has received the stop by message.

    :param path: path of the file; None if there is no state directory
    """

    def __init__(self, path: str | None = None):
        self.path = path
        self._sent: dict[str, PendingStop] = {}
        self._lock = threading.Lock()

    def read(self) -> dict[str, PendingStop]:
        """Return {name of an aggregate, or EVERY for all aggregates: stop}. If the file cannot be
        read, a stop of all aggregates is returned."""
        return self._sent | self._of_file()

    def hold(self, aggregate: str) -> str | None:
        """Return the reason why moves of an aggregate have to wait. Return None if no stop is in
        force for the aggregate."""
        found = self.read()
        stop = found.get(automation.EVERY) or found.get(aggregate)
        return f'Kronos is stopped: {stop.switch}' if stop else None

    def add(self, stop: PendingStop) -> None:
        """Save a stop in the file. The stop is in force in this process even if the file cannot be
        written.

        :raises OSError: the file cannot be written
        """
        with self._lock:
            self._sent[stop.switch.aggregate] = stop
            self._write(self._of_file() | {stop.switch.aggregate: stop})

    def remove(self, aggregate: str, set_by: str | None = None) -> list[PendingStop]:
        """Remove the stop of an aggregate. If ``aggregate`` is EVERY, remove all stops.

        :param set_by: name of the user whose stops are removed; None for the stops of all users
        :returns: the removed stops
        :raises OSError: the file cannot be written
        """
        with self._lock:
            found = self.read()
            gone = [name for name, stop in found.items()
                    if aggregate in (automation.EVERY, name)
                    and set_by in (None, stop.switch.set_by)]
            for name in gone:
                self._sent.pop(name, None)
            left = {name: stop for name, stop in self._of_file().items() if name not in gone}
            if gone:
                self._write(left)
            return [found[name] for name in gone]

    def _of_file(self) -> dict[str, PendingStop]:
        if self.path is None:
            return {}
        try:
            with open(self.path, encoding='utf-8') as file:
                found = [PendingStop.from_json(each) for each in json.load(file)]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, boundary.OutOfBounds):
            return {automation.EVERY: self._unreadable()}
        return {stop.switch.aggregate: stop for stop in found}

    def _unreadable(self) -> PendingStop:
        try:
            changed_at = os.stat(self.path or '').st_mtime
        except OSError:
            changed_at = 0.0
        return PendingStop(Switch(
            kind=automation.PAUSE, aggregate=automation.EVERY, value='stop', set_by=UNREADABLE,
            set_at=datetime.datetime.fromtimestamp(changed_at, datetime.UTC)))

    def _write(self, stops: Mapping[str, PendingStop]) -> None:
        if self.path is None:
            return
        if not stops:
            if os.path.exists(self.path):
                os.unlink(self.path)
            return
        new = f'{self.path}.{os.getpid()}'
        with open(new, 'w', encoding='utf-8') as file:
            json.dump([stop.to_json() for stop in stops.values()], file)
        os.replace(new, self.path)


def for_conf(conf: cfg.ConfigOpts) -> PendingStops:
    """Return the PendingStops of this host."""
    return PendingStops(db_engine.state_file(conf, FILE) if conf.state_path else None)


def settle(stops: PendingStops, database: Database, who: str) -> None:
    """Write the stops into the control database, and remove them from ``stops`` and from the file.

    :param who: name of the worker, for the journal
    :raises DBError: the database does not answer; the stops stay in force
    """
    for aggregate, stop in stops.read().items():
        writer = stopping.Stopping(database, who)
        if not writer.knows(stop.switch):
            writer.stop(stop.switch, stop.let_finish)
            LOG.warning('%s. The order to stop moves was given while the control database did not '
                        'answer, and is now recorded in the database.', stop.sentence)
        try:
            stops.remove(aggregate)
        except OSError as error:
            LOG.error('The file %s, which records an order to stop moves, cannot be removed: %s. '
                      'The executor on this host starts no move while the file exists; remove the '
                      'file.', stops.path, error)
