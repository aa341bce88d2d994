"""Tasks. A task is a migration that a nova-conductor worker prepares, until the worker hands the
migration over to nova-compute."""

import dataclasses
import datetime

ANNOUNCED = 'announced'
BEGUN = 'begun'
HANDED_OVER = 'handed over'
# Values that are stored in the database, kept since the first version.
EXPIRED = 'forsaken'
ORPHANED = 'lost'

UNBEGUN = (ANNOUNCED, EXPIRED)
TAKEN = {ANNOUNCED: EXPIRED, BEGUN: ORPHANED, HANDED_OVER: ORPHANED}
"""{state of a task: state after its worker was found dead}."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The record of one migration that a conductor worker prepares.

    ``state`` is ANNOUNCED before Nova has a record of the migration, BEGUN once Nova has the
    record, and HANDED_OVER once the worker is about to send the request to the source compute. A
    cold migration stays ANNOUNCED until its worker has sent the request. If the worker is found
    dead, ANNOUNCED becomes EXPIRED, and BEGUN and HANDED_OVER become ORPHANED.

    ``migration_uuid`` is a random uuid until Nova has a record of the migration. ``beat_at`` is the
    time of the worker's last sign of life.
    """

    migration_uuid: str
    instance_uuid: str
    worker: str
    state: str
    beat_at: datetime.datetime
