"""The HTTP server of ``kronos-api``: waitress with limits for connections without a whole request.

waitress has a limit of connections and stops to accept at it. It closes connections that are
silent, and not those that send a byte now and then: a few hundred of them make a server
unreachable.
"""

import resource
import time

from waitress import adjustments
from waitress import channel
from waitress import server
from waitress import task

HEAD_SECONDS = 10
"""Time for the head of a request, from the first byte, or from the connection where there is none.
Raised, slow connections hold their place longer; lowered, clients behind slow lines are cut. A head
is one packet, and TCP repeats a lost one three times within seven seconds."""

WHOLE_SECONDS = 60
"""Time for a whole request with its body. Raised, slow bodies hold their place longer; lowered, a
snapshot of many MiB cannot be sent over a slow line."""

MOST_CONNECTIONS = 1000
"""Connections, in addition to those of listeners, from which a new one takes the place of the one
that has waited longest for a whole request. Raised, each turn of the loop takes longer; lowered,
clients that rest between requests have to connect again. With 1,100 that drip, the health check
takes less than a second on a loaded machine of two cores."""

MARGIN = 100
"""Files for what is no connection: the database, keystone, the log, what listens."""


class Channel(channel.HTTPChannel):
    """A connection.

    :ivar waiting_since: when the request began that is not whole; None while there is none
    """

    def __init__(self, *args, **given):
        super().__init__(*args, **given)
        self.waiting_since = self.creation_time

    def received(self, data):
        had_begun = self.request is not None
        going_on = super().received(data)
        if self.request is None:
            self.waiting_since = None
        elif not had_begun or self.waiting_since is None:
            self.waiting_since = time.time()
        return going_on

    def is_overdue(self, now: float) -> bool:
        """Return whether a request has begun too long ago, and is not whole."""
        if self.requests or self.waiting_since is None:
            return False
        has_head = self.request is not None and self.request.headers_finished
        return now - self.waiting_since > (WHOLE_SECONDS if has_head else HEAD_SECONDS)


class Server(server.TcpWSGIServer):
    """Accepts each connection, and closes those that have no whole request in time."""

    channel_class = Channel

    def maintenance(self, now):
        super().maintenance(now)
        for each in list(self.active_channels.values()):
            if each.is_overdue(now):
                each.will_close = True

    def handle_accept(self):
        if len(self.active_channels) >= self.adj.connection_limit - MARGIN:
            self._make_room()
        super().handle_accept()

    def _make_room(self):
        """Close the connection that has waited longest for a whole request, or has rested
        longest."""
        waiting = [each for each in self.active_channels.values()
                   if not each.requests and not each.total_outbufs_len]
        if waiting:
            min(waiting, key=lambda each: (each.waiting_since is None,
                                           each.waiting_since or each.last_activity)).handle_close()


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
    shared = {}     # in which each server registers, so that any of them runs all
    return [Server(application, shared, dispatcher=dispatcher, adj=adj, sockinfo=each)
            for each in adj.listen][-1]


def _permit_files(count):
    """Raise the limit of open files of this process as far as it may be raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
