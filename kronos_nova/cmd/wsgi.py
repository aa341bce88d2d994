"""The API for a web server that loads WSGI applications: ``kronos_nova.cmd.wsgi:application``.

The application reads the same configuration files as Nova's own services. If the environment
variable ``OS_KRONOS_CONFIG_FILES`` is set, the application reads the files that are listed there,
separated by colons.
"""

import os

from kronos_nova.plugin import standalone

standalone.hide_eventlet()

# ruff: noqa: E402
from kronos_nova.cmd import api
from kronos_nova.engine import gc_tuning

application = api.make(api.load(
    [f'--config-file={path}' for path in
     filter(None, os.environ.get('OS_KRONOS_CONFIG_FILES', '').split(':'))]))
gc_tuning.exempt_loaded_objects()
