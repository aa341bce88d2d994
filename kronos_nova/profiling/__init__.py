"""What each instance adds to its host's load."""

from kronos_nova.profiling.habit import FIGURES
from kronos_nova.profiling.habit import Habits
from kronos_nova.profiling.noise import expected_range
from kronos_nova.profiling.weights import PlacedInstances
from kronos_nova.profiling.weights import Weights
from kronos_nova.profiling.weights import by_label
from kronos_nova.profiling.weights import profile
from kronos_nova.profiling.weights import unit_problem

__all__ = ('FIGURES', 'Habits', 'PlacedInstances', 'Weights', 'by_label', 'expected_range',
           'profile', 'unit_problem')
