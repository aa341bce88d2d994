"""Checks that Kronos works with the running Nova.

:func:`version_problem` checks the release of Nova, when Kronos is loaded.
:func:`signature_problems` checks the parameters of Nova's methods that Kronos uses, when Nova looks
up a manager's class. If a check fails, the service runs as plain Nova.
"""

import functools
import importlib
import inspect
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova import version

SUPPORTED = {33: '2026.1', 34: '2026.2'}


def version_problem() -> str | None:
    """Return one line that says why this release of Nova is not supported. Return None if the
    release is supported."""
    found = version.version_info.version_string()
    major = found.split('.')[0]
    if major.isdigit() and int(major) in SUPPORTED:
        return None
    known = ', '.join(f'{number} ({name})' for number, name in SUPPORTED.items())
    return (f'Nova {found} is not a release that this Kronos knows ({known}). Install the Kronos '
            f'for it, or remove "driver = kronos" from [oslo_messaging_notifications].')


def signature_problems(expected: Mapping[str, Sequence[str] | None]) -> list[str]:
    """Return one line for each part of Nova that is missing or has other parameters than expected.

    :param expected: {'module:Class.method': tuple of the names of its parameters}; None in place of
        a tuple means that only the presence of the part is checked
    """
    return [line for line in (_problem(path, names) for path, names in expected.items()) if line]


def _problem(path: str, names: Sequence[str] | None) -> str | None:
    module_name, _, attributes = path.partition(':')
    try:
        found: Any = functools.reduce(getattr, attributes.split('.'),
                                      importlib.import_module(module_name))
    except (ImportError, AttributeError):
        return f'{path} is missing'
    if names is None:
        return None
    has = tuple(inspect.signature(found).parameters)
    return None if has == tuple(names) else f'{path} takes {has}, not {tuple(names)}'
