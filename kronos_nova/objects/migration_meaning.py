"""The meaning of a Nova migration record, which follows from its status and the state and host of
its instance.

The status alone is not enough. Nova writes record and instance in different transactions, and a
service that dies in between leaves a record ``running`` or ``finished`` for ever. In Nova 33 and
34:

* The API sets ``task_state`` before there is a record, and the compute that ends a migration clears
  it. So the record of a migration in progress is stale if its instance has no ``task_state``.
* ``VERIFY_RESIZE`` (vm_state ``resized``) lasts from ``finished`` to the confirmation or the
  revert. A ``finished`` record of an instance in another vm_state without a ``task_state`` can be
  neither confirmed nor reverted.
* An instance is at its source or at its destination. An instance at a third host was evacuated.

==========================  ============================  =======================  =======
status of the record        task_state                    host of the instance     meaning
==========================  ============================  =======================  =======
accepted ... post-migrating set                           source or destination    MOVES
accepted ... post-migrating set                           another, or none         STALE
accepted ... post-migrating none                          any                      STALE
finished, -ing              set, or vm_state ``resized``  source or destination    WAITS
finished, -ing              set, or vm_state ``resized``  another, or none         STALE
finished, -ing              none, another vm_state        any                      STALE
any of these                instance deleted              any                      STALE
completed, error, ...       any                           any                      OVER
==========================  ============================  =======================  =======
"""

import dataclasses

from kronos_nova.objects import migration_status

MOVES = 'moves'
"""The instance is migrating, or about to: it needs room on both hosts, and is busy."""

WAITS = 'waits'
"""The instance is on the destination, and the source keeps its room until the migration is
confirmed or reverted."""

STALE = 'stale'
"""No service acts on the record any more: it needs no room and blocks nothing. A migration may look
like this in its last seconds, too, so only an old record may be ended."""

OVER = 'over'

RESIZED = 'resized'
"""Nova's vm_state of an instance that waits for its resize to be confirmed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNow:
    """The fields of an instance that decide on the meaning. ``host`` is None while the instance has
    no host."""

    host: str | None
    vm_state: str | None
    task_state: str | None
    is_deleted: bool = False


def meaning(status: str | None, source: str | None, destination: str | None,
            instance: InstanceNow | None) -> str:
    """Return the meaning of a migration record.

    :param destination: None while Nova has not chosen one
    :param instance: None where Nova has no such instance
    """
    if status in migration_status.ENDED:
        return OVER
    if instance is None or instance.is_deleted or instance.host not in (source, destination):
        return STALE
    if status in migration_status.ARRIVED:
        is_kept = instance.task_state is not None or instance.vm_state == RESIZED
        return WAITS if is_kept else STALE
    return MOVES if instance.task_state is not None else STALE
