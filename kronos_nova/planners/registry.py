"""Finds the installed planners by name."""

from stevedore import extension

from kronos_nova import exception
from kronos_nova.planners.base import Planner

NAMESPACE = 'kronos_nova.planners'


def check(name: str):
    """Make sure that there is a planner called ``name``.

    :raises ConfigurationError: none of that name is installed
    """
    _find(name)


def load(name: str, **arguments) -> Planner:
    """The planner called ``name``.

    :raises ConfigurationError: none of that name is installed
    """
    return _find(name).plugin(**arguments)


def _find(name):
    found = extension.ExtensionManager(NAMESPACE, on_load_failure_callback=_refuse)
    if name not in found:
        raise exception.ConfigurationError(
            what=f'planner "{name}"', problem='no planner of that name is installed',
            remedy=f'Choose one of: {", ".join(sorted(found.names()))}')
    return found[name]


def _refuse(_manager, _entry_point, error):
    raise error
