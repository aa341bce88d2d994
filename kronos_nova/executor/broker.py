"""Sending and receiving of tasks, results and notifications by oslo.messaging. The module works
with native threads and with eventlet."""

import contextlib
import importlib
import threading
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.executor import messages
from kronos_nova.executor.pending_stops import PendingStop
from kronos_nova.executor.pending_stops import PendingStops
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.notification import Notification

LOG = logging.getLogger(__name__)

SEND_RETRIES = 1
"""Number of further attempts to send a message to the broker after the first attempt has failed.
Raised, the executor waits longer for a broker that is down; lowered to 0, a message is lost if the
broker has closed the connection since the previous message. A lost task is sent again later; a lost
result is read from the journal later. Not measured."""
POOL_SIZE = 2
"""Number of threads with which one executor handles messages from the broker. Raised, more messages
are handled at the same time; lowered to 1, a message whose handling takes long delays all others.
Not measured."""

STOP_SECONDS = 2
"""Maximum seconds to wait for the end of message servers. A server that receives no message takes
up to 5 seconds to stop. Raised, the moves of a process that ends are left to other processes later;
lowered, more messages are received by a process that does not accept them any more, and are sent
again after ``message_grace``. Chosen because Nova may kill a process after a few seconds."""

CONTROL_EXCHANGE = 'nova'
"""Exchange (no unit) of RPC messages. It is Nova's own exchange, so that conductors, daemons and
commands reach each other."""


SENDING_OPTIONS = {'oslo_messaging._metrics.client': 'oslo_messaging_metrics',
                   'oslo_messaging._tracing.client': 'oslo_messaging_tracing'}
"""Option groups that oslo.messaging reads when it sends a message, as {module of oslo.messaging:
name of the group}. The module lists the options of the group in an attribute that has the name of
the group."""


class Transports:
    """The connections of one process to the message broker: one for RPC, and one for notifications.
    They are created after the process has forked, because processes cannot share connections.

    :param conf: the ConfigOpts with ``transport_url``
    """

    def __init__(self, conf: cfg.ConfigOpts):
        register_options(conf)
        self.rpc = messaging.get_rpc_transport(conf)
        self.notification = messaging.get_notification_transport(conf)

    def close(self) -> None:
        self.rpc.cleanup()
        self.notification.cleanup()


def register_options(conf: cfg.ConfigOpts) -> None:
    """Register in ``conf`` the options that oslo.messaging reads with each message. oslo.messaging
    itself registers these options only in the global configuration."""
    for module, group in SENDING_OPTIONS.items():
        try:
            options = getattr(importlib.import_module(module), group)
        except (ImportError, AttributeError):
            continue  # This release of oslo.messaging has no such options.
        conf.register_opts(options, group=group)


@contextlib.contextmanager
def _sending() -> Iterator[None]:
    """Convert errors of the ``with`` block, which sends a message, to errors of oslo.messaging. If
    oslo.messaging opens a new connection for the message, it does not convert all errors itself.

    :raises MessagingException: the message was not sent
    """
    try:
        yield
    except messaging.MessagingException:
        raise
    except Exception as error:  # errors of the driver, of kombu and of the operating system
        raise messaging.MessageDeliveryFailure(str(error)) from error


class TaskSender:
    """A sender of tasks to the executors. A task is a message which says that a move waits to be
    carried out."""

    def __init__(self, transports: Transports):
        self._client = messaging.get_rpc_client(
            transports.rpc, messaging.Target(version=messages.TASK_VERSION), retry=SEND_RETRIES)

    def cast(self, move: MoveRecord) -> None:
        """Send the task of a move to the executors of the move's aggregate. No error is raised if
        the message is lost. If no executor accepts the move, the dispatcher sends the task again
        later."""
        topic = messages.migrations_topic(move.aggregate)
        try:
            with _sending():
                self._client.prepare(topic=topic).cast(
                    {}, 'execute_migration', task=messages.task(move))
        except messaging.MessagingException as e:
            LOG.warning('Move %s could not be sent to the executors on topic %s, and is sent again '
                        'later: %s', move.uuid, topic, e)


class ResultNotifier:
    """A sender of notifications about the results of moves."""

    def __init__(self, transports: Transports, publisher: str):
        self._transports = transports
        self._publisher = publisher
        self._notifiers: dict[str, messaging.Notifier] = {}

    def announce(self, move: MoveRecord) -> None:
        """Send a notification that one try of a move has ended. An error is logged and not
        raised."""
        event, payload = messages.result(move)
        self._to(move.aggregate).info({}, event, payload)

    def _to(self, aggregate: str) -> messaging.Notifier:
        topic = messages.results_topic(aggregate)
        if topic not in self._notifiers:
            self._notifiers[topic] = messaging.Notifier(
                self._transports.notification, f'kronos-executor.{self._publisher}',
                driver='messagingv2', topics=[topic], retry=SEND_RETRIES)
        return self._notifiers[topic]


class NotificationSender:
    """A sender of notifications that raises an error if the broker does not accept a notification,
    so that the notification can be sent again. The Notifier of oslo.messaging cannot be used for
    this: it raises no error, and gives a repeated notification a new id."""

    def __init__(self, transports: Transports, topics: Sequence[str], host: str):
        self._transport = transports.notification
        self._topics = topics
        self._publisher = f'kronos:{host}'

    def send(self, notification: Notification) -> None:
        """Send a notification to each topic.

        :raises Exception: the broker did not accept the notification on every topic; the error is
            of one of many types
        """
        # oslo.messaging's own notifications have such a time too, without a zone.
        timestamp = str(clock.naive(notification.at))
        message = {
            'message_id': notification.uuid, 'publisher_id': self._publisher,
            'event_type': notification.event_type, 'priority': notification.priority.upper(),
            'payload': notification.payload, 'timestamp': timestamp}
        for topic in self._topics:
            self._transport._send_notification(
                messaging.Target(topic=f'{topic}.{notification.priority}'), {}, message,
                version=2.0, retry=SEND_RETRIES)


class TaskEndpoint:
    """The endpoint that receives tasks: messages which say that a move waits to be carried out. It
    accepts messages of every minor version, and ignores fields that it does not know. So executors
    of different releases can work together; by default, oslo.messaging refuses a newer minor
    version.

    :param accept: called with the uuid of the move
    """

    target = messaging.Target(version=f'{messages.TASK_VERSION.partition(".")[0]}.65535')

    def __init__(self, accept: Callable[[str], None]):
        self._accept = accept

    def execute_migration(self, _context: object, task: object = None, **_newer: object) -> None:
        try:
            move_uuid = messages.move_of(task)
        except boundary.OutOfBounds as error:
            LOG.warning('A message that asks for a move is invalid, and is ignored: %s', error)
            return
        self._accept(move_uuid)


class StopEndpoint:
    """The endpoint that receives stops, and messages that end stops. A stop is an operator's order
    to start no more moves of an aggregate. Stops are sent by message only while the control
    database does not answer.

    :param stops: PendingStops of this host
    """

    target = TaskEndpoint.target

    def __init__(self, stops: PendingStops):
        self._stops = stops

    def stop_moves(self, _context: object, stop: object = None, **_newer: object) -> None:
        try:
            found = PendingStop.from_json(stop)
        except boundary.OutOfBounds as error:
            LOG.warning('A message that asks to stop moves is invalid, and is ignored: %s', error)
            return
        LOG.warning('%s. The order to stop moves came by message, because the control database '
                    'does not answer.', found.sentence)
        self._change(self._stops.add, found)

    def resume_moves(self, _context: object, aggregate: str = '', set_by: str | None = None,
                     **_newer: object) -> None:
        self._change(self._stops.remove, aggregate, set_by)

    def _change(self, change: Callable[..., object], *what: object) -> None:
        try:
            change(*what)
        except OSError as error:
            LOG.error('The file %s, which stores orders to stop moves, cannot be changed: %s. An '
                      'order that is given now is lost when this process is restarted. An order '
                      'that is in the file stays in force until the file is removed.',
                      self._stops.path, error)


class ResultEndpoint:
    """The endpoint that receives results of moves.

    :param settle: called with the uuid of a move that has ended
    """

    def __init__(self, settle: Callable[[str], None]):
        self._settle = settle

    def info(self, _context: object, publisher_id: object, event_type: object, payload: Any,
             _metadata: object) -> None:
        publisher = boundary.shown(publisher_id)
        try:
            move_uuid = messages.move_of(payload)
        except boundary.OutOfBounds as error:
            LOG.warning('A message from %s with the result of a move is invalid, and is ignored: '
                        '%s', publisher, error)
            return
        version = payload.get('version')
        if not messages.is_understood(version):
            LOG.error('A message of version %s from %s with the result of a move is ignored: this '
                      'release of Kronos is too old for that version. Upgrade this service.',
                      boundary.shown(version), publisher)
            return
        LOG.debug('Received notification %s of move %s from %s', boundary.shown(event_type),
                  boundary.shown(move_uuid), publisher)
        if payload.get('final'):
            self._settle_if_known(move_uuid, publisher)

    def _settle_if_known(self, move_uuid: str, publisher: str) -> None:
        try:
            self._settle(move_uuid)
        except exception.MoveNotFound:
            LOG.warning('A message from %s with the result of a move is ignored: there is no move '
                        '%s', publisher, boundary.shown(move_uuid))


class Listening:
    """A group of message servers that are started and stopped together."""

    def __init__(self, servers: Sequence[Any]):
        self._servers = servers
        for server in servers:
            server.start(override_pool_size=POOL_SIZE)

    def stop(self) -> None:
        """Accept no more messages, and wait until the messages in progress are handled, but for at
        most :data:`STOP_SECONDS`. The servers stop at the same time. A server that has not stopped
        by then stops with its next message."""
        endings = [threading.Thread(target=_end, args=(server,), daemon=True)
                   for server in self._servers]
        for ending in endings:
            ending.start()
        deadline = time.monotonic() + STOP_SECONDS
        for ending in endings:
            ending.join(max(0.0, deadline - time.monotonic()))
        late = sum(ending.is_alive() for ending in endings)
        if late:
            LOG.debug('%d of %d message servers have not stopped within %d s, because they '
                      'received no message or the broker does not answer; they are not waited for',
                      late, len(endings), STOP_SECONDS)


def _end(server: Any) -> None:
    """Stop a message server, and wait until its messages in progress are handled. An error is
    logged and not raised."""
    try:
        server.stop()
        server.wait()
    except Exception:  # errors of the driver, of kombu and of the operating system
        LOG.exception('A message server failed to stop')


def fan_out(transports: Transports, aggregates: Iterable[str], method: str,
            **arguments: Any) -> None:
    """Cast a message to every executor of ``aggregates``.

    :raises MessagingException: the broker does not answer
    """
    client = messaging.get_rpc_client(
        transports.rpc, messaging.Target(version=messages.TASK_VERSION), retry=SEND_RETRIES)
    with _sending():
        for name in aggregates:
            client.prepare(topic=messages.migrations_topic(name), fanout=True).cast(
                {}, method, **arguments)


def listen_for_tasks(transports: Transports, aggregates: Iterable[str], host: str,
                     accept: Callable[[str], None], stops: PendingStops) -> Listening:
    """Start to receive two kinds of messages: stops, and the tasks of ``aggregates``. Return the
    Listening that receives the messages. The broker delivers each task to one executor, and each
    stop to all executors.

    :param host: name of this host, from which the name of a queue is made. The broker keeps this
        queue for ever, so the name has to be the same after a restart
    :param accept: called with a move's uuid, from several threads
    :param stops: PendingStops of this host
    """
    endpoints = [TaskEndpoint(accept), StopEndpoint(stops)]
    return Listening([
        messaging.get_rpc_server(
            transports.rpc, messaging.Target(topic=messages.migrations_topic(name), server=host),
            endpoints)
        for name in aggregates])


def listen_for_results(transports: Transports, aggregates: Iterable[str],
                       settle: Callable[[str], None]) -> Listening:
    """Start to receive results of moves of ``aggregates``, and return the started Listening. The
    broker delivers each result to one dispatcher.

    :param settle: called with the uuid of a move that has ended, from several threads
    """
    targets = [messaging.Target(topic=messages.results_topic(name)) for name in aggregates]
    return Listening([messaging.get_notification_listener(
        transports.notification, targets, [ResultEndpoint(settle)])])
