"""Keeps out of the log what libraries say with every call and no operator can do anything about."""

import logging

NOISE = {
    # With every client that Nova makes, which it does for each step of each migration.
    'neutronclient.v2_0.client': 'The python binding code in neutronclient is deprecated',
}


class _Filter(logging.Filter):
    def __init__(self, beginning):
        super().__init__()
        self._beginning = beginning

    def filter(self, record):
        return not record.getMessage().startswith(self._beginning)


def install():
    """Harmless when repeated."""
    for name, beginning in NOISE.items():
        logger = logging.getLogger(name)
        if not any(isinstance(each, _Filter) for each in logger.filters):
            logger.addFilter(_Filter(beginning))
