"""Tests against real services in one process.

Nova decides its concurrency mode when ``nova.tests.functional`` is imported, which therefore comes
before any other import of Nova. Native threading is what Nova's conductor and scheduler default to;
``OS_NOVA_DISABLE_EVENTLET_PATCHING=false`` runs the same tests under eventlet.
"""

import os

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

import nova.tests.functional  # noqa: E402, F401
