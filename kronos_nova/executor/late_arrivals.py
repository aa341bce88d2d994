"""Release of instances from quarantine, if they have arrived after all. Kronos had given up the
moves of these instances, and Nova completed the migrations later."""

from concurrent import futures

from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db import engine as db_engine
from kronos_nova.drain import states as drains
from kronos_nova.executor.compute import ComputeApi
from kronos_nova.executor.ports import ExecutorPorts
from kronos_nova.executor.runner import ERROR
from kronos_nova.executor.runner import TO_CONFIRM
from kronos_nova.objects.move import MoveRecord

LOG = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 60
"""Seconds between two searches for instances in quarantine that have arrived at their destination
after all. Raised, such an instance stays in quarantine for longer; lowered, Nova gets more queries
while instances are in quarantine. Not measured."""


class LateArrivals:
    """A service that looks again at the instances in quarantine whose migrations took too long. If
    such an instance has arrived at the destination of its move, the quarantine ends. A cold
    migration is confirmed first. Any number of workers may do this at the same time.

    :param executor_ports: ExecutorPorts
    :param compute: ComputeApi
    :param pool: concurrent.futures.Executor that runs the searches, so that a slow answer of Nova
        does not delay the signs of life of this worker
    """

    def __init__(self, executor_ports: ExecutorPorts, compute: ComputeApi, pool: futures.Executor):
        self._executor_ports = executor_ports
        self._compute = compute
        self._pool = pool
        self._next = 0.0
        self._is_looking = False

    def tick(self) -> None:
        """Start a search for instances in quarantine that have arrived after all. The search runs
        in a thread of the pool. No search is started while another search runs, or if the last
        search began less than :data:`LOOK_AGAIN_SECONDS` seconds ago."""
        seconds = self._executor_ports.seconds()
        if seconds < self._next or self._is_looking:
            return
        self._next, self._is_looking = seconds + LOOK_AGAIN_SECONDS, True
        self._pool.submit(self._search)

    def _search(self) -> None:
        try:
            self._release_arrived()
        except db_exc.DBError as e:
            LOG.warning('Kronos checks later whether instances in quarantine have arrived at their '
                        'destinations, because the control database does not answer: %s',
                        db_engine.first_line(e))
        except Exception:
            LOG.exception('Kronos could not find the instances in quarantine that may have arrived '
                          'at their destinations. The search is repeated later.')
        finally:
            self._is_looking = False

    def _release_arrived(self) -> None:
        quarantined = self._executor_ports.cooldowns.quarantined(self._executor_ports.utcnow())
        for move in self._executor_ports.journal.newest_timeouts(quarantined):
            try:
                if self._has_arrived(move):
                    self._release(move)
            except db_exc.DBError:
                raise
            except Exception:
                LOG.exception('Kronos could not check whether instance %s in quarantine has '
                              'arrived at %s. The check is repeated later.', move.instance_uuid,
                              move.destination)

    def _has_arrived(self, move: MoveRecord) -> bool:
        """Return True if the instance of a move has arrived at the destination and its migration
        needs no more work; False otherwise. If a cold migration of the instance waits to be
        confirmed, ask Nova to confirm the migration, and return False."""
        try:
            instance = self._compute.instance(move.instance_uuid)
            if instance is None or instance.host != move.destination or instance.task_state:
                return False
            if instance.status == TO_CONFIRM and move.kind in drains.COLD_KINDS:
                self._compute.confirm(move)
        except exception.NovaClientError as e:
            LOG.debug('Nova does not answer about instance %s in quarantine: %s',
                      move.instance_uuid, e)
            return False
        return instance.status not in (ERROR, TO_CONFIRM)

    def _release(self, move: MoveRecord) -> None:
        try:
            self._executor_ports.cooldowns.release(move.instance_uuid)
        except exception.QuarantineNotFound:
            return  # another worker was faster
        LOG.info('Instance %s is released from quarantine: it runs on %s, the destination of move '
                 '%s, which had failed because its migration took too long.', move.instance_uuid,
                 move.destination, move.uuid)
