"""What is installed under a namespace of entry points."""

from stevedore.extension import ExtensionManager


def installed(namespace: str) -> ExtensionManager:
    """All of a namespace, imported.

    :raises Exception: whatever one that cannot be imported raises: to go on without it would not be
        safe
    """
    return ExtensionManager(namespace, on_load_failure_callback=_refuse)


def _refuse(_manager, _entry_point, error):
    raise error
