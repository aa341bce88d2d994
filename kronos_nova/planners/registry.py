"""Finds the installed planners by name."""

from kronos_nova import exception
from kronos_nova import extensions
from kronos_nova.planners.base import Planner

NAMESPACE = 'kronos_nova.planners'


def load(name: str, **arguments) -> Planner:
    """The planner called ``name``.

    :raises ConfigurationError: none of that name is installed, or one that is cannot be imported
    """
    found = extensions.installed(NAMESPACE)
    if name not in found:
        raise exception.ConfigurationError(
            what=f'planner "{name}"', problem='no planner of that name is installed',
            remedy=f'Choose one of: {", ".join(sorted(found.names()))}')
    return found[name].plugin(**arguments)
