"""A feed of events for any number of listeners. One thread reads the database for all listeners.

While there are listeners, the thread reads all objects of the source once a second. For each object
that has changed, the thread makes an event and keeps the event in memory for some time. Each
listener has a position among the kept events, so that a slow listener does not delay the others. If
the next event of a listener is no longer kept, the listener gets the whole present state.
"""

import collections
import datetime
import itertools
import secrets
import threading
import time
import weakref
from collections.abc import Callable
from collections.abc import Mapping
from typing import Protocol

import msgspec
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import clock
from kronos_nova import exception

LOG = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Seconds between two queries of the control database for new events. Raised, the web page shows
changes later; lowered, the database has more queries. Chosen because people hardly notice a delay
of a second."""

HEARTBEAT_SECONDS = 10.0
"""Seconds without an event after which an empty message is sent on an event stream. The message
keeps proxies from closing the connection, and shows whether the client still exists. Raised,
proxies close connections without events, some after half a minute; lowered, more empty messages are
sent. Chosen well below half a minute."""

LONGEST_SECONDS = 600.0
"""Maximum seconds for which one event stream stays open. The client then has to connect again.
Raised, a client whose token was revoked receives events for longer; lowered, clients connect more
often. Not measured."""

KEPT = datetime.timedelta(minutes=10)
"""Time (10 minutes) for which an object, such as a plan, is still sent to new listeners after its
end. Raised, a new listener gets more objects; lowered, a listener that connects again may not learn
that an object has ended. Chosen to cover the largest difference between the clocks of controllers,
and the longest absence of a listener that connects again."""

OVERLAP = datetime.timedelta(minutes=1)
"""Time (1 minute) before the previous reading that the next reading covers again. Objects that
ended in this minute are read a second time, because the clocks of controllers differ. Raised, more
objects are read twice; lowered, an end that was recorded with a slow clock is missed. Not measured.
"""

MOST_KEPT = 2 ** 24
"""Maximum number of bytes of past events in memory; this is about ten thousand events. A client
that connects again gets the events that it has missed, or the whole state if these events are no
longer in memory. Raised, a process takes more memory; lowered, clients have to get the whole state
more often. Not measured."""

MOST_GIVEN = 2 ** 16
"""Size, as a number of bytes, at which a chunk of an event stream is complete. Waiting events are
joined to a chunk until the chunk has at least this size, or until no event waits. The chunk is then
sent to the WSGI server. Raised, a process needs more memory for each slow client; lowered, the
server is called more often for the same events. Not measured."""

FIRST_LOOK_SECONDS = 20.0
"""Maximum seconds that the first client of an event stream waits until the events are read from the
control database for the first time. After this time, the client gets an error. Raised, the error
comes later if the database is down; lowered, a slow database counts as down. Chosen longer than the
time for which a failed database transaction is tried again."""

IDLE_SECONDS = 30.0
"""Seconds for which the control database is still read for new events after the last client has
left. Raised, the database has needless queries for longer; lowered, a web page that is loaded again
has to wait until the events are read. Not measured."""

RETRY_MILLISECONDS = 2000
"""Milliseconds that a web page waits before it connects again to a lost event stream. Raised, the
page shows old data for longer; lowered, a service that restarts gets the connections of all pages
at nearly the same time. Not measured."""

SYNCED, RESET, STALE = 'synced', 'reset', 'stale'

Key = tuple[str, str]


class Source(Protocol):
    """The protocol of a source of events. A key is the pair (type of the event, id of the
    object)."""

    def read(self, since: datetime.datetime) -> Mapping[Key, object]:
        """Return {key: value} of all present objects, and of the objects that have ended since
        ``since``. If the value of an object differs between two calls, the object has changed."""

    def tell(self, changed: Mapping[Key, object]) -> Mapping[Key, msgspec.Struct]:
        """Return {key: event} of the objects in ``changed``.

        :param changed: {key: value} of the objects whose values have changed
        """


class Feed:
    """A reader of events that passes the events to any number of listeners.

    :param utcnow: function that returns the time
    :param most_listeners: maximum number of listeners at a time
    :param pause: seconds between two readings of the source
    """

    def __init__(self, source: Source, utcnow: Callable[[], datetime.datetime],
                 most_listeners: int, pause: float = LOOK_SECONDS):
        self.changed = threading.Condition()
        self.is_closed = False
        self._source = source
        self._utcnow = utcnow
        self._most_listeners = most_listeners
        self._pause = pause
        self._listeners: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._begin()

    def _begin(self) -> None:
        """Drop all stored events, and give the feed a new name. The id of an event contains the
        name of the feed, so that ids of dropped events are no longer valid."""
        self._name = secrets.token_hex(4)
        self._looked_at: datetime.datetime | None = None
        self._error: Exception | None = None
        self._is_stale = False
        self._now: dict[Key, object] = {}
        self._frames: dict[Key, bytes] = {}
        self._seen_at: dict[Key, datetime.datetime] = {}
        self._events: collections.deque[bytes] = collections.deque()
        self._size = 0
        self._end = 0   # the number of the next event

    # -- called by listeners

    def listen(self, last_id: str | None, seconds: float, who: str = '') -> 'Stream':
        """Make a stream of events for a listener.

        :param last_id: id of the last event that the listener received before it connected again;
            None for a new listener
        :param seconds: maximum duration of the stream
        :param who: name of the user; see :meth:`_make_room`
        :raises TooManyListeners: the maximum number of listeners is reached, and no other stream
            may be ended
        :raises DBError: the control database does not answer
        """
        with self.changed:
            self._make_room(who)
            if self._thread is None:
                self._begin()
                self._thread = threading.Thread(target=self._watch, daemon=True, name='events')
                self._thread.start()
            self.changed.wait_for(lambda: self._looked_at or self._error, FIRST_LOOK_SECONDS)
            if self._looked_at is None:
                raise self._error or db_exc.DBError('the control database is slow to answer')
            # Other listeners may have been added, because waiting releases the lock.
            self._make_room(who)
            made = Stream(self, last_id, min(seconds, LONGEST_SECONDS), who)
            self._listeners.add(made)
            return made

    def _make_room(self, who: str) -> None:
        """Make room for a stream of the user ``who``. If the maximum number of listeners is
        reached, end a stream of the user with the most streams. A stream is ended only if this user
        has at least two streams more than ``who``.

        :raises TooManyListeners: the maximum number of listeners is reached, and no stream may be
            ended
        """
        if len(self._listeners) < self._most_listeners:
            return
        counts = collections.Counter(each.who for each in self._listeners)
        [(fullest, most)] = counts.most_common(1)
        if most < counts[who] + 2:
            raise exception.TooManyListeners(most=self._most_listeners)
        min((each for each in self._listeners if each.who == fullest),
            key=lambda each: each.ends_at).close()
        self.changed.notify_all()

    def leave(self, stream: 'Stream') -> None:
        with self.changed:
            self._listeners.discard(stream)

    def close(self) -> None:
        """End all streams, and the thread that reads the database."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()

    def place_of(self, last_id: str | None) -> tuple[int, list[bytes]]:
        """Return where the stream of a listener begins, as (number of the first stored event to
        send, list of events to send before this event). The caller has to hold the lock of
        ``changed``.

        If the listener connects again, and all events that the listener missed are still stored,
        the number is that of the first missed event, and the list is empty. Otherwise the list
        describes the whole present state, and the number is that of the next new event.

        :param last_id: id of the last event that the listener received; None for a new listener
        """
        name, number, at = _parsed(last_id)
        if name == self._name and self._is_kept(number + 1):
            return number + 1, []
        looked_at = self._looked_at
        lost = last_id is not None and (
            at is None or looked_at is None or looked_at - at > KEPT or at > looked_at + KEPT)
        # Only the last event has an id, so that a listener whose connection ends earlier gets all
        # events again.
        last = self._id(self._end - 1) + self._moment(STALE if self._is_stale else SYNCED)
        return self._end, [*[self._moment(RESET)] * lost, *self._frames.values(), last]

    def after(self, number: int) -> tuple[int, list[bytes]]:
        """Return the events from ``number`` on, as (number of the next new event, list of the
        events). If some of these events are no longer stored, the list describes the whole present
        state instead. The caller has to hold the lock of ``changed``."""
        if not self._is_kept(number):
            return self.place_of('lost')
        first = self._end - len(self._events)
        return self._end, list(itertools.islice(self._events, number - first, None))

    def _is_kept(self, number: int) -> bool:
        return self._end - len(self._events) <= number <= self._end

    # -- the thread that reads

    def _watch(self) -> None:
        idle_since: float | None = None
        while True:
            self._poll()
            with self.changed:
                self.changed.notify_all()
                idle_since = None if self._listeners else idle_since or time.monotonic()
                is_over = idle_since and time.monotonic() - idle_since > IDLE_SECONDS
                if (is_over or self._looked_at is None or
                        self.changed.wait_for(lambda: self.is_closed, self._pause)):
                    self._thread = None
                    return

    def _poll(self) -> None:
        now, since = self._utcnow(), (self._looked_at or self._utcnow() - KEPT) - OVERLAP
        try:
            found = self._source.read(since)
            changed = {key: value for key, value in found.items() if self._now.get(key) != value}
            payloads = self._source.tell(changed) if changed else {}
            with self.changed:
                self._update(now, found, payloads)
        except Exception as error:
            # Any error ends the streams, because silence would look like a cloud without events.
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        with self.changed:
            self._error = error
            if self.is_closed or self._is_stale or self._looked_at is None:
                return
            LOG.exception('The event streams of the API are interrupted, because events cannot be '
                          'read')
            self._is_stale = True
            self._add(self._moment(STALE))

    def _update(self, now: datetime.datetime, found: Mapping[Key, object],
                payloads: Mapping[Key, msgspec.Struct]) -> None:
        was_stale, self._looked_at = self._is_stale, now
        self._is_stale, self._error = False, None
        self._now.update(found)
        self._seen_at.update(dict.fromkeys(found, now))
        for key, value in payloads.items():
            self._frames[key] = _frame(key[0], value)
            self._add(self._frames[key])
        for key in [key for key, at in self._seen_at.items() if now - at > KEPT]:
            del self._now[key], self._seen_at[key], self._frames[key]
        if was_stale:
            self._add(self._moment(SYNCED))

    def _add(self, frame: bytes) -> None:
        self._events.append(self._id(self._end) + frame)
        self._end += 1
        self._size += len(self._events[-1])
        while self._size > MOST_KEPT:
            self._size -= len(self._events.popleft())

    def _id(self, number: int) -> bytes:
        assert self._looked_at is not None
        return f'id: {self._name}.{number}.{clock.stamp(self._looked_at)}\n'.encode()

    def _moment(self, kind: str) -> bytes:
        return _frame(kind, {'at': self._looked_at})


def _frame(kind: str, value: object) -> bytes:
    return f'event: {kind}\ndata: {msgspec.json.encode(value).decode()}\n\n'.encode()


def _parsed(last_id: str | None) -> tuple[str | None, int, datetime.datetime | None]:
    """Parse a ``Last-Event-ID`` into (name of the feed, number of the event, time of the reading).
    Return (None, 0, None) if the text is not a valid id."""
    name, number, at = [*(last_id or '').split('.', 2), '', ''][:3]
    try:
        return name, int(number), clock.parsed(at)
    except ValueError:
        return None, 0, None


class Stream:
    """The stream of events for one listener. It is an iterable of bytes, which blocks until there
    is an event. Another thread may call only :meth:`close`."""

    def __init__(self, feed: Feed, last_id: str | None, seconds: float, who: str):
        self.who = who
        self.ends_at = time.monotonic() + seconds
        self._feed = feed
        self._next, given = feed.place_of(last_id)
        self._given = collections.deque(
            [f'retry: {RETRY_MILLISECONDS}\n\n'.encode(), *given])
        self._is_closed = False

    def __iter__(self) -> 'Stream':
        return self

    def __next__(self) -> bytes:
        heartbeat_at = time.monotonic() + HEARTBEAT_SECONDS
        with self._feed.changed:
            while not self._is_over():
                if not self._given:
                    self._next, given = self._feed.after(self._next)
                    self._given.extend(given)
                if self._given:
                    return self._some()
                now = time.monotonic()
                if now >= heartbeat_at:
                    return b': still here\n\n'
                self._feed.changed.wait(min(heartbeat_at, self.ends_at) - now)
        self.close()
        raise StopIteration

    def _is_over(self) -> bool:
        return self._is_closed or self._feed.is_closed or time.monotonic() >= self.ends_at

    def _some(self) -> bytes:
        taken: list[bytes] = []
        size = 0
        while self._given and size < MOST_GIVEN:
            taken.append(self._given.popleft())
            size += len(taken[-1])
        return b''.join(taken)

    def close(self) -> None:
        """End the stream. The server calls this method when the listener has closed its connection.
        A second call does nothing."""
        self._is_closed = True
        self._feed.leave(self)
