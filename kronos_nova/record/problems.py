"""Collection of a snapshot's problems, which are reported in one error."""

import pathlib

from kronos_nova import exception

MAX_LISTED = 100
"""Maximum number of problems in a message. Raised, a message fills a screen; lowered, some problems
are not named. Not measured."""


class Problems:
    """Collects the problems of a snapshot, each with its file and path."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._lines = []

    def add(self, place: str, problem: str):
        """Add a problem.

        :param place: file and path in the file; '' for the whole folder
        """
        self._lines.append(f'{place}: {problem}' if place else problem)

    def raise_if_any(self):
        """Raise one error that lists the problems that were added.

        :raises SnapshotError: a problem was added
        """
        if not self._lines:
            return
        more = len(self._lines) - MAX_LISTED
        lines = self._lines[:MAX_LISTED] + ([f'and {more} more'] if more > 0 else [])
        raise exception.SnapshotError(path=self._folder, problems='\n'.join(lines))
