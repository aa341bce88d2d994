"""A live migration task that some conductor worker carries out, until Nova's computes have it."""

import dataclasses

BEGUN = 'begun'
HANDED_OVER = 'handed over'
LOST = 'lost'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """``state`` is BEGUN, HANDED_OVER once the source compute is about to be told, or LOST once its
    worker was found dead."""

    migration_uuid: str
    instance_uuid: str
    worker: str
    state: str
