"""Release of instances from quarantine whose migrations Nova completed after Kronos had given the
moves up."""

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.drain import states as drains
from kronos_nova.executor.runner import ERROR
from kronos_nova.executor.runner import TO_CONFIRM

LOG = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 60
"""Seconds between two searches for instances that have arrived. Raised, such an instance stays in
quarantine for longer; lowered, Nova gets more queries while instances are in quarantine. Not
measured."""


class LateArrivals:
    """A service that looks again at the instances in quarantine whose migrations took too long. If
    such an instance has arrived at the destination of its move, the quarantine ends. A cold
    migration is confirmed first. Any number of workers may do this at the same time.

    :param executor_ports: ExecutorPorts
    :param compute: ComputeApi
    """

    def __init__(self, executor_ports, compute):
        self._executor_ports = executor_ports
        self._compute = compute
        self._next = 0.0

    def tick(self):
        """Release the instances that have arrived, at most once in :data:`LOOK_AGAIN_SECONDS`.

        :raises DBError: the control database cannot be reached
        """
        seconds = self._executor_ports.seconds()
        if seconds < self._next:
            return
        self._next = seconds + LOOK_AGAIN_SECONDS
        quarantined = self._executor_ports.cooldowns.quarantined(self._executor_ports.utcnow())
        for move in self._executor_ports.journal.newest_timeouts(quarantined):
            if self._has_arrived(move):
                self._release(move)

    def _has_arrived(self, move):
        """Return whether the instance of a move has arrived, and nothing is left to do. If its cold
        migration waits to be confirmed, ask Nova to confirm it, and return False."""
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

    def _release(self, move):
        try:
            self._executor_ports.cooldowns.release(move.instance_uuid)
        except exception.QuarantineNotFound:
            return  # another worker was faster
        LOG.info('Instance %s is released from quarantine: it has arrived at %s, although move %s '
                 'had failed because its migration took too long.', move.instance_uuid,
                 move.destination, move.uuid)
