"""A folder of recorded snapshots: list the snapshots, pack them into archives, and replay them with
other policies."""

import dataclasses
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import IO

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova import exception

META = 'meta.json'

MOST_LISTED = 1000
"""Maximum number of recorded snapshots in a list. If there are more, the newest are listed. Raised,
responses are larger; lowered, more of the old snapshots are left out. Chosen as three weeks with
one snapshot every half hour."""

LARGEST_META = 2 ** 16
"""Maximum number of bytes that are read from the file ``meta.json`` of a recorded snapshot. The
file has four short entries. Raised, a damaged file takes more memory; lowered below the size of
these entries, snapshots are missing in the list. Not measured."""

LONGEST_PROBLEM = 2000
"""Maximum number of characters of the error text of a replay, which is a new planning run on a
recorded snapshot. The text names each fault of the policies file. Raised, an error can fill a
screen; lowered, faults are cut off. Not measured."""

TOO_LARGE = 70
"""Exit code of a replay process that does not have enough memory (no unit). Fixed by sysexits.h
(EX_SOFTWARE)."""

CHILD = f"""
import os, resource, sys
most = int(sys.argv.pop(1)) << 20
resource.setrlimit(resource.RLIMIT_AS, (most, most))
os.nice(5)
with open('/proc/self/oom_score_adj', 'w') as file:
    file.write('1000')
try:
    from {{program}} import main
    sys.exit(main(sys.argv[1:]))
except (MemoryError, ImportError):
    os._exit({TOO_LARGE})
"""
"""Python program that runs a replay in a process of its own. The time and the memory of the process
are limited, and its priority is low, so that a large snapshot does not slow down other services and
requests."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSnapshot:
    """One entry in the list of recorded snapshots. The fields ``taken_at``, ``cloud`` and
    ``kronos_version`` are from the snapshot's ``meta.json``.

    name : name of the snapshot's folder
    bytes : size of all files of the snapshot together
    """

    name: str
    taken_at: datetime.datetime
    cloud: str
    kronos_version: str
    bytes: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The inputs that replace recorded inputs in a replay. If a field is None, the replay uses the
    recorded input.

    policies : content of a policies file
    spread_planner, pack_planner : names of the planners for the modes spread and pack
    budget : maximum number of moves
    """

    policies: Mapping | None = None
    spread_planner: str | None = None
    pack_planner: str | None = None
    budget: int | None = None


class SnapshotFolder:
    """The recorded snapshots in a folder.

    :param folder: folder that contains the folders of snapshots, which kronos-record writes; None
        if there are no snapshots
    :param seconds: time limit of a replay, in seconds
    :param memory: maximum memory of a replay, in MiB
    :param program: module with the function ``main`` of ``kronos-replay``
    """

    def __init__(self, folder: str | None, seconds: float, memory: int, program: str):
        self._folder = pathlib.Path(folder) if folder else None
        self._seconds = seconds
        self._memory = memory
        self._program = program
        self._turn = threading.Lock()

    def list(self) -> list[RecordedSnapshot]:
        """Return the newest :data:`MOST_LISTED` snapshots, the newest first. A snapshot that cannot
        be read, for example because it is being written, is left out."""
        if self._folder is None:
            return []
        found = []
        for meta in self._folder.glob(f'*/{META}'):
            try:
                with meta.open('rb') as file:
                    raw = json.loads(file.read(LARGEST_META))
                found.append(RecordedSnapshot(
                    name=meta.parent.name, cloud=boundary.shown(raw['cloud']),
                    taken_at=clock.parsed(raw['taken_at']),
                    kronos_version=boundary.shown(raw['kronos_version']),
                    bytes=sum(path.stat().st_size for path in meta.parent.rglob('*'))))
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue
        return sorted(found, key=lambda each: each.taken_at, reverse=True)[:MOST_LISTED]

    def packed(self, name: str) -> IO[bytes]:
        """Return a snapshot as a compressed tar archive in an open temporary file.

        :raises SnapshotNotFound: there is no snapshot with this name
        """
        folder = self._find(name)
        file = tempfile.TemporaryFile()     # noqa: SIM115 - its reader closes it
        try:
            with tarfile.open(fileobj=file, mode='w:gz', compresslevel=1) as archive:
                archive.add(folder, arcname=name, filter=_anybody)
        except FileNotFoundError as error:  # the snapshot was removed meanwhile
            file.close()
            raise exception.SnapshotNotFound(snapshot=boundary.shown(name)) from error
        file.seek(0)
        return file

    def replay(self, name: str, change: Change) -> dict:
        """Replay a snapshot with changed inputs.

        :returns: the object that ``kronos-replay -f json`` prints
        :raises SnapshotNotFound: there is no snapshot with this name
        :raises RequestRefused: the policies, the planner or the snapshot are invalid
        :raises OutOfBounds: the policies have too many levels of nesting
        :raises ReplayBusy: another replay is in progress
        :raises ReplayTooLarge: the replay exceeds its limit of time or memory
        """
        folder = self._find(name)
        if not self._turn.acquire(blocking=False):
            raise exception.ReplayBusy()
        try:
            with tempfile.TemporaryDirectory() as scratch:
                return self._run([str(folder), '-f', 'json',
                                  *_arguments(change, pathlib.Path(scratch))])
        finally:
            self._turn.release()

    def _run(self, arguments: Sequence[str]) -> dict:
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and a program of ours
                [sys.executable, '-c', CHILD.format(program=self._program), str(self._memory),
                 *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=self._seconds,
                env={'PATH': os.defpath, 'LC_ALL': 'C.UTF-8', 'OPENBLAS_NUM_THREADS': '1'})
        except subprocess.TimeoutExpired as error:
            raise exception.ReplayTooLarge(
                problem=f'took longer than the {self._seconds} s of [kronos_api] replay_seconds'
            ) from error
        if done.returncode in (TOO_LARGE, -9, -6):
            raise exception.ReplayTooLarge(
                problem=f'needs more than the {self._memory} MiB of [kronos_api] replay_memory')
        if done.returncode:
            said = done.stderr.decode(errors='replace').strip()
            raise exception.RequestRefused(
                what='The replay', problem='was refused', remedy=boundary.shown(
                    said.replace('\n', '; '), LONGEST_PROBLEM))
        return json.loads(done.stdout)

    def _find(self, name: str) -> pathlib.Path:
        folder = self._folder and self._folder / name
        # A name with a slash could be a path outside the folder. The method is_file of a path would
        # raise an error for a name that is too long for a folder.
        if folder is None or '/' in name or name in ('', '.', '..') \
                or not os.path.isfile(folder / META):
            raise exception.SnapshotNotFound(snapshot=boundary.shown(name))
        return folder


def _arguments(change: Change, scratch: pathlib.Path) -> Iterator[str]:
    if change.policies is not None:
        file = scratch / 'policies.yaml'    # the content is JSON, which YAML includes
        try:
            file.write_text(json.dumps(change.policies))
        except RecursionError as error:
            raise boundary.OutOfBounds(what='policies', problem='is nested too deep') from error
        yield f'--policies={file}'
    for option in ('spread_planner', 'pack_planner', 'budget'):
        value = getattr(change, option)
        if value is not None:
            # "=" keeps a value that begins with "-" from being read as an option.
            yield f'--{option.replace("_", "-")}={value}'


def _anybody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the names and ids of the owner and group of a file from its entry in an archive, and
    return the entry."""
    member.uid = member.gid = 0
    member.uname = member.gname = ''
    return member
