"""Connections that another thread can end at any time.

A time-out of the requests library applies to each read of the socket separately. So a peer that
sends one byte before each time-out can keep its reader waiting for ever. Such bytes may belong to
headers, chunks, trailers or interim responses. Only another thread that shuts the socket can end
the wait.
"""

import contextlib
import socket
import threading
from typing import Any

from requests import adapters
from requests import exceptions
from urllib3 import connection
from urllib3 import connectionpool


class Connections:
    """The open connections of a session, recorded so that all of them can be shut at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handles: set[socket.socket] = set()
        self._dropped: set[socket.socket] = set()
        self._is_shut = False

    def remember(self, sock: socket.socket) -> socket.socket:
        """Record a socket, so that it can be shut.

        :param sock: a socket that was just connected
        :returns: a handle, to be passed to :meth:`drop` when the socket is closed
        """
        # A duplicate is needed, because TLS detaches the socket that it wraps, and the connection
        # closes it.
        handle = sock.dup()
        with self._lock:
            self._handles.add(handle)
            if self._is_shut:
                _shut(handle)
        return handle

    def drop(self, handle: socket.socket) -> None:
        """Mark a connection as dropped: the pool no longer uses it. The connection stays recorded
        until :meth:`sweep`, so that :meth:`shut` can still end a read from its socket. A thread may
        be reading such an answer, because the pool drops a connection early if the answer has no
        length.
        """
        with self._lock:
            self._dropped.add(handle)

    def sweep(self) -> None:
        """Forget the connections that were dropped. The caller has to make sure that no thread
        still reads from them."""
        with self._lock:
            self._handles -= self._dropped
            while self._dropped:
                self._dropped.pop().close()

    def shut(self) -> None:
        """Shut all connections, present and future, so that every read from them returns at
        once."""
        with self._lock:
            self._is_shut = True
            for handle in self._handles:
                _shut(handle)


def _shut(handle: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the connection has ended already
        handle.shutdown(socket.SHUT_RDWR)


class Adapter(adapters.HTTPAdapter):
    """A transport adapter of the requests library that records its connections in ``connections``.
    Connections through proxies are recorded as well."""

    def __init__(self, connections: Connections):
        self._pools = _pools(connections)
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Return a proxy manager whose connections are recorded.

        :raises InvalidProxyURL: ``proxy`` is a SOCKS proxy, whose connections cannot be recorded
        """
        if proxy.lower().startswith('socks'):  # PySocks makes these connections
            raise exceptions.InvalidProxyURL('SOCKS proxies are not supported')
        manager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = self._pools
        return manager


def _pools(connections: Connections) -> dict[str, type[connectionpool.HTTPConnectionPool]]:
    """Return {scheme: class of a urllib3 connection pool}. Each pool records in ``connections`` the
    connections that it makes."""

    class HTTPConnection(connection.HTTPConnection):
        handle: socket.socket | None = None

        def _new_conn(self) -> socket.socket:
            sock = super()._new_conn()
            self.handle = connections.remember(sock)
            return sock

        def close(self) -> None:
            if self.handle is not None:
                connections.drop(self.handle)
                self.handle = None
            super().close()

    class HTTPSConnection(HTTPConnection, connection.HTTPSConnection):
        pass

    class HTTPConnectionPool(connectionpool.HTTPConnectionPool):
        ConnectionCls = HTTPConnection

    class HTTPSConnectionPool(connectionpool.HTTPSConnectionPool):
        ConnectionCls = HTTPSConnection

    return {'http': HTTPConnectionPool, 'https': HTTPSConnectionPool}
