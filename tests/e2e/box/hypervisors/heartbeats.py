"""Guests' heartbeats, read from their consoles by a clock that does not stop when they do."""

import contextlib
import dataclasses
import itertools
import os
import re
import threading
import time

POLL_SECONDS = 0.01
"""A fifth of the guests' own interval: what a gap is longer than it was."""

BEAT = re.compile(rb'beat (\d+) \d+\r?\n')


@dataclasses.dataclass(frozen=True, slots=True)
class Beat:
    """``at`` is time.monotonic() when it was read, ``number`` the guest's own count."""

    at: float
    number: int
    host: str


class Console:
    """What a host has of a guest's console; it can be read to its end after it was deleted."""

    def __init__(self, path):
        self._file = path.open('rb')
        self._rest = b''

    def beats(self):
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            # Begun anew: a guest came back to where nobody has deleted what it had left.
            self._file.seek(0)
        self._rest += self._file.read()
        found = [*BEAT.finditer(self._rest)]
        if found:
            self._rest = self._rest[found[-1].end():]
        return [int(each[1]) for each in found]


class Heartbeats(threading.Thread):
    """Reads the consoles of all guests on all hosts until it is told to ``stop``.

    :param folders: {host: its folder with the instances' folders}
    """

    def __init__(self, folders):
        super().__init__(daemon=True)
        self._folders = folders
        self._consoles = {}
        self._beats = {}
        self._ended = threading.Event()

    def run(self):
        while not self._ended.wait(POLL_SECONDS):
            for host, folder in self._folders.items():
                self._look_for_new(host, folder)
            now = time.monotonic()
            for (host, uuid), (_inode, console) in list(self._consoles.items()):
                for number in console.beats():
                    self._beats.setdefault(uuid, []).append(Beat(now, number, host))

    def _look_for_new(self, host, folder):
        for name in os.listdir(folder):
            path = folder / name / 'console.log'
            # A guest that is new here, or was here before, has no console yet; or none any more.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                inode = path.stat().st_ino
                if self._consoles.get((host, name), (None,))[0] != inode:
                    self._consoles[host, name] = inode, Console(path)

    def stop(self):
        self._ended.set()
        self.join()

    def of(self, uuid, since=0.0):
        """Its Beats from a time on, as they were read."""
        return [beat for beat in self._beats.get(uuid, []) if beat.at >= since]

    def longest_gap(self, uuid, since=0.0, until=None):
        """Seconds between two beats, or from the last one until then (now)."""
        end = time.monotonic() if until is None else until
        times = [beat.at for beat in self.of(uuid, since) if beat.at <= end]
        if not times:
            return float('inf')
        return max(later - earlier for earlier, later in itertools.pairwise([*times, end]))

    def strays(self, uuid):
        """Numbers that came twice or not at all: it ran twice, or what it did was lost."""
        numbers = sorted(beat.number for beat in self.of(uuid))
        return [later for earlier, later in zip(numbers, numbers[1:], strict=False)
                if later != earlier + 1]
