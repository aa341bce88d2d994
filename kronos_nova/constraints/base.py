"""The protocol of constraints, and the model of an aggregate, compiled by all installed
constraints."""

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

    restrict_to_az : no move between availability zones
    reserve_hosts : number of hosts whose whole room has to stay free
    soft_group_cost : price of breaking a soft server group; None makes soft groups as strict as
        hard ones
    soft_groups_yield : soft server groups give way where a host could not be emptied otherwise
    vetoes : (instance uuid, host name) to the reason, from Nova's own scheduler
    returns : (uuid of an instance, name of a host that it left not long ago and may not return to
        yet)
    closed_hosts : names of hosts that take no instance, whatever Nova says of them
    host_checks : the checks of servers against hosts that apply, some of
        :data:`kronos_nova.objects.host_checks.ALL_CHECKS`
    selections : the rules of operators, with the servers that each of them selects
    packs_numa_cells : Nova fills the NUMA cells of a host one after the other
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
    """The protocol of a constraint, which compiles one reason for which an instance may not go to a
    host.

    Use one of the rules in :mod:`kronos_nova.model.rules`. A reason that none of them can express
    is a :class:`~kronos_nova.model.rules.CallbackRule`, which is evaluated last.
    """

    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot, rules: ConstraintRules) -> Iterable[Rule]:
        """Return the rules of this constraint; none where it forbids no move in this problem."""


NAMESPACE = 'kronos_nova.constraints'

# Constraints whose reasons say most about why an instance stays come first; others follow by name.
ORDER = ('availability', 'cell', 'zone', 'isolation', 'requirements', 'rule', 'group',
         'capacity', 'numa', 'headroom', 'reserve', 'returning', 'veto')


def compile_model(problem: Problem, snapshot: Snapshot, rules: ConstraintRules,
                  prices: Prices = FREE) -> Model:
    """Return the model of an aggregate, with the rules of every installed constraint.

    :raises ConfigurationError: a constraint cannot be imported
    """
    found = extensions.installed(NAMESPACE)
    names = sorted(found.names(), key=lambda name: (
        ORDER.index(name) if name in ORDER else len(ORDER), name))
    return Model(problem, tuple(rule for name in names
                                for rule in found[name].plugin.compile(problem, snapshot, rules)),
                 prices)
