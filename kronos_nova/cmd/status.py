"""``kronos-status upgrade check``: check whether Kronos may be started or restarted here.

Exit codes are oslo.upgradecheck's: 0 all checks passed, 1 a warning, 2 something must be done
first, 255 the command itself failed.
"""

import importlib.util
import sys

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.cmd import manage
from kronos_nova.cmd import roles
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.db.error_text import error_text

BROKEN = 255
"""Exit code of ``kronos-status upgrade check`` if the command could not check anything (no unit).
Fixed by oslo.upgradecheck."""


class Checks(upgradecheck.UpgradeCommands):
    def __init__(self, conf: cfg.ConfigOpts):
        super().__init__()
        self.conf = conf

    def _control_database(self) -> upgradecheck.Result:
        """Check the revision of the control database. A compute host needs no control database, so
        there only a database that is configured is checked."""
        if (self.conf.kronos_database.connection is None
                and roles.guess(self.conf) == roles.COMPUTE):
            return upgradecheck.Result(upgradecheck.Code.SUCCESS,
                                       'A compute host does not need it.')
        try:
            migrate.check(db_engine.control_engine(self.conf), migrate.CONTROL)
        except exception.KronosException as error:
            return upgradecheck.Result(upgradecheck.Code.FAILURE, str(error))
        except Exception as error:  # libraries raise many kinds of errors for a wrong configuration
            return upgradecheck.Result(upgradecheck.Code.FAILURE,
                                       f'[kronos_database]: {error_text(error)}')
        return upgradecheck.Result(upgradecheck.Code.SUCCESS)

    def _nova(self) -> upgradecheck.Result:
        """Check that all parts of Kronos support the installed release of Nova. If no Nova is
        installed, the result is a warning."""
        if importlib.util.find_spec('nova') is None:
            return upgradecheck.Result(upgradecheck.Code.WARNING, 'Nova is not installed here.')
        from kronos_nova.plugin import compat
        from kronos_nova.plugin import managers
        wrong_version = compat.version_problem()
        problems = [wrong_version] if wrong_version else [
            problem for name in managers.CLASSES for problem in managers.resolve(name)[1]]
        if problems:
            return upgradecheck.Result(upgradecheck.Code.FAILURE, '; '.join(problems))
        return upgradecheck.Result(upgradecheck.Code.SUCCESS)

    _upgrade_checks = (
        ('Nova', _nova),
        ('Control database', _control_database),
    )


def main(argv: list[str] | None = None) -> int:
    """Run kronos-status.

    :returns: the exit code
    """
    argv = sys.argv[1:] if argv is None else argv
    if argv == ['--version']:   # which oslo.upgradecheck does not have
        print(f'kronos-status {manage.version_string()}')
        return 0
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    try:
        return upgradecheck.main(conf, project='nova', upgrade_command=Checks(conf), argv=argv)
    except (OSError, UnicodeError) as error:
        print(f'kronos-status: a configuration file cannot be read: {error}', file=sys.stderr)
        return BROKEN
