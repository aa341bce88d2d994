"""Eligibility: whether an instance may be moved at all, which its project, its flavor and its
metadata can restrict."""

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
"""Words that restrict the moves of a server, each of which permits more than the one before."""

KEY = 'kronos:move'
"""Key of server metadata or of a flavor extra spec, whose value is one of :data:`WORDS`."""

LIVE_STATUSES = 'ACTIVE', 'PAUSED'
"""Statuses in which Nova migrates an instance live (``nova.compute.api.API.live_migrate``)."""

COLD_STATUSES = 'ACTIVE', 'SHUTOFF'
"""Statuses in which Nova migrates an instance cold (``nova.compute.api.API.resize``)."""

# Purposes of a move.
TO_BALANCE = 'balance'
TO_EVACUATE = 'evacuate'

# Sources of restrictions.
PROJECT = 'project'
FLAVOR = 'flavor'
METADATA = 'metadata'

HEEDED = frozenset({(PROJECT, TO_BALANCE), (PROJECT, TO_EVACUATE), (FLAVOR, TO_BALANCE),
                    (FLAVOR, TO_EVACUATE), (METADATA, TO_BALANCE)})
"""All possible pairs of (source of a restriction, purpose of a move). Metadata does not apply where
a host is emptied, because tenants set it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    """Restrictions that nova.conf sets: projects whose instances are never moved, projects whose
    instances only leave disabled hosts, and the pairs of :data:`HEEDED` that apply."""

    never_projects: frozenset[str] = frozenset()
    only_evacuate_projects: frozenset[str] = frozenset()
    heeded: frozenset[tuple[str, str]] = HEEDED


def heeded(hints: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Parse ``[kronos] move_hints`` to pairs of :data:`HEEDED`. Each hint is a source for all
    purposes, or a source, a colon and a purpose."""
    parts = [hint.partition(':') for hint in hints]
    return frozenset((who, verb) for who, verb in HEEDED
                     if any(who == name and wanted in ('', verb) for name, _colon, wanted in parts))


def may(instance: Instance, opt_out: OptOut, verb: str) -> bool:
    """Return whether no source forbids to move an instance for a purpose.

    The strictest word counts. A word that is not one of :data:`WORDS` means ``never``, because some
    restriction was intended.
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
    """Return whether Nova can move an instance live, cold or not at all in its present status, with
    Nova's reason against a live migration. Locks do not count, because Nova ignores them for
    administrators."""
    if instance.live.can == IMMOVABLE or instance.status in LIVE_STATUSES and (
            instance.live.can == LIVE or instance.status in COLD_STATUSES):
        return instance.live
    why = f'its status is {instance.status}'
    if instance.status in COLD_STATUSES:
        return Movability(can=COLD, why=why)
    return Movability(can=IMMOVABLE, why=instance.live.why or why)


def in_words(instance: Instance, reason: str) -> str:
    """Return the text of the reason why an instance is not moved. If ``reason`` is ``refused``,
    Nova's own text is added."""
    why = movability(instance).why
    return f'{reason}: {why}' if reason == 'refused' and why else reason


def obstacle(instance: Instance, opt_out: OptOut, verb: str,
             statuses: Collection[str] = LIVE_STATUSES, may_stop: bool = False) -> str | None:
    """Return why an instance may not be moved for a purpose, a word of
    :data:`~kronos_nova.objects.plan.SKIP_REASONS`; None if it may be.

    Where a host is emptied, a lock does not count, because an operator ordered it.

    :param statuses: Nova's statuses in which it may be moved; only a stopped instance is migrated
        cold
    :param may_stop: whether a running instance may be migrated cold, too
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
