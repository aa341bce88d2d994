"""The automation levels that nova.conf sets for aggregates."""

from oslo_config import cfg

from kronos_nova import exception
from kronos_nova.objects import automation


def defaults(conf: cfg.ConfigOpts) -> automation.Defaults:
    """Return the automation levels that nova.conf sets.

    :raises ConfigurationError: a level is not one of :data:`~kronos_nova.objects.automation.LEVELS`
    """
    group = conf.kronos
    for name, level in sorted(group.aggregate_automation.items()):
        if level not in automation.LEVELS:
            raise exception.ConfigurationError(
                what=f'[kronos] aggregate_automation, {name}',
                problem=f'there is no level of automation "{level}"',
                remedy='Set it to "off", "observe", "approve" or "auto".')
    return automation.Defaults(level=group.automation, levels=dict(group.aggregate_automation),
                               ceiling=group.max_automation, repairs=group.repair_automation)
