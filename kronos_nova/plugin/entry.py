"""Entry point by which Nova loads Kronos: a notification driver that sends nothing.

``[oslo_messaging_notifications] driver = kronos`` makes every Nova service construct this driver in
``rpc.init()``, before the service looks up its manager class in ``nova.service.SERVICE_MANAGERS``.
The driver enters Kronos' managers into this mapping. The driver runs in every service, before
workers fork, so it imports hardly anything and starts no thread.
"""

import functools
import sys
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log as logging
from oslo_messaging.notify import notifier

from kronos_nova import conf as kronos_conf
from kronos_nova.conf import invalid_values
from kronos_nova.plugin import compat

LOG = logging.getLogger(__name__)

MANAGERS = {
    'nova-conductor': 'kronos_nova.plugin.managers.Conductor',
    'nova-compute': 'kronos_nova.plugin.managers.Compute',
    'nova-scheduler': 'kronos_nova.plugin.managers.Scheduler',
}


class KronosDriver(notifier.Driver):
    """A driver of oslo.messaging that registers Kronos' managers with Nova, and drops every
    notification."""

    _is_refused = False

    def __init__(self, conf: cfg.ConfigOpts, topics: Sequence[str], transport: object):
        super().__init__(conf, topics, transport)
        # A service without a manager (nova-api) never imports nova.service, nor does importing it
        # here early do any good: under native threading that would pull in eventlet.
        service = sys.modules.get('nova.service')
        if service is None or service.SERVICE_MANAGERS.items() >= MANAGERS.items():
            return
        if not _is_usable():
            return
        kronos_conf.register_opts(conf)
        if self._is_refused or _refuse_mistyped(conf):
            KronosDriver._is_refused = True
            return
        service.SERVICE_MANAGERS.update(MANAGERS)

    def notify(self, ctxt: object, message: object, priority: str, retry: int | None) -> None:
        """Do nothing. The other drivers that nova.conf names send the notification."""


@functools.cache
def _is_usable() -> bool:
    """Return whether this release of Nova is supported, and log the problem if it is not. The
    answer is cached, because Nova constructs a driver for each of its notifiers."""
    problem = compat.version_problem()
    if problem:
        LOG.error('Kronos is not loaded, and this service runs as plain Nova: %s', problem)
    return not problem


def _refuse_mistyped(conf: cfg.ConfigOpts) -> bool:
    """Log the options of Kronos whose values oslo.config refuses, and set these options to their
    defaults. Otherwise such a value would make Nova fail, because Nova reads all options when it
    starts, and some with every request.

    :returns: True if there are refused values, otherwise False
    """
    wrong = invalid_values.values(conf)
    if wrong:
        invalid_values.use_defaults(conf, wrong)
        LOG.error('Kronos is not loaded, and this service runs as plain Nova until these options '
                  'are corrected and the service is restarted: %s',
                  invalid_values.described(wrong))
    return bool(wrong)
