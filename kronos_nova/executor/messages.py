"""Messages over the broker: topics, tasks, results, and the versions of each.

A task says that a move waits for a worker. A result says that a move has ended. A message may be
lost, late, or delivered twice. So a receiver acts only on the state in the journal.
"""

import hashlib
import urllib.parse
from collections.abc import Mapping
from typing import Any

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova.objects import notification
from kronos_nova.objects.move import MoveRecord

TASK_VERSION = '1.0'
RESULT_VERSION = '1.1'

COMPLETED = 'migration.completed'
FAILED = 'migration.failed'
ABANDONED = 'migration.abandoned'

MAX_NAME = 200
"""Maximum number of characters of an aggregate's name that are used in the name of a message queue.
A longer name is cut, and ends with a digest of the whole name. Fixed by AMQP: the name of a queue
may have 255 bytes, and has other parts in addition to the name of the aggregate."""



def migrations_topic(aggregate: str) -> str:
    return f'kronos.migrations.{_word(aggregate)}'


def results_topic(aggregate: str) -> str:
    return f'kronos.results.{_word(aggregate)}'


def _word(aggregate: str) -> str:
    """Return the name of an aggregate as a part of a routing key. Characters that a routing key
    cannot have are percent-encoded. A long name is cut and ends with its digest."""
    word = urllib.parse.quote(aggregate, safe='')
    if len(word) <= MAX_NAME:
        return word
    digest = hashlib.sha256(aggregate.encode()).hexdigest()[:16]
    return f'{word[:MAX_NAME - 17]}-{digest}'


def task(move: MoveRecord) -> dict[str, Any]:
    """Return the message that announces a waiting move to executors. The message is the argument of
    the RPC method ``execute_migration``."""
    return {'move_uuid': move.uuid, 'plan_uuid': move.plan_uuid, 'aggregate': move.aggregate,
            'instance_uuid': move.instance_uuid, 'source': move.source,
            'destination': move.destination, 'phase': move.phase,
            'retry_count': move.retry_count, 'not_before': clock.stamp(move.not_before)}


def result(move: MoveRecord) -> tuple[str, dict[str, Any]]:
    """Return (event type, payload) of the notification about the end of a try of a move."""
    return _event(move), {'version': RESULT_VERSION,
                          **notification.data(notification.move_payload(move))}


def _event(move: MoveRecord) -> str:
    return {'completed': COMPLETED, 'abandoned': ABANDONED}.get(move.state, FAILED)


def is_understood(version: object) -> bool:
    """Return True if this code can handle a result of the given version. The major version has to
    equal that of RESULT_VERSION."""
    return str(version).partition('.')[0] == RESULT_VERSION.partition('.')[0]


def move_of(message: object) -> str:
    """Return the uuid of the move in a task, or in the payload of a result.

    Every service on the bus can send such a message. So only the uuid is taken from the message,
    and everything else is read from the journal.

    :raises OutOfBounds: the message has no valid uuid
    """
    if not isinstance(message, Mapping):
        raise boundary.OutOfBounds(what='the message', problem='must be a JSON object')
    return boundary.printable(message.get('move_uuid'), 'move_uuid', boundary.UUID_CHARACTERS)
