"""The preparation of a live migration in a conductor worker, until it hands the migration over to
nova-compute."""

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
"""The state of a task after its worker is found dead, by its state before."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The record of one live migration that a conductor worker prepares.

    ``state`` is ANNOUNCED before Nova has a record of the migration, BEGUN once it has one, and
    HANDED_OVER once the request to the source compute is about to be sent. After the worker was
    found dead, ANNOUNCED becomes EXPIRED and the others become ORPHANED.

    ``migration_uuid`` is a random uuid while Nova has no record of the migration yet. ``beat_at``
    is the worker's last sign of life.
    """

    migration_uuid: str
    instance_uuid: str
    worker: str
    state: str
    beat_at: datetime.datetime
