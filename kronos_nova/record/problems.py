"""Collection of the problems of a snapshot, so that one error can report all problems."""

import pathlib

from kronos_nova import exception

MAX_LISTED = 100
"""Maximum number of problems of a recorded snapshot that one error lists. Further problems are only
counted. Raised, an error can fill a screen; lowered, fewer problems are named. Not measured."""


class Problems:
    """The problems of a snapshot. Each problem is recorded with the file and the place in the file
    where it was found."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._lines: list[str] = []

    def add(self, place: str, problem: str) -> None:
        """Add a problem.

        :param place: name of the file and path inside it, such as ``inventory.json.hosts[3]``; ''
            for the whole folder
        """
        self._lines.append(f'{place}: {problem}' if place else problem)

    def raise_if_any(self) -> None:
        """Raise one error that lists all added problems. Nothing is raised if no problem was added.

        :raises SnapshotError: a problem was added
        """
        if not self._lines:
            return
        raise exception.SnapshotError(exception.listed(self._folder, self._lines, MAX_LISTED))
