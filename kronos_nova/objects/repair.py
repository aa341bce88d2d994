"""Repairs of allocations in the journal."""

import dataclasses
from collections.abc import Mapping

PLANNED = 'planned'
HEALED = 'healed'
SKIPPED = 'skipped'
FAILED = 'failed'
UNDONE = 'undone'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A repair of wrong allocations: the evidence for the fault, and the allocations of the
    consumers before and after the repair.

    ``before`` and ``after`` are bodies of ``POST /allocations``. The consumer generations in them
    are out of date.
    """

    kind: str
    instance_uuid: str
    evidence: str
    before: Mapping
    after: Mapping
