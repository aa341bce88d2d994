"""The manager classes, under the names that :mod:`kronos_nova.plugin.entry` registers with Nova.

Nova imports a manager's class by its dotted name. The class is chosen only when Nova looks up the
name. So a service imports only its own part of Kronos. If Nova lacks a part that Kronos' class
needs, the name refers to Nova's own class.
"""

import importlib

from oslo_log import log as logging

from kronos_nova.plugin import compat

LOG = logging.getLogger(__name__)

# {name: (module and class of Kronos, module and class of Nova)}
CLASSES = {
    'Conductor': ('kronos_nova.plugin.conductor:KronosConductorManager',
                  'nova.conductor.manager:ConductorManager'),
    'Compute': ('kronos_nova.plugin.compute:KronosComputeManager',
                'nova.compute.manager:ComputeManager'),
    'Scheduler': ('kronos_nova.plugin.scheduler:KronosSchedulerManager',
                  'nova.scheduler.manager:SchedulerManager'),
}


def resolve(name: str) -> tuple[type, list[str]]:
    """Return (manager class to use, problems). The class is that of Kronos if it fits the installed
    Nova. Otherwise the class is Nova's own, and the problems are lines that say why.

    ``EXPECTED`` in the module of Kronos' class lists the parts of Nova that the class needs.
    """
    ours, stock = CLASSES[name]
    try:
        module = importlib.import_module(ours.partition(':')[0])
    except Exception as e:  # the service has to start after any error
        return _load(stock), [f'{ours} could not be imported ({e.__class__.__name__}: {e})']
    problems = compat.signature_problems(module.EXPECTED)
    return _load(stock if problems else ours), problems


def _load(path: str) -> type:
    module_name, _, class_name = path.partition(':')
    return getattr(importlib.import_module(module_name), class_name)


def __getattr__(name: str) -> type:
    if name not in CLASSES:
        raise AttributeError(name)
    manager, problems = resolve(name)
    if problems:
        LOG.error('Kronos is not loaded, and this service runs as plain Nova: %s',
                  '; '.join(problems))
    globals()[name] = manager
    return manager
