"""Finds the installed constraints."""

from stevedore import extension

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.base import Constraints
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.simulation import Problem

NAMESPACE = 'kronos_nova.constraints'

# Asked first: what says most about why an instance stays. Others follow by name.
ORDER = ('availability', 'cell', 'zone', 'isolation', 'group', 'capacity', 'headroom', 'reserve',
         'returning', 'veto')


def load(problem: Problem, snapshot: Snapshot, rules: ConstraintRules) -> Constraints:
    """Every installed constraint that can forbid something here.

    :raises Exception: whatever a constraint that cannot be imported raises: to plan without it
        would not be safe
    """
    found = extension.ExtensionManager(NAMESPACE, on_load_failure_callback=_refuse)
    names = sorted(found.names(), key=lambda name: (
        ORDER.index(name) if name in ORDER else len(ORDER), name))
    made = (found[name].plugin(problem, snapshot, rules) for name in names)
    return Constraints(tuple(constraint for constraint in made if not constraint.idle))


def _refuse(_manager, _entry_point, error):
    raise error
