"""A change that heals allocations, as the journal keeps it."""

import dataclasses
from collections.abc import Mapping

PLANNED = 'planned'
HEALED = 'healed'
SKIPPED = 'skipped'
FAILED = 'failed'
UNDONE = 'undone'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A finding, and the allocations of its consumers before and after.

    ``before`` and ``after`` are bodies of ``POST /allocations``; the generations in them are of the
    moment and long past.
    """

    kind: str
    instance_uuid: str
    evidence: str
    before: Mapping
    after: Mapping
