"""Guests' heartbeats, read from their consoles by a clock that does not stop when they do.

A console is the terminal that QEMU opens for it. Its log, ``console.log``, would not do: where
hosts share a folder it is one for both ends of a live migration, and the other truncates it.
"""

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
TERMINAL = re.compile(rb"<source path='(/dev/pts/\d+)'")
UUID = re.compile(rb'<uuid>(\S+)</uuid>')
CHUNK = 2 ** 16


@dataclasses.dataclass(frozen=True, slots=True)
class Beat:
    """``at`` is time.monotonic() when it was read, ``number`` the guest's own count."""

    at: float
    number: int
    host: str


class Console:
    """A guest's at a host, until its QEMU there has ended."""

    def __init__(self, uuid, path):
        self.uuid, self.path = uuid, path
        self._file = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)

    def read(self):
        """Return its output since the last call; None: QEMU is gone."""
        try:
            return os.read(self._file, CHUNK)
        except BlockingIOError:
            return b''
        except OSError:
            os.close(self._file)
            return None


class Heartbeats(threading.Thread):
    """Reads the consoles of all guests on all hosts until :meth:`stop`.

    :param folders: {host: where its libvirt writes down which guests it has}
    """

    def __init__(self, folders):
        super().__init__(daemon=True)
        self._folders = folders
        self._seen = {}         # (host, file): when it was written
        self._consoles = {}     # (host, file): Console
        self._begun = {}        # uuid: the beginning of a line
        self._beats = {}        # uuid: [Beat]
        self._ended = threading.Event()

    def run(self):
        while not self._ended.wait(POLL_SECONDS):
            for host, folder in self._folders.items():
                self._look_for_new(host, folder)
            now = time.monotonic()
            for key, console in list(self._consoles.items()):
                said = console.read()
                if said is None:
                    del self._consoles[key], self._seen[key]
                elif said:
                    self._hear(now, key[0], console.uuid, said)

    def _look_for_new(self, host, folder):
        for name in os.listdir(folder):
            # It may be gone, or its terminal; or it has none yet, and is written again.
            with contextlib.suppress(OSError):
                path = folder / name
                written = path.stat().st_mtime_ns
                if name.endswith('.xml') and self._seen.get((host, name)) != written:
                    self._seen[host, name] = written
                    self._open(host, name, path.read_bytes())

    def _open(self, host, name, description):
        uuid, terminal = UUID.search(description), TERMINAL.search(description)
        known = self._consoles.get((host, name))
        if terminal and not (known and known.path == terminal[1]):
            self._consoles[host, name] = Console(uuid[1].decode(), terminal[1])

    def _hear(self, now, host, uuid, said):
        """A guest may be moved in the middle of a line."""
        text = self._begun.get(uuid, b'') + said
        found = [*BEAT.finditer(text)]
        self._begun[uuid] = text[found[-1].end() if found else 0:]
        self._beats.setdefault(uuid, []).extend(Beat(now, int(each[1]), host) for each in found)

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
