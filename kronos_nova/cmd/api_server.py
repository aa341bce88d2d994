"""The HTTP server of ``kronos-api``: waitress with limits for connections without a whole request,
and for those that do not take an answer.

waitress has a limit of connections and stops to accept at it. It closes connections that are
silent, and not those that send or take a byte now and then: a few hundred of them make a server
unreachable.
"""

import resource
import time

from waitress import adjustments
from waitress import channel
from waitress import server
from waitress import task

HEAD_SECONDS = 10
"""Seconds in which the head of a request has to arrive, from its first byte, or from the connection
where no byte arrives. Raised, slow connections hold their place longer; lowered, clients on slow
lines lose their connections. A head is one packet, and TCP repeats a lost one three times within
seven seconds."""

WHOLE_SECONDS = 60
"""Seconds in which a whole request with its body has to arrive. Raised, slow bodies hold their
place longer; lowered, a snapshot of many MiB cannot be sent over a slow line."""

SLOWEST_BYTES = 1024
"""Bytes a second at which a client has to read a finished answer, after WHOLE_SECONDS. Raised,
downloads over slow lines are cut off; lowered, slow connections hold their place longer. A modem
takes several times as many."""

MOST_CONNECTIONS = 1000
"""Connections, in addition to those of listeners, from which a new one takes the place of the one
whose client has stalled longest. Raised, each turn of the loop takes longer; lowered, clients that
rest between requests have to connect again. With 1,100 connections that send or read a byte now and
then, the health check takes less than a second on a loaded machine with two cores."""

PATIENCE_SECONDS = 1.0
"""Seconds for which a new connection is kept before it may be closed in favour of another. Raised,
a burst of connections is accepted later; lowered, a client that has just connected loses its
connection before its request arrives."""

MARGIN = 100
"""Connections above the limit that are accepted while others make room, and files for the database,
keystone and the log. Raised, the process needs more file descriptors; lowered, it runs out of them.
Not measured."""


class Channel(channel.HTTPChannel):
    """A connection.

    :ivar waiting_since: when the request began that is not whole; None while there is none
    """

    def __init__(self, *args, **given):
        super().__init__(*args, **given)
        self.waiting_since = self.creation_time
        # The time since which a finished answer has not been read, and its bytes then.
        self._untaken = None

    def received(self, data):
        had_begun = self.request is not None
        going_on = super().received(data)
        if self.request is None:
            self.waiting_since = None
        elif not had_begun or self.waiting_since is None:
            self.waiting_since = time.time()
        return going_on

    @property
    def stalled_since(self) -> float | None:
        """Return when the client should have sent or taken something; None while it rests, or while
        a request is answered."""
        if self.requests:
            return None
        if self.total_outbufs_len:
            return self._untaken[0] if self._untaken else self.last_activity
        return self.waiting_since

    def note_untaken(self, now: float) -> None:
        """Note since when an answer is whole and not taken. To be called about once a second."""
        if self.requests or not self.total_outbufs_len:
            self._untaken = None
        elif self._untaken is None:
            self._untaken = (now, self.total_outbufs_len)

    def pass_over(self, seconds: float) -> None:
        """Ignore a time in which the server served no connection."""
        self.last_activity += seconds
        if self.waiting_since is not None:
            self.waiting_since += seconds
        if self._untaken is not None:
            since, size = self._untaken
            self._untaken = since + seconds, size

    def is_overdue(self, now: float) -> bool:
        """Return whether a request has begun too long ago and is not whole, or an answer is taken
        too slowly."""
        if self._untaken is not None:
            since, size = self._untaken
            taken = size - self.total_outbufs_len
            return now - since > WHOLE_SECONDS and taken < (now - since) * SLOWEST_BYTES
        if self.requests or self.waiting_since is None:
            return False
        has_head = self.request is not None and self.request.headers_finished
        return now - self.waiting_since > (WHOLE_SECONDS if has_head else HEAD_SECONDS)


class Server(server.TcpWSGIServer):
    """Accepts each connection, and closes those that have no whole request in time, or do not take
    their answers."""

    channel_class = Channel
    _looked_at: float | None = None

    def maintenance(self, now):
        # Where the machine stood still, or its clock was set, clients are not at fault. Their data
        # is read after this.
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

    def handle_accept(self):
        if self._surplus() > 0:
            self._make_room(time.time())
        super().handle_accept()

    def _surplus(self):
        """Return the number of connections that have to make room for new ones."""
        return len(self.active_channels) - (self.adj.connection_limit - MARGIN) + 1

    def _make_room(self, now):
        """Close the connection whose client has stalled longest, or has rested longest where none
        has stalled. A new one gets PATIENCE_SECONDS for its request."""
        idle = [each for each in self.active_channels.values() if not each.requests
                and now - (each.stalled_since or each.last_activity) > PATIENCE_SECONDS]
        if idle:
            min(idle, key=lambda each: (each.stalled_since is None,
                                        each.stalled_since or each.last_activity)).handle_close()


def create(application, listeners: int, **given) -> Server:
    """Return a server that listens.

    :param listeners: connections that may be open in addition
    :param given: as waitress has them
    :raises OSError: it cannot listen at that address
    """
    most = MOST_CONNECTIONS + listeners + MARGIN
    _permit_files(most + MARGIN)
    adj = adjustments.Adjustments(connection_limit=most, cleanup_interval=1,
                                  asyncore_use_poll=True, **given)
    dispatcher = task.ThreadedTaskDispatcher()
    dispatcher.set_thread_count(adj.threads)
    shared = {}  # each server registers here, so that one loop runs all servers
    return [Server(application, shared, dispatcher=dispatcher, adj=adj, sockinfo=each)
            for each in adj.listen][-1]


def _permit_files(count):
    """Raise the limit of open files of this process as far as it may be raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
