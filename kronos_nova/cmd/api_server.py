"""The HTTP server of ``kronos-api``: waitress with time limits for sending a request and for
reading an answer.

waitress accepts a limited number of connections. It closes a connection whose client is silent, but
not a connection whose client sends or reads a byte now and then. Without the time limits, a few
hundred such clients would make the server unreachable.
"""

import resource
import time
from typing import Any

from waitress import adjustments
from waitress import channel
from waitress import server
from waitress import task

from kronos_nova.api.protocol import Application

HEAD_SECONDS = 10
"""Maximum seconds in which the headers of an HTTP request have to arrive. The seconds are counted
from the first byte of the request. For the first request of a connection, they are counted from the
start of the connection. Raised, clients that send nothing hold their connections for longer;
lowered, clients with slow network connections are cut off. Chosen because the headers are one
packet, and TCP sends a lost packet three more times within seven seconds."""

WHOLE_SECONDS = 60
"""Maximum seconds in which a whole HTTP request, with its body, has to arrive. The number has a
second use: once an answer is that many seconds old, the server checks how fast the client reads it
(:data:`SLOWEST_BYTES`). Raised, slow clients hold their connections for longer; lowered, a client
with a slow network connection cannot send a snapshot of many MiB. Not measured."""

SLOWEST_BYTES = 1024
"""Lowest number of bytes per second at which a client has to read an answer. A slower client is cut
off. The rate is not checked in the first minute after the answer was produced
(:data:`WHOLE_SECONDS`). Raised, downloads over slow network connections are cut off; lowered, slow
clients hold their connections for longer. Chosen because even a modem is several times as fast."""

MOST_CONNECTIONS = 1000
"""Maximum number of open connections to kronos-api; connections of event streams do not count. If
there are more, the connection whose client has been silent longest is closed. Raised, the server
takes longer to check all connections; lowered, clients that pause between requests have to connect
again. Measured with 1,100 connections that send or read a byte now and then: the health check takes
less than a second on a loaded machine with two cores."""

PATIENCE_SECONDS = 1.0
"""Seconds for which a client has to be silent before its connection may be closed to make room for
a new connection. If the server itself was paused for longer than this time, the pause does not
count as silence of the clients. Raised, new clients wait longer while all connections are in use;
lowered, a client may lose its connection before its request arrives. Not measured."""

MARGIN = 100
"""Number of connections that the server accepts above the maximum (:data:`MOST_CONNECTIONS`) while
it closes older connections. The server also keeps the same number of file descriptors free for the
database, keystone and the log. Raised, the process needs a higher limit of open files; lowered, the
process may run out of file descriptors. Not measured."""


class Channel(channel.HTTPChannel):
    """A connection that records the time since which its client has stalled.

    :ivar waiting_since: time at which the client began the request that is not complete yet; None
        if there is no such request
    """

    def __init__(self, *args: Any, **given: Any):
        super().__init__(*args, **given)
        self.waiting_since = self.creation_time
        # (time since which a finished answer waits to be read, its bytes at that time).
        self._untaken: tuple[float, int] | None = None

    def received(self, data: bytes) -> bool:
        had_begun = self.request is not None
        going_on = super().received(data)
        if self.request is None:
            self.waiting_since = None
        elif not had_begun or self.waiting_since is None:
            self.waiting_since = time.time()
        return going_on

    # waitress asks for events of connections that are closed while it collects the connections. A
    # new connection may then get the file descriptor of a closed one, and with it the event "not
    # open", by which waitress would close the new connection.
    def readable(self) -> bool:
        return self.connected and super().readable()

    def writable(self) -> bool:
        return self.connected and super().writable()

    @property
    def stalled_since(self) -> float | None:
        """Return the time at which the client began to stall. A client stalls while the server
        waits for the rest of a request, or while an answer waits to be read. Return None while
        there is no request, and while the server works on a request."""
        if self.requests:
            return None
        if self.total_outbufs_len:
            return self._untaken[0] if self._untaken else self.last_activity
        return self.waiting_since

    def note_untaken(self, now: float) -> None:
        """Record ``now`` as the time since which a finished answer waits to be read, if no such
        time is recorded yet. The server calls this method about once a second."""
        if self.requests or not self.total_outbufs_len:
            self._untaken = None
        elif self._untaken is None:
            self._untaken = (now, self.total_outbufs_len)

    def pass_over(self, seconds: float) -> None:
        """Add ``seconds`` to the time at which the client began to stall. During these seconds the
        server served no connection, so the client did not cause the delay."""
        self.last_activity += seconds
        if self.waiting_since is not None:
            self.waiting_since += seconds
        if self._untaken is not None:
            since, size = self._untaken
            self._untaken = since + seconds, size

    def is_overdue(self, now: float) -> bool:
        """Return true if the client sends a request or reads an answer too slowly, and false
        otherwise. The result is false while the server works on a request."""
        if self._untaken is not None:
            since, size = self._untaken
            taken = size - self.total_outbufs_len
            return now - since > WHOLE_SECONDS and taken < (now - since) * SLOWEST_BYTES
        if self.requests or self.waiting_since is None:
            return False
        has_head = self.request is not None and self.request.headers_finished
        return now - self.waiting_since > (WHOLE_SECONDS if has_head else HEAD_SECONDS)


class Server(server.TcpWSGIServer):
    """A server that accepts every connection, and closes connections whose clients send requests or
    read answers too slowly."""

    channel_class = Channel
    _looked_at: float | None = None

    def maintenance(self, now: float) -> None:
        # After a pause of the machine or a change of its clock, clients are not at fault. Their
        # data is read after this.
        looked_at, self._looked_at = self._looked_at, now
        pause = 0.0 if looked_at is None else now - looked_at - self.adj.cleanup_interval
        if pause > PATIENCE_SECONDS:
            for each in self.active_channels.values():
                each.pass_over(pause)
        super().maintenance(now)
        for each in list(self.active_channels.values()):
            each.note_untaken(now)
            if each.is_overdue(now):
                # waitress itself would wait until the client reads something.
                each.handle_close()
        # At the limit no connection is accepted, so room has to be made here too.
        for _each in range(self._surplus()):
            self._make_room(now)

    def handle_accept(self) -> None:
        is_full = self._surplus() > 0
        super().handle_accept()
        # Later, because a new connection must not get the file descriptor of a closed one, for
        # which there may be events.
        if is_full:
            self._make_room(time.time())

    def _surplus(self) -> int:
        """Return the number of connections that have to be closed to make room for new connections.
        The number is negative while there is room."""
        return len(self.active_channels) - (self.adj.connection_limit - MARGIN) + 1

    def _make_room(self, now: float) -> None:
        """Close one connection: the one whose client has stalled longest or, if no client has
        stalled, the one that has been silent longest. A connection whose request is in progress is
        not closed. Neither is one that has stalled or been silent for less than PATIENCE_SECONDS.
        """
        idle = [each for each in self.active_channels.values() if not each.requests
                and now - (each.stalled_since or each.last_activity) > PATIENCE_SECONDS]
        if idle:
            min(idle, key=lambda each: (each.stalled_since is None,
                                        each.stalled_since or each.last_activity)).handle_close()


def create(application: Application, listeners: int, **given: Any) -> Server:
    """Return a server that listens.

    :param listeners: maximum number of event streams, which are permitted in addition to
        MOST_CONNECTIONS
    :param given: arguments of waitress
    :raises OSError: the server cannot listen at the address
    """
    most = MOST_CONNECTIONS + listeners + MARGIN
    _permit_files(most + MARGIN)
    adj = adjustments.Adjustments(connection_limit=most, cleanup_interval=1,
                                  asyncore_use_poll=True, **given)
    dispatcher = task.ThreadedTaskDispatcher()
    dispatcher.set_thread_count(adj.threads)
    shared: dict[int, Any] = {}  # each server registers here, so that one loop runs all servers
    return [Server(application, shared, dispatcher=dispatcher, adj=adj, sockinfo=each)
            for each in adj.listen][-1]


def _permit_files(count: int) -> None:
    """Raise the limit of open files of this process to ``count``, or to the hard limit if that is
    lower than ``count``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
