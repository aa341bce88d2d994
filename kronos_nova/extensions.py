"""Loading of installed extensions, which are the entry points of a namespace."""

import functools
from importlib.metadata import EntryPoint

from stevedore.extension import ExtensionManager

from kronos_nova import exception


@functools.cache
def installed(namespace: str) -> ExtensionManager:
    """Import all entry points of a namespace and return their ExtensionManager. A process imports
    the entry points only once, so it does not find packages that are installed later.

    :raises ConfigurationError: an entry point cannot be imported. Such an entry point is not
        skipped, because it may be a constraint, and plans that ignore a constraint are not safe
    """
    return ExtensionManager(namespace, on_load_failure_callback=_refuse)


def _refuse(_manager: ExtensionManager, entry_point: EntryPoint, error: BaseException) -> None:
    raise exception.ConfigurationError(
        what=f'entry point "{entry_point.name} = {entry_point.value}" of {entry_point.group}',
        problem=f'cannot be imported: {type(error).__name__}: {error}',
        remedy='Repair or remove the package that installed it') from error
