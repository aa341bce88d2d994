"""Eligibility: whether an instance may be moved at all, and which source decides."""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator

from kronos_nova.objects.snapshot import COLD
from kronos_nova.objects.snapshot import IMMOVABLE
from kronos_nova.objects.snapshot import LIVE
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Movability

NEVER = 'never'
ONLY_EVACUATE = 'only-evacuate'
ALWAYS = 'always'
WORDS = (NEVER, ONLY_EVACUATE, ALWAYS)
"""Each permits more than the one before."""

KEY = 'kronos:move'
"""Server metadata or flavor extra spec with one of the words above."""

LIVE_STATUSES = 'ACTIVE', 'PAUSED'
"""Statuses in which Nova migrates an instance live (``nova.compute.api.API.live_migrate``)."""

COLD_STATUSES = 'ACTIVE', 'SHUTOFF'
"""Statuses in which Nova migrates an instance cold (``nova.compute.api.API.resize``)."""

# What a move is for.
TO_BALANCE = 'balance'
TO_EVACUATE = 'evacuate'

# Who has a say.
PROJECT = 'project'
FLAVOR = 'flavor'
METADATA = 'metadata'

HEEDED = frozenset({(PROJECT, TO_BALANCE), (PROJECT, TO_EVACUATE), (FLAVOR, TO_BALANCE),
                    (FLAVOR, TO_EVACUATE), (METADATA, TO_BALANCE)})
"""(who, for what), of all that there is. Metadata is the tenant's, who has no say in whether a host
can be emptied."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    """Projects whose instances stay (``never``) or only leave hosts that are disabled
    (``only_evacuate``); and of :data:`HEEDED` what is heeded here."""

    never_projects: frozenset[str] = frozenset()
    only_evacuate_projects: frozenset[str] = frozenset()
    heeded: frozenset[tuple[str, str]] = HEEDED


def heeded(hints: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Parse ``[kronos] move_hints``: each hint is a source of metadata, for all kinds of moves, or
    followed by a colon and a kind."""
    parts = [hint.partition(':') for hint in hints]
    return frozenset((who, verb) for who, verb in HEEDED
                     if any(who == name and wanted in ('', verb) for name, _colon, wanted in parts))


def may(instance: Instance, opt_out: OptOut, verb: str) -> bool:
    """Return whether no source of metadata forbids to move an instance for that.

    The strictest word counts, so no source can permit what another forbids. A word that is none of
    :data:`WORDS` means ``never``: a wish is there, and a move cannot be undone.
    """
    words = (word.strip().lower() for who, word in _said(instance, opt_out)
             if (who, verb) in opt_out.heeded)
    permitted = (ALWAYS, ONLY_EVACUATE) if verb == TO_EVACUATE else (ALWAYS,)
    return all(word in permitted for word in words)


def _said(instance: Instance, opt_out: OptOut) -> Iterator[tuple[str, str]]:
    """Yield (source, word) of each source that restricts moves of the instance."""
    if instance.project_id in opt_out.never_projects:
        yield PROJECT, NEVER
    if instance.project_id in opt_out.only_evacuate_projects:
        yield PROJECT, ONLY_EVACUATE
    for who, place in ((FLAVOR, instance.flavor_extra_specs), (METADATA, instance.metadata)):
        if KEY in place:
            yield who, place[KEY]


def movability(instance: Instance) -> Movability:
    """Return how Nova can move an instance in its present status, and Nova's reason against a live
    migration. Nova ignores locks for administrators."""
    if instance.live.can == IMMOVABLE or instance.status in LIVE_STATUSES and (
            instance.live.can == LIVE or instance.status in COLD_STATUSES):
        return instance.live
    why = f'its status is {instance.status}'
    if instance.status in COLD_STATUSES:
        return Movability(can=COLD, why=why)
    return Movability(can=IMMOVABLE, why=instance.live.why or why)


def in_words(instance: Instance, reason: str) -> str:
    """Return the reason for which an instance is not moved, with Nova's own text where Nova is the
    reason."""
    why = movability(instance).why
    return f'{reason}: {why}' if reason == 'refused' and why else reason


def obstacle(instance: Instance, opt_out: OptOut, verb: str,
             statuses: Collection[str] = LIVE_STATUSES, may_stop: bool = False) -> str | None:
    """Return why an instance may not be moved for that: a word of
    :data:`~kronos_nova.objects.plan.SKIP_REASONS`, or None.

    To empty a host is an operator's wish: a lock is not in its way.

    :param statuses: in which Nova may have it; only one that stopped is migrated cold
    :param may_stop: one that runs is migrated cold too
    """
    if instance.status not in statuses:
        return 'not_active'
    is_live = instance.status in LIVE_STATUSES and not may_stop
    if movability(instance).can not in ((LIVE,) if is_live else (LIVE, COLD)):
        return 'refused'
    if instance.task_state:
        return 'busy'
    if instance.locked and verb == TO_BALANCE:
        return 'locked'
    return None if may(instance, opt_out, verb) else 'excluded'
