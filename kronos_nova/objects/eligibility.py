"""Eligibility of instances: whether an instance may be moved, by its project, its flavor and its
metadata."""

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
"""Values that restrict the moves of a server, in ascending order: each value permits more than the
value before it."""

KEY = 'kronos:move'
"""Name of the server metadata and of the flavor extra spec that restrict moves. The value is one of
:data:`WORDS`."""

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
"""All permitted pairs of (source of a restriction, purpose of the restricted moves). Metadata may
not restrict moves that empty a host, because tenants set metadata."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    """Restrictions of moves that nova.conf sets.

    ``never_projects`` are the projects whose instances are never moved. Instances of
    ``only_evacuate_projects`` are moved only to empty a host, such as a disabled host. ``heeded``
    says which restrictions are obeyed, as a subset of :data:`HEEDED`. Its pairs are (source of the
    restriction: PROJECT, FLAVOR or METADATA; purpose of the move). All other restrictions are
    ignored.
    """

    never_projects: frozenset[str] = frozenset()
    only_evacuate_projects: frozenset[str] = frozenset()
    heeded: frozenset[tuple[str, str]] = HEEDED


def heeded(hints: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Parse ``[kronos] move_hints`` to pairs of :data:`HEEDED`. A hint has the form
    ``source:purpose``, or the form ``source`` for all purposes."""
    parts = [hint.partition(':') for hint in hints]
    return frozenset((who, verb) for who, verb in HEEDED
                     if any(who == name and wanted in ('', verb) for name, _colon, wanted in parts))


def may(instance: Instance, opt_out: OptOut, verb: str) -> bool:
    """Return True if the restrictions in nova.conf, in the instance's flavor and in its metadata
    permit a move for a purpose; else False.

    The strictest restriction applies. A value that is not one of :data:`WORDS` counts as ``never``,
    because the owner probably intended a restriction.

    :param verb: purpose of the move: :data:`TO_BALANCE` or :data:`TO_EVACUATE`
    """
    words = (word.strip().lower() for who, word in _said(instance, opt_out)
             if (who, verb) in opt_out.heeded)
    permitted = (ALWAYS, ONLY_EVACUATE) if verb == TO_EVACUATE else (ALWAYS,)
    return all(word in permitted for word in words)


def _said(instance: Instance, opt_out: OptOut) -> Iterator[tuple[str, str]]:
    """Yield (source, value) for each restriction of moves of the instance."""
    if instance.project_id in opt_out.never_projects:
        yield PROJECT, NEVER
    if instance.project_id in opt_out.only_evacuate_projects:
        yield PROJECT, ONLY_EVACUATE
    for who, place in ((FLAVOR, instance.flavor_extra_specs), (METADATA, instance.metadata)):
        if KEY in place:
            yield who, place[KEY]


def movability(instance: Instance) -> Movability:
    """Return the way in which Nova can move an instance in its present status: live, cold or not at
    all. If the instance cannot be migrated live, the result has the reason. Locks are ignored,
    because Nova lets administrators migrate locked instances."""
    if instance.live.can == IMMOVABLE or instance.status in LIVE_STATUSES and (
            instance.live.can == LIVE or instance.status in COLD_STATUSES):
        return instance.live
    why = f'its status is {instance.status}'
    if instance.status in COLD_STATUSES:
        return Movability(can=COLD, why=why)
    return Movability(can=IMMOVABLE, why=instance.live.why or why)


def in_words(instance: Instance, reason: str) -> str:
    """Return a text about the reason why an instance is not moved. If ``reason`` is ``refused``,
    the text includes the reason why Nova cannot move the instance."""
    why = movability(instance).why
    return f'{reason}: {why}' if reason == 'refused' and why else reason


def obstacle(instance: Instance, opt_out: OptOut, verb: str,
             statuses: Collection[str] = LIVE_STATUSES, may_stop: bool = False) -> str | None:
    """Return the reason why an instance may not be moved for a purpose; None if it may be moved.
    The reason is one of :data:`~kronos_nova.objects.plan.SKIP_REASONS`.

    Locks are ignored if the purpose is to empty a host, because the operator wants all instances to
    leave the host.

    :param verb: purpose of the move: :data:`TO_BALANCE` or :data:`TO_EVACUATE`
    :param statuses: Nova's statuses in which the instance may be moved
    :param may_stop: whether a running instance may be migrated cold if Nova cannot migrate it live.
        An instance that does not run may always be migrated cold
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
