"""Finds the installed constraints and compiles a model with them."""

from kronos_nova import extensions
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Model
from kronos_nova.model import Prices
from kronos_nova.model import Problem
from kronos_nova.model.compiled import FREE
from kronos_nova.objects.snapshot import Snapshot

NAMESPACE = 'kronos_nova.constraints'

# Asked first: what says most about why an instance stays. Others follow by name.
ORDER = ('availability', 'cell', 'zone', 'isolation', 'group', 'capacity', 'headroom', 'reserve',
         'returning', 'veto')


def compile_model(problem: Problem, snapshot: Snapshot, rules: ConstraintRules,
                  prices: Prices = FREE) -> Model:
    """The model of an aggregate, with the rules of every installed constraint.

    :raises ConfigurationError: a constraint cannot be imported
    """
    found = extensions.installed(NAMESPACE)
    names = sorted(found.names(), key=lambda name: (
        ORDER.index(name) if name in ORDER else len(ORDER), name))
    return Model(problem, tuple(rule for name in names
                                for rule in found[name].plugin.compile(problem, snapshot, rules)),
                 prices)
