"""The meaning of a Nova migration record, with the state, the hosts and the age of its instance.

A record alone says little. Nova has no transaction over record and instance, and a service that
dies between two writes leaves a record ``running`` or ``finished`` for ever. Nova 33 and 34 hold to
these rules:

* The API sets ``task_state`` before there is a record, and the compute that ends a migration clears
  it. A record of a migration in progress without a ``task_state`` of its instance is left over.
* ``VERIFY_RESIZE`` (vm_state ``resized``) lasts from ``finished`` to the confirmation or the
  revert. A record that is ``finished``, of an instance in another state that is not busy, can be
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
"""The instance is on its way, or about to be: it takes room at both ends, and is busy."""

WAITS = 'waits'
"""The instance is at the destination; the source keeps room until it is confirmed or reverted."""

STALE = 'stale'
"""No one acts on the record any more: it takes no room and blocks nothing. Of the last seconds of a
migration that ends well it may be said too, so only an old record is to be ended."""

OVER = 'over'

RESIZED = 'resized'
"""Nova's vm_state of an instance that waits for its resize to be confirmed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNow:
    """The state of an instance that decides; ``host`` is None while the instance has none."""

    host: str | None
    vm_state: str | None
    task_state: str | None
    is_deleted: bool = False


def meaning(status: str | None, source: str | None, destination: str | None,
            instance: InstanceNow | None) -> str:
    """Return what a record means.

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
