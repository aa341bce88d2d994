"""``kronos-status upgrade check``: whether this installation may be (re)started.

Exit codes are oslo.upgradecheck's: 0 all is well, 1 a warning, 2 something must be done first, 255
the check itself broke.
"""

import sys

from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_upgradecheck import upgradecheck

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate


class Checks(upgradecheck.UpgradeCommands):
    def __init__(self, conf):
        super().__init__()
        self.conf = conf

    def _control_database(self):
        try:
            migrate.check(db_engine.control_engine(self.conf), migrate.CONTROL)
        except (exception.ConfigurationError, db_exception.DBError) as error:
            return upgradecheck.Result(upgradecheck.Code.FAILURE, str(error))
        return upgradecheck.Result(upgradecheck.Code.SUCCESS)

    _upgrade_checks = (
        ('Control database', _control_database),
    )


def main(argv=None):
    """:returns: the exit code"""
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    return upgradecheck.main(conf, project='nova', upgrade_command=Checks(conf),
                             argv=sys.argv[1:] if argv is None else argv)
