"""Filters for log messages that libraries repeat with every call and that need no action.

There is one filter, on the logger of neutronclient in nova-conductor and in commands.

Launchpad: no bug is known. Option: ``[kronos_fixes] log_filters``.
"""

import logging

import nova.conf

CONF = nova.conf.CONF

NOISE = {
    # Logged for every client that Nova makes, one for each step of each migration.
    'neutronclient.v2_0.client': 'The python binding code in neutronclient is deprecated',
}


class _Filter(logging.Filter):
    def __init__(self, beginning: str):
        super().__init__()
        self._beginning = beginning

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(self._beginning)


def install() -> None:
    """Set the filters, unless ``[kronos_fixes] log_filters`` is off. A repeated call changes
    nothing."""
    if not CONF.kronos_fixes.log_filters:
        return
    for name, beginning in NOISE.items():
        logger = logging.getLogger(name)
        if not any(isinstance(each, _Filter) for each in logger.filters):
            logger.addFilter(_Filter(beginning))
