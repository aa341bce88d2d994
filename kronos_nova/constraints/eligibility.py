"""Whether an instance may be moved at all, wherever to."""

import dataclasses

from kronos_nova.objects.snapshot import Instance

NEVER = 'never'
ONLY_EVACUATE = 'only-evacuate'
ALWAYS = 'always'
WORDS = (NEVER, ONLY_EVACUATE, ALWAYS)
KEY = 'kronos:move'
"""Server metadata or flavor extra spec with one of the words above."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    """Projects whose instances stay (``never``) or only leave hosts that are disabled
    (``only_evacuate``)."""

    never_projects: frozenset[str] = frozenset()
    only_evacuate_projects: frozenset[str] = frozenset()


def wish(instance: Instance, opt_out: OptOut) -> str:
    """What is wanted for an instance: ``never``, ``only-evacuate`` or ``always``.

    Server metadata overrides the flavor and that the project. A word that is none of the three
    means ``never``: somebody wanted something, and moving is what cannot be taken back.
    """
    for place in (instance.metadata, instance.flavor_extra_specs):
        if KEY in place:
            word = place[KEY].strip().lower()
            return word if word in (ONLY_EVACUATE, ALWAYS) else NEVER
    if instance.project_id in opt_out.never_projects:
        return NEVER
    if instance.project_id in opt_out.only_evacuate_projects:
        return ONLY_EVACUATE
    return ALWAYS


def obstacle(instance: Instance, opt_out: OptOut) -> str | None:
    """Why an instance may not even be evacuated: a word of
    :data:`~kronos_nova.objects.plan.SKIP_REASONS`, or None."""
    if instance.status != 'ACTIVE':
        return 'not_active'
    if instance.task_state:
        return 'busy'
    if instance.locked:
        return 'locked'
    return 'excluded' if wish(instance, opt_out) == NEVER else None
