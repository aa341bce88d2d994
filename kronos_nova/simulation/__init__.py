"""The arrays a planner works on: :class:`Problem` never changes, :class:`State` is moved about and
back."""

from kronos_nova.simulation.problem import TOLERANCE
from kronos_nova.simulation.problem import Group
from kronos_nova.simulation.problem import Problem
from kronos_nova.simulation.resources import groups
from kronos_nova.simulation.resources import resources
from kronos_nova.simulation.state import State

__all__ = ('TOLERANCE', 'Group', 'Problem', 'State', 'groups', 'resources')
