"""Classification of Nova's migration records by the state of each migration and of its instance.

The code calls the class of a record its meaning. There are four classes:

* MOVES: the instance migrates, or is about to migrate.
* WAITS: the instance is on the destination, and the migration has to be confirmed or reverted.
* STALE: no service acts on the record any more.
* OVER: the migration has ended.

The status of a record alone does not determine the class. Nova writes the record and the instance
in different transactions, and a service that dies in between leaves a record ``running`` or
``finished`` for ever. In Nova 33 and 34:

* The API sets ``task_state`` before there is a migration record. The nova-compute that ends the
  migration clears ``task_state``. So a record whose status says that the migration is in progress
  is stale if the instance has no ``task_state``.
* ``VERIFY_RESIZE`` (vm_state ``resized``) lasts from ``finished`` to the confirmation or the
  revert. So a ``finished`` record is stale if the instance has no ``task_state`` and its vm_state
  is not ``resized``: the migration can be neither confirmed nor reverted.
* During a migration the instance is at the source or at the destination. An instance at a third
  host was evacuated.

===============================  ============================  =====================  =======
status of the record             task_state                    host of the instance   meaning
===============================  ============================  =====================  =======
accepted ... post-migrating      set                           source or destination  MOVES
accepted ... post-migrating      set                           another, or none       STALE
accepted ... post-migrating      none                          any                    STALE
finished, confirming, reverting  set, or vm_state ``resized``  source or destination  WAITS
finished, confirming, reverting  set, or vm_state ``resized``  another, or none       STALE
finished, confirming, reverting  none, another vm_state        any                    STALE
any of these                     instance deleted              any                    STALE
completed, error, ...            any                           any                    OVER
===============================  ============================  =====================  =======
"""

import dataclasses

from kronos_nova.objects import migration_status

MOVES = 'moves'
"""Meaning of a record whose instance is migrating or is about to migrate. The instance needs room
on both hosts, and is busy: its task_state is set."""

WAITS = 'waits'
"""Meaning of a record whose instance is on the destination, while the source still keeps room for
the instance. The migration has to be confirmed or reverted."""

STALE = 'stale'
"""Meaning of a record on which no service acts any more. The record needs no room and blocks
nothing. The record of a migration that ends in the next seconds may look the same, so only an old
record may be ended."""

OVER = 'over'

RESIZED = 'resized'
"""Nova's vm_state of an instance whose resize waits for its confirmation."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNow:
    """The fields of an instance that decide on the meaning (the class) of its migration record.
    ``host`` is None while the instance has no host."""

    host: str | None
    vm_state: str | None
    task_state: str | None
    is_deleted: bool = False


def meaning(status: str | None, source: str | None, destination: str | None,
            instance: InstanceNow | None) -> str:
    """Return the meaning of a migration record: MOVES, WAITS, STALE or OVER.

    :param destination: None while Nova has not chosen a destination
    :param instance: None if Nova has no such instance
    """
    if status in migration_status.ENDED:
        return OVER
    if instance is None or instance.is_deleted or instance.host not in (source, destination):
        return STALE
    if status in migration_status.ARRIVED:
        is_kept = instance.task_state is not None or instance.vm_state == RESIZED
        return WAITS if is_kept else STALE
    return MOVES if instance.task_state is not None else STALE
