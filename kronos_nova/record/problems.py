"""What is wrong with a snapshot, all of it."""

import pathlib

from kronos_nova import exception

MAX_LISTED = 100


class Problems:
    """Collects what is wrong, each with its file and path."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._lines = []

    def add(self, file: str, path: str, problem: str):
        self._lines.append(f'{file}: {path}: {problem}' if path else f'{file}: {problem}')

    def raise_if_any(self):
        """:raises SnapshotError: something was added"""
        if not self._lines:
            return
        more = len(self._lines) - MAX_LISTED
        lines = self._lines[:MAX_LISTED] + ([f'and {more} more'] if more > 0 else [])
        raise exception.SnapshotError(path=self._folder, problems='\n'.join(lines))
