"""Locks of aggregates, made with tooz. Only the process that holds the lock of an aggregate plans
for the aggregate."""

import hashlib
import os
import urllib.parse

import stevedore.exception
import tooz
from oslo_log import log as logging
from tooz import coordination
from tooz import locking

from kronos_nova import exception

LOG = logging.getLogger(__name__)

TAKING = '\0'
"""Name of the lock that a worker holds while it chooses and locks due aggregates. No aggregate has
this name. The empty name is not used, because an invalid option might name an aggregate ''."""


class AggregateLocks:
    """The locks on aggregates that this process holds. The locks are released when the process
    dies.

    :param url: a tooz URL; None for lock files below ``state_path``. Lock files are enough if all
        processes run on one host
    :param member: name of this process, unique in the cloud
    """

    def __init__(self, url: str | None, state_path: str, member: str):
        if url is None:
            url = f'file://{_folder(state_path)}'
        self._held: dict[str, locking.Lock] = {}
        self._secret = urllib.parse.urlsplit(url).password
        try:
            self._coordinator = coordination.get_coordinator(url, member.encode())
            self._coordinator.start()
        except (tooz.ToozError, ValueError, stevedore.exception.NoMatches) as e:
            raise exception.ConfigurationError(
                what='[kronos] coordination_url', problem=f'cannot be used: {self._said(e)}',
                remedy='Give the URL of a tooz back end that answers. If the cloud has only one '
                       'controller, remove the option.') from e

    def _said(self, error: Exception) -> str:
        """Return the text of an error of the lock back end. If the text contains the password of
        the URL, the password is replaced."""
        said = str(error)
        return said.replace(self._secret, '***') if self._secret else said

    def acquire(self, *aggregates: str) -> bool:
        """Lock some aggregates without waiting. Either all of these aggregates are locked, or none
        of them.

        :returns: whether the aggregates are locked; False if another process holds the lock of one
            of them, or if the lock back end fails
        """
        taken: list[str] = []
        for aggregate in aggregates:
            if not self._acquire(aggregate):
                self.release(*taken)
                return False
            taken.append(aggregate)
        return True

    def _acquire(self, aggregate: str) -> bool:
        try:
            lock = self._coordinator.get_lock(_name(aggregate))
            if not lock.acquire(blocking=False):
                return False
        except (tooz.ToozError, OSError) as e:  # OSError: a lock file cannot be opened
            LOG.warning('The lock on %s cannot be acquired now, because the lock service of '
                        '[kronos] coordination_url (by default, files below state_path) fails: %s',
                        _described(aggregate), self._said(e))
            return False
        self._held[aggregate] = lock
        return True

    def heartbeat(self) -> None:
        """Renew the locks that this process holds. The renewal is necessary only if the locks of
        the back end expire."""
        if self._held:
            try:
                self._coordinator.heartbeat()
            except tooz.ToozError as e:
                LOG.warning('The locks on the aggregates that are being planned cannot be renewed. '
                            'If they expire, another worker may plan these aggregates at the same '
                            'time: %s', self._said(e))

    def release_all(self) -> None:
        self.release(*self._held)

    def release(self, *aggregates: str) -> None:
        for aggregate in aggregates:
            self._release(aggregate)

    def _release(self, aggregate: str) -> None:
        try:
            self._held.pop(aggregate).release()
        except tooz.ToozError as e:
            # The lock has expired, or will.
            LOG.warning('The lock on %s could not be released, and is free once it expires: %s',
                        _described(aggregate), self._said(e))


def _folder(state_path: str) -> str:
    """Make the folder of lock files below ``state_path``, and return its path.

    :raises ConfigurationError: the folder cannot be made
    """
    path = os.path.join(state_path, 'kronos-locks')
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise exception.ConfigurationError(
            what='state_path', problem=f'{path} cannot be made: {error.strerror}',
            remedy='Let the user of this service write to state_path, or set [kronos] '
                   'coordination_url to the URL of another back end.') from error
    return path


def _described(aggregate: str) -> str:
    return 'the list of due aggregates' if aggregate == TAKING else f'aggregate {aggregate}'


def _name(aggregate: str) -> bytes:
    """Return the name of the lock of an aggregate in a form that every back end accepts: a short
    hash. MySQL accepts names of at most 64 characters, and the name of a lock file may have no
    slash."""
    digest = hashlib.sha256(aggregate.encode()).hexdigest()
    return f'kronos-{digest[:32]}'.encode()
