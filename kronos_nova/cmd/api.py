"""``kronos-api``: the HTTP API."""

import argparse
import functools
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_context import context
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.api import application
from kronos_nova.api import events
from kronos_nova.api.event_feed import Feed
from kronos_nova.api.operation import Services
from kronos_nova.api.protocol import Application
from kronos_nova.cmd import api_server
from kronos_nova.cmd import cloud
from kronos_nova.cmd import database as databases
from kronos_nova.cmd import manage
from kronos_nova.cmd import replay
from kronos_nova.conf import invalid_values
from kronos_nova.engine import gc_tuning
from kronos_nova.inventory import request_clock
from kronos_nova.operations.snapshots import SnapshotFolder

NAME = 'kronos-api'
GROUPS = ('kronos', 'kronos_api', 'kronos_database', 'kronos_executor')
"""Names of the groups of options without which hardly any operation works."""
HEALTHCHECK = '/healthcheck'

MOST_UNSENT = 2 ** 20
"""Maximum number of bytes of an answer that wait in memory until the client reads them. If more
bytes wait, the thread that produces the answer pauses. Raised, slow clients hold more memory;
lowered, slow clients hold a thread for longer. Not measured."""

STUCK_SECONDS = 30
"""Seconds after which a connection is closed if its client has not acknowledged the data that were
sent (``TCP_USER_TIMEOUT``). Raised, a client that has disappeared holds a thread for longer;
lowered, clients with bad network connections are cut off. Not measured."""

WAITING = 4
"""Factor by which the option ``[kronos_api] threads`` is multiplied to get the maximum number of
requests in progress in one process. The factor allows for requests that only wait for keystone or
the control database. Further requests are refused with status 503. Raised, more threads wait while
keystone or the control database does not answer; lowered, more requests are refused when many
arrive at once. Not measured."""

SPARE = 2
"""Number of threads of the server in addition to one thread for each permitted request and event
stream. The additional threads answer health checks, and refuse requests above the limit. Raised, a
process takes more memory; lowered, health checks may get no answer while keystone does not answer.
Not measured."""

AGAIN_SECONDS = 5
"""Seconds in the header ``Retry-After`` of the answer to a request that was refused because too
many requests are in progress. Raised, clients wait longer than necessary; lowered, clients are
refused again more often. Not measured."""

LARGER = 10
"""Factor on the option ``max_request_body_size``. If a request body is larger than the option
permits, the server reads the body to its end and answers with an error that names the option. A
body that is larger than the option times this factor is cut off while it arrives. Raised, clients
without a token can use more memory; lowered, more clients are cut off without an explanation. Not
measured."""

ANSWER_SECONDS = 5
"""Maximum seconds to wait until the control database accepts a connection. The same maximum applies
to the answer to each query. Raised, threads wait longer for a database that is down; lowered, a
busy database counts as down. Chosen far above the 0.05 s of the slowest query, and below the 20 s
that the web page waits."""

SILENT_SECONDS = 5
"""Seconds for which kronos-api sends no queries to the control database after the database did not
answer. Raised, kronos-api stays without the database for longer after an outage; lowered, more
threads wait for a database that is down. Chosen longer than the time for which a failed database
transaction is tried again."""

LOG = logging.getLogger(__name__)


class _App:
    """A substitute for the application of a command, with the attributes that
    :func:`kronos_nova.cmd.cloud.open_cloud` needs."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.conf = conf
        self.options = argparse.Namespace(config_file=conf.config_file, config_dir=conf.config_dir)


def services(conf: cfg.ConfigOpts) -> Services:
    """Return the Services that the operations of kronos-api use.

    :raises ConfigurationError: the value of an option is invalid
    :raises DatabaseVersionError: the control database is not at the revision of this code
    :raises DBError: the control database does not answer
    """
    invalid_values.refuse(conf, *GROUPS)

    @functools.cache
    def opened() -> cloud.Cloud:
        return cloud.open_cloud(_App(conf))

    group = conf.kronos_api
    database = databases.impatient_database(conf, ANSWER_SECONDS, SILENT_SECONDS)
    return Services(
        conf=conf, database=database, utcnow=database.utcnow, read_cloud=lambda: opened().read(),
        read_flavors=lambda: opened().read_flavors(),
        host_api=lambda: opened().hosts,
        room_allocations=lambda: opened().room_allocations(),
        planner_ports=lambda: cloud.planner_ports(conf, opened().dry_run),
        feed=Feed(events.EventSource(conf, database), database.utcnow, group.listeners),
        snapshots=SnapshotFolder(group.snapshots_path, group.replay_seconds, group.replay_memory,
                                 replay.__name__))


def make(conf: cfg.ConfigOpts) -> Application:
    """Make the WSGI application.

    :raises DatabaseVersionError: the control database is not at the revision of this code
    """
    return application.make(conf, services(conf))


def serve(made: Application, conf: cfg.ConfigOpts) -> api_server.Server:
    """Make a server for an application. The server listens when this function returns.

    An open stream of events occupies a thread. The server therefore has a thread for each permitted
    stream, in addition to the threads for other requests and health checks.

    :raises ConfigurationError: the server cannot listen at the configured address
    """
    group = conf.kronos_api
    most = WAITING * group.threads
    try:
        server = api_server.create(
            AdmissionLimit(made, most), group.listeners, host=group.address, port=group.port,
            threads=most + SPARE + group.listeners,
            outbuf_high_watermark=MOST_UNSENT, ident=None,
            # By default waitress removes the headers of a proxy, so every client would have the
            # proxy's address.
            clear_untrusted_proxy_headers=not conf.oslo_middleware.enable_proxy_headers_parsing,
            max_request_body_size=LARGER * conf.oslo_middleware.max_request_body_size)
    except OSError as error:
        raise exception.ConfigurationError(
            what='[kronos_api] port', problem=f'{group.address} port {group.port}: {error}',
            remedy='Set address to an address of this host, and port to a free port.') from error
    # waitress has no argument for socket options, but sets these for every connection.
    server.adj.socket_options = [*server.adj.socket_options, (
        socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * STUCK_SECONDS)]
    gc_tuning.exempt_loaded_objects()
    return server


class AdmissionLimit:
    """A middleware that refuses further requests while ``most`` requests are in progress. It never
    refuses a health check. Without the limit, requests that wait for keystone could occupy all
    threads, and the health check of a load balancer would time out."""

    def __init__(self, application: Application, most: int):
        self._application = application
        self._slots = threading.BoundedSemaphore(most)

    def __call__(self, environ: dict[str, Any],
                 start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ['PATH_INFO'] == HEALTHCHECK:
            # A health check needs no token, so keystone is not asked about one.
            environ.pop('HTTP_X_AUTH_TOKEN', None)
            return self._application(environ, start_response)
        if not self._slots.acquire(blocking=False):
            return _refuse(start_response)
        try:
            return self._application(environ, start_response)
        finally:
            self._slots.release()


def _refuse(start_response: Callable[..., Any]) -> list[bytes]:
    # The request does not reach the middleware that makes the ids of other requests.
    request_id = context.generate_request_id()
    body = json.dumps({'errors': [{
        'status': 503, 'title': 'Service Unavailable', 'code': 'kronos.busy', 'detail':
        'Too many requests wait, for keystone or for the control database; ask again in a few '
        'seconds.', 'request_id': request_id}]}).encode()
    start_response('503 Service Unavailable', [
        ('Content-Type', 'application/json'), ('Content-Length', str(len(body))),
        ('Retry-After', str(AGAIN_SECONDS)), ('X-Openstack-Request-Id', request_id)])
    return [body]


def ask_keystone_once(conf: cfg.ConfigOpts) -> None:
    """Set the default of ``[keystone_authtoken] http_request_max_retries`` to 0, so that a request
    to keystone is not repeated. With keystonemiddleware's own default, a thread would wait 22 s for
    a keystone that does not answer."""
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
    conf.set_default('http_request_max_retries', 0, 'keystone_authtoken')


def load(arguments: list[str]) -> cfg.ConfigOpts:
    """Read the configuration of kronos-api.

    :param arguments: the command line
    """
    conf = manage.load_service_config(cfg.ConfigOpts(), NAME, arguments)
    request_clock.install()
    ask_keystone_once(conf)
    return conf


def main(argv: list[str] | None = None) -> int:
    """Run kronos-api.

    :returns: the exit status: 0 ended by a signal, 1 the configuration is wrong
    """
    try:
        conf = load(sys.argv[1:] if argv is None else argv)
        group, used = conf.kronos_api, services(conf)
        server = serve(application.make(conf, used), conf)
    except (exception.KronosException, cfg.Error, OSError) as error:
        print(f'{NAME}: {error}', file=sys.stderr)
        return 1
    except db_exc.DBError as error:
        print(f'{NAME}: {databases.does_not_answer(error)}', file=sys.stderr)
        return 1
    LOG.info('The API is at http://%s:%d/', group.address, group.port)

    def end(*_signal: object) -> None:
        used.feed.close()
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    server.run()    # returns once the requests in progress are served
    return 0
