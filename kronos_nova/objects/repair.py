"""Records of repaired allocations in the journal."""

import dataclasses
from collections.abc import Mapping

PLANNED = 'planned'
HEALED = 'healed'
SKIPPED = 'skipped'
FAILED = 'failed'
UNDONE = 'undone'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The record of a repair of wrong allocations. The record has the evidence for the fault, and
    the allocations of the consumers before and after the repair.

    ``before`` and ``after`` are bodies of ``POST /allocations``. Their consumer generations are
    those from the time of the repair. Before a body is sent again, its generations have to be
    replaced by the present ones.
    """

    kind: str
    instance_uuid: str
    evidence: str
    before: Mapping
    after: Mapping
