"""Nova's tests look for files beside the package that a wheel does not have there: the samples of
its documentation, and etc/nova. A directory like Nova's source tree has all three: the installed
package by a link, the rest from where pip put it or from the source archive of the same release."""

import importlib.metadata
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

SAMPLES = ('doc/api_samples', 'doc/notification_samples', 'doc/api_schemas')


def make(directory: pathlib.Path) -> pathlib.Path:
    """The tree, without samples, at ``directory``. Importing ``nova`` from there needs it first in
    the path."""
    files = importlib.metadata.files('nova')
    [package] = (each for each in files if str(each) == 'nova/__init__.py')
    [paste] = (each for each in files if each.match('etc/nova/api-paste.ini'))
    directory.mkdir(parents=True, exist_ok=True)
    _link(directory / 'nova', package.locate().resolve().parent)
    _link(directory / 'etc', paste.locate().resolve().parents[1])
    return directory


def _link(place, target):
    if place.resolve() != target.resolve():
        place.unlink(missing_ok=True)
        place.symlink_to(target)


def add_samples(directory: pathlib.Path) -> None:
    """Fetch Nova's source archive, once, for the samples that API and notifications are compared
    with.

    :raises CalledProcessError: pip cannot
    """
    if all((directory / name).is_dir() for name in SAMPLES):
        return
    version = importlib.metadata.version('nova')
    with tempfile.TemporaryDirectory() as downloads:
        subprocess.run(
            [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', '--no-binary',
             'nova', '--dest', downloads, f'nova=={version}'], check=True)
        [archive] = pathlib.Path(downloads).glob('*.tar.gz')
        with tarfile.open(archive) as contents:
            contents.extractall(downloads, filter='data')
        shutil.rmtree(directory / 'doc', ignore_errors=True)
        shutil.move(pathlib.Path(downloads, f'nova-{version}', 'doc'), directory / 'doc')
