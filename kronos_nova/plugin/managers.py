"""The manager classes, under the names that :mod:`kronos_nova.plugin.entry` registers with Nova.

Nova imports a manager's class by its dotted name. The names of this module are resolved at that
moment, for two reasons. A service imports only its own part of Kronos. And the name stands for
Nova's own class where Nova lacks something that Kronos' class needs.
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


def resolve(name):
    """Return (manager class to use, problems). The class is Kronos' where it fits the installed
    Nova. Otherwise it is Nova's own, and the problems are lines that say why.

    The module of Kronos' class lists the parts of Nova that it needs in ``EXPECTED``.
    """
    ours, stock = CLASSES[name]
    try:
        module = importlib.import_module(ours.partition(':')[0])
    except Exception as e:  # the service has to start after any error
        return _load(stock), [f'{ours} could not be imported ({e.__class__.__name__}: {e})']
    problems = compat.signature_problems(module.EXPECTED)
    return _load(stock if problems else ours), problems


def _load(path):
    module_name, _, class_name = path.partition(':')
    return getattr(importlib.import_module(module_name), class_name)


def __getattr__(name):
    if name not in CLASSES:
        raise AttributeError(name)
    manager, problems = resolve(name)
    if problems:
        LOG.error('Kronos is not loaded, and this service runs as plain Nova: %s',
                  '; '.join(problems))
    globals()[name] = manager
    return manager
