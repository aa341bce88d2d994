"""The user who runs a command. The user is read from the kernel, because any user could change
environment variables."""

import os
import pathlib
import pwd

LOGIN_UID = pathlib.Path('/proc/self/loginuid')
NOBODY_LOGGED_IN = 2 ** 32 - 1
"""User id that Linux shows in ``loginuid`` of a process that no logged-in user has started (no
unit). Fixed by Linux."""


def user() -> str:
    """Return the user of this process, such as "root". If another user has logged in, return both,
    such as "alice as root"."""
    running = _name_of(os.getuid())
    login = _login_uid()
    if login is None or login == os.getuid():
        return running
    return f'{_name_of(login)} as {running}'


def _login_uid() -> int | None:
    """Return the id of the user who has logged in. sudo and su do not change this id, and users
    cannot change it. Return None if there was no login, as in a service or a container."""
    try:
        uid = int(LOGIN_UID.read_text())
    except (OSError, ValueError):
        return None
    return None if uid == NOBODY_LOGGED_IN else uid


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f'uid {uid}'
