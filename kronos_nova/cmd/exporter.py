"""``kronos-exporter``: the service that gives Prometheus the metrics of Kronos."""

import signal
import sys
import threading
from wsgiref.simple_server import WSGIServer

import prometheus_client
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.cmd import database as databases
from kronos_nova.cmd import manage
from kronos_nova.cmd import prometheus_collector
from kronos_nova.conf import invalid_values

NAME = 'kronos-exporter'
GROUPS = ('kronos', 'kronos_database', 'kronos_executor', 'kronos_exporter')
"""Names of the groups of options that the metrics depend on."""

LOG = logging.getLogger(__name__)


def serve(conf: cfg.ConfigOpts) -> tuple[WSGIServer, threading.Thread]:
    """Start an HTTP server in a new thread. The server answers the scrapes of Prometheus.

    :returns: the server and its thread
    :raises DatabaseVersionError: the control database is not at the revision of this code
    :raises DBError: the control database does not answer
    :raises ConfigurationError: the server cannot listen at the configured address; or the value of
        an option is invalid
    """
    invalid_values.refuse(conf, *GROUPS)
    # If a scrape waited for a database, Prometheus would give it up, and would not even get the
    # metric which says that the database does not answer.
    database = databases.impatient_database(conf)
    registry = prometheus_client.CollectorRegistry()
    registry.register(prometheus_collector.Collector(conf, database, database.utcnow))
    group = conf.kronos_exporter
    try:
        return prometheus_client.start_http_server(group.port, addr=group.address,
                                                   registry=registry)
    except OSError as error:
        raise exception.ConfigurationError(
            what='[kronos_exporter] port', problem=f'{group.address} port {group.port}: {error}',
            remedy='Set address to an address of this host, and port to a free port.') from error


def main(argv: list[str] | None = None) -> int:
    """Run kronos-exporter.

    :returns: the exit status: 0 after a signal to end, 1 for an unusable configuration
    """
    try:
        conf = manage.load_service_config(
            cfg.ConfigOpts(), NAME, sys.argv[1:] if argv is None else argv)
        server, thread = serve(conf)
    except (exception.KronosException, cfg.Error) as error:
        print(f'{NAME}: {error}', file=sys.stderr)
        return 1
    except db_exc.DBError as error:
        print(f'{NAME}: {databases.does_not_answer(error)}', file=sys.stderr)
        return 1
    LOG.info('The metrics are served at http://%s:%d/metrics', *server.server_address[:2])
    signal.signal(signal.SIGTERM, lambda *_signal: sys.exit(0))
    try:
        thread.join()
    except KeyboardInterrupt:
        server.shutdown()
    return 0
