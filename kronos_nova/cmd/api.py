"""``kronos-api``: what Kronos does and may be told to do, over HTTP."""

import argparse
import functools
import signal
import sys

import keystonemiddleware.auth_token  # noqa: F401 - registers options that nova.conf has
import waitress
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import timeutils

from kronos_nova import exception
from kronos_nova.api import application
from kronos_nova.api.call import Services
from kronos_nova.cmd import cloud
from kronos_nova.cmd import control
from kronos_nova.cmd import manage

NAME = 'kronos-api'

LOG = logging.getLogger(__name__)


class _App:
    """What :func:`kronos_nova.cmd.cloud.open_cloud` needs of a command."""

    def __init__(self, conf):
        self.conf = conf
        self.options = argparse.Namespace(config_file=conf.config_file, config_dir=conf.config_dir)


def make(conf):
    """The WSGI application.

    :raises DatabaseVersionError: the control database is not what this code needs
    """
    @functools.cache
    def opened():
        return cloud.open_cloud(_App(conf))

    return application.make(conf, Services(
        conf=conf, database=control.database(conf), utcnow=timeutils.utcnow,
        read_cloud=lambda: opened().read(), planner_ports=lambda: cloud.ports(conf)))


def load(arguments):
    """
    :param arguments: the command line
    """
    return manage.load_service_config(cfg.ConfigOpts(), NAME, arguments)


def main(argv=None):
    """:returns: the exit status: 0 told to end, 1 the configuration does not do"""
    try:
        conf = load(sys.argv[1:] if argv is None else argv)
        group = conf.kronos_api
        server = waitress.create_server(make(conf), host=group.address, port=group.port,
                                        threads=group.threads, ident=None)
    except (exception.KronosException, cfg.Error, OSError) as error:
        print(f'{NAME}: {error}', file=sys.stderr)
        return 1
    LOG.info('The API is at http://%s:%d/', group.address, group.port)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.run()    # which ends with what it is at when it is told to
    return 0
