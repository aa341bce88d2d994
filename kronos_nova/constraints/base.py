"""The protocol of constraints, and the function that compiles all installed constraints into a
model."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Protocol

from kronos_nova import extensions
from kronos_nova.model import Model
from kronos_nova.model import Prices
from kronos_nova.model import Problem
from kronos_nova.model import Rule
from kronos_nova.model.compiled import FREE
from kronos_nova.objects.host_checks import ALL_CHECKS
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies.selection import Selections


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintRules:
    """The input of constraints in addition to the snapshot.

    restrict_to_az : whether moves between availability zones are forbidden
    reserve_hosts : number n of hosts whose room is kept free in the aggregate. The hosts in use
        must together have as much free room as the total room of the n largest hosts
    soft_group_cost : penalty that a violated soft server group adds to the combined imbalance (the
        weighted sum of the imbalances of all policies); None if soft groups are as strict as hard
        groups
    soft_groups_yield : whether soft server groups are relaxed if a host cannot be emptied otherwise
    vetoes : {(instance uuid, host name): reason}, moves that Nova's own scheduler refuses
    returns : pairs (instance uuid, host name). The instance has left the host recently, and may not
        return yet
    closed_hosts : names of hosts that take no instance, even if Nova reports these hosts as
        available
    host_checks : names of the checks that compare servers with hosts; a subset of
        :data:`kronos_nova.objects.host_checks.ALL_CHECKS`
    selections : the rules of operators, with the servers that each rule selects
    packs_numa_cells : whether Nova tries the most used NUMA cells of a host first; if False, Nova
        tries the cells with the most free room first
    """

    restrict_to_az: bool = False
    reserve_hosts: int = 0
    soft_group_cost: float | None = None
    soft_groups_yield: bool = False
    vetoes: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    returns: frozenset[tuple[str, str]] = frozenset()
    closed_hosts: frozenset[str] = frozenset()
    host_checks: frozenset[str] = frozenset(ALL_CHECKS)
    selections: Selections = dataclasses.field(default_factory=Selections)
    packs_numa_cells: bool = False


class Constraint(Protocol):
    """The protocol of a constraint: one reason for which an instance may not go to a host.

    A constraint returns rules of the kinds in :mod:`kronos_nova.model.rules`. If none of these
    kinds fits, the constraint returns a :class:`~kronos_nova.model.rules.CallbackRule`. Callback
    rules are evaluated after all other rules.
    """

    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot, rules: ConstraintRules) -> Iterable[Rule]:
        """Return the rules of this constraint; no rules if the constraint forbids no move in this
        problem."""


NAMESPACE = 'kronos_nova.constraints'

# Constraints whose reasons say most about why an instance stays come first; others follow by name.
ORDER = ('availability', 'cell', 'zone', 'isolation', 'requirements', 'rule', 'group',
         'capacity', 'numa', 'headroom', 'reserve', 'returning', 'veto')


def compile_model(problem: Problem, snapshot: Snapshot, rules: ConstraintRules,
                  prices: Prices = FREE) -> Model:
    """Return the model of an aggregate, with the rules of every installed constraint.

    :raises ConfigurationError: the code of a constraint cannot be imported
    """
    found = extensions.installed(NAMESPACE)
    names = sorted(found.names(), key=lambda name: (
        ORDER.index(name) if name in ORDER else len(ORDER), name))
    return Model(problem, tuple(rule for name in names
                                for rule in found[name].plugin.compile(problem, snapshot, rules)),
                 prices)
