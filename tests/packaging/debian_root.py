"""Install Kronos in a fresh Debian root by the documentation's own words.

    python -m tests.packaging.debian_root [--release bookworm] [--mirror URL] [--keep]

Needs root and debootstrap; takes some minutes. A root with nothing but Python, venv and git gets a
clone of this checkout, an environment with Nova, and then the commands of "The package" in
doc/source/install.rst. Every kind of program is started after that. Exit status: 0 it works, 1 not,
with the output of the command that failed.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = 'python3,python3-venv,git,ca-certificates'
"""All that the documentation asks for on a machine that builds and installs."""

MIRROR = 'http://deb.debian.org/debian'
SECONDS = 1800
"""Seconds that a command may take. Raised, one that hangs is found later; lowered, installing Nova
over a slow line fails. Chosen as several times what it takes here."""

CHECKS = ('kronos-manage --help', 'kronos-test-config --help', 'kronos-replay --help',
          'kronos-api --help', 'python -c "import kronos_nova.plugin.entry, kronos_client.osc"',
          'pip check')
"""Commands that need no cloud: every kind of program, and both packages."""


def commands() -> list[str]:
    """The commands below "The package" in install.rst, in their order."""
    text = (ROOT / 'doc/source/install.rst').read_text()
    section = text.partition('1. The package\n')[2].partition('\n2. ')[0]
    return [line.strip() for line in re.findall(r'^    (pip .*)$', section, re.MULTILINE)]


def pip_options() -> dict[str, str]:
    """The configuration of this machine's pip, as environment variables."""
    listed = subprocess.run([sys.executable, '-m', 'pip', 'config', 'list'], capture_output=True,
                            text=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        name, _sign, value = line.partition('=')
        key = name.rpartition('.')[2].upper().replace('-', '_')
        found[f'PIP_{key}'] = value.strip("'")
    return found


def folders(options: dict[str, str]) -> list[str]:
    """The files of this machine that pip's options name, and the folders of its indexes."""
    words = [word for value in options.values() for word in value.split()]
    found = {word for word in words if word.startswith('/')}
    found |= {os.path.dirname(urllib.parse.urlsplit(word).path) for word in words
              if word.startswith('file:///')}
    return sorted(path for path in found if os.path.exists(path))


class DebianRoot:
    """A root made by debootstrap, in which commands are run."""

    def __init__(self, path: pathlib.Path, env: dict[str, str]):
        self._path = path
        self._env = env

    def run(self, command: str, folder: str = '/work') -> str:
        """
        :raises RuntimeError: the command failed; with its output
        """
        print(f'# {command}', flush=True)
        done = subprocess.run(
            ['chroot', self._path, '/bin/sh', '-ec', f'cd {folder}; {command}'], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
            env={'PATH': '/opt/nova-env/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': '/root',
                 'LC_ALL': 'C.UTF-8', **self._env})
        if done.returncode:
            raise RuntimeError(f'"{command}" ended with {done.returncode}:\n{done.stdout[-6000:]}')
        return done.stdout


@contextlib.contextmanager
def made(release: str, mirror: str, keep: bool):
    """A DebianRoot with a clone of this checkout in ``/work``."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='kronos-debian-'))
    options = pip_options()
    mounted = []
    try:
        print(f'# debootstrap {release}', flush=True)
        done = subprocess.run(
            ['debootstrap', '--variant=minbase', f'--include={PACKAGES}', release, folder, mirror],
            capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            raise RuntimeError(f'debootstrap ended with {done.returncode}:\n{done.stdout[-3000:]}')
        for path in folders(options):
            target = folder / path.lstrip('/')
            target.parent.mkdir(parents=True, exist_ok=True)
            if os.path.isdir(path):
                target.mkdir(exist_ok=True)
                subprocess.run(['mount', '--bind', '-o', 'ro', path, target], check=True)
                mounted.append(target)
            else:
                shutil.copy(path, target)
        shutil.copy('/etc/resolv.conf', folder / 'etc/resolv.conf')
        subprocess.run(['git', 'clone', '--quiet', ROOT, folder / 'work'], check=True)
        yield DebianRoot(folder, options)
    finally:
        for target in mounted:
            subprocess.run(['umount', target], check=True)
        if keep:
            print(f'The root is kept: {folder}')
        else:
            shutil.rmtree(folder)


def install(root: DebianRoot) -> None:
    """
    :raises RuntimeError: a command failed
    """
    root.run('python3 -m venv /opt/nova-env')
    # As an operator has it: the Nova that is supported, at versions that fit together.
    root.run('pip install --quiet --constraint constraints.txt nova python-openstackclient')
    for command in commands():
        root.run(command)
    for command in CHECKS:
        root.run(command, '/')
    listed = root.run('openstack command list', '/')
    if 'kronos report' not in listed:
        raise RuntimeError('openstack has no command "kronos report"')
    if not (shared := root.run('ls /opt/nova-env/share/kronos/policies')):
        raise RuntimeError(f'no policies are installed: {shared}')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--release', default='bookworm', help='of Debian (bookworm)')
    parser.add_argument('--mirror', default=MIRROR)
    parser.add_argument('--keep', action='store_true', help='leave the root, for a look')
    given = parser.parse_args()
    if not commands():
        print('install.rst has no commands that install', file=sys.stderr)
        return 1
    try:
        with made(given.release, given.mirror, given.keep) as root:
            install(root)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    print('Kronos is installed by the words of install.rst.')
    return 0


if __name__ == '__main__':
    sys.exit(main())
