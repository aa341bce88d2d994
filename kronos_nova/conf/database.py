"""``[kronos_database]``: where plans, moves, cooldowns and quarantines are kept."""

import copy

from oslo_config import cfg
from oslo_db import options

GROUP = cfg.OptGroup('kronos_database', title='Control database', help="""
Where plans, moves, cooldowns and quarantines are kept. Unset, ``connection`` is an SQLite file
under ``[DEFAULT] state_path``, which serves one controller; with several controllers use
MySQL/MariaDB or PostgreSQL.
""")


def register_opts(conf):
    conf.register_opts(list_opts(), group=GROUP)


def list_opts():
    return copy.deepcopy(options.database_opts)
