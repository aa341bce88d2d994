"""The wall clock of some processes, which differs from the machine's by what a test says."""

import pathlib
import shutil
import struct
import subprocess

SOURCE = pathlib.Path(__file__).with_suffix('.c')
COMPILERS = ('gcc', 'cc', 'clang')
_OFFSET = struct.Struct('=q')


def compiler():
    """Return the path of a C compiler, None where there is none."""
    return next(filter(None, map(shutil.which, COMPILERS)), None)


def build(folder):
    """Compile the library into a folder; return its path."""
    library = pathlib.Path(folder) / 'shifted_clock.so'
    subprocess.run([compiler(), '-O2', '-Wall', '-Werror', '-shared', '-fPIC', str(SOURCE),
                    '-o', str(library), '-ldl', '-lpthread'], check=True)
    return library


class ShiftedClock:
    """A clock that is right until it is set.

    :param library: what :func:`build` made
    :param path: file of the offset
    """

    def __init__(self, library, path):
        self._path = pathlib.Path(path)
        self._path.write_bytes(_OFFSET.pack(0))
        self.environment = {'LD_PRELOAD': str(library), 'KRONOS_CLOCK': str(path)}

    def set(self, seconds):
        """Set it so many seconds ahead of the machine's; takes effect at once, in all processes."""
        with self._path.open('r+b') as file:
            file.write(_OFFSET.pack(int(seconds * 1e9)))
