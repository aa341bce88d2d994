"""The model of a cluster, and the state that planning changes.

A :class:`Problem` is the data of one aggregate as arrays. A :class:`Model` is a problem with rules
that forbid moves and with prices of moves. The rules are compiled from constraints. A price is a
cost in units of combined imbalance. A :class:`State` is a model after some moves. Only
:meth:`State.delta` decides which effect moves have and whether moves are allowed.
"""

from kronos_nova.model.compiled import Model
from kronos_nova.model.delta import Delta
from kronos_nova.model.numa import cells
from kronos_nova.model.prices import Prices
from kronos_nova.model.problem import TOLERANCE
from kronos_nova.model.problem import Group
from kronos_nova.model.problem import Problem
from kronos_nova.model.problem import rounded
from kronos_nova.model.resources import groups
from kronos_nova.model.resources import resources
from kronos_nova.model.rules import Rule
from kronos_nova.model.state import State

__all__ = ('TOLERANCE', 'Delta', 'Group', 'Model', 'Prices', 'Problem', 'Rule', 'State', 'cells',
           'groups', 'resources', 'rounded')
