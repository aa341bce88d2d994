"""Extensions that are installed under a namespace of entry points."""

import functools

from stevedore.extension import ExtensionManager

from kronos_nova import exception


@functools.cache
def installed(namespace: str) -> ExtensionManager:
    """Import all entry points of a namespace. A package that is installed later is found by a new
    process.

    :raises ConfigurationError: one cannot be imported: to go on without it would not be safe
    """
    return ExtensionManager(namespace, on_load_failure_callback=_refuse)


def _refuse(_manager, entry_point, error):
    raise exception.ConfigurationError(
        what=f'entry point "{entry_point.name} = {entry_point.value}" of {entry_point.group}',
        problem=f'cannot be imported: {type(error).__name__}: {error}',
        remedy='Repair the package that it comes from, or remove it') from error
