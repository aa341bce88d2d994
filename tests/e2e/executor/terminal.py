"""A command in a terminal of its own, as an operator sees it."""

import contextlib
import os
import pty
import re
import subprocess
import threading

import fixtures

CONTROL = re.compile(r'\x1b\[[0-9;?]*[A-Za-z]')


class Terminal(fixtures.Fixture):
    """``text`` is what was shown so far, without colours and cursor movements."""

    def __init__(self, argv):
        self._argv = [str(word) for word in argv]
        self._shown = []

    def _setUp(self):
        ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            self._argv, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
            env={**os.environ, 'TERM': 'xterm', 'COLUMNS': '250', 'LINES': '50'})
        os.close(theirs)
        self.addCleanup(self._end)
        reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        reader.start()
        self.addCleanup(reader.join)

    def _read(self, ours):
        # Reading a terminal without a writer is an error.
        with contextlib.suppress(OSError):
            while shown := os.read(ours, 65536):
                self._shown.append(shown.decode(errors='replace'))
        os.close(ours)

    def _end(self):
        self.process.kill()
        self.process.wait()

    @property
    def text(self):
        return CONTROL.sub('', ''.join(self._shown))
