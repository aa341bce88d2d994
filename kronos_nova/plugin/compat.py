"""Compatibility of the running Nova with Kronos.

The release has to be known (:func:`version_problem`, cheap, checked when Kronos is loaded). The
methods of Nova that Kronos uses must have the expected parameters (:func:`signature_problems`,
checked when Nova looks up a manager's class). Otherwise the service runs as plain Nova.
"""

import functools
import importlib
import inspect

from nova import version

SUPPORTED = {33: '2026.1', 34: '2026.2'}


def version_problem():
    """Return in one line why this Nova is not supported; None where it is."""
    found = version.version_info.version_string()
    major = found.split('.')[0]
    if major.isdigit() and int(major) in SUPPORTED:
        return None
    known = ', '.join(f'{number} ({name})' for number, name in SUPPORTED.items())
    return (f'Nova {found} is not a release that this Kronos knows ({known}). Install the Kronos '
            f'for it, or remove "driver = kronos" from [oslo_messaging_notifications].')


def signature_problems(expected):
    """Return lines about parts of Nova that are missing or different.

    :param expected: {'module:Class.method': tuple of the names of its parameters}, or None in the
        place of the tuple where only the presence matters
    """
    return [line for line in (_problem(path, names) for path, names in expected.items()) if line]


def _problem(path, names):
    module_name, _, attributes = path.partition(':')
    try:
        found = functools.reduce(getattr, attributes.split('.'),
        importlib.import_module(module_name))
    except (ImportError, AttributeError):
        return f'{path} is missing'
    if names is None:
        return None
    has = tuple(inspect.signature(found).parameters)
    return None if has == tuple(names) else f'{path} takes {has}, not {tuple(names)}'
