"""The load of hosts and instances: readings of hosts, profiles (load per instance), running
statistics and forecasts."""

from kronos_nova.load.host_readings import Range
from kronos_nova.load.host_readings import Readings
from kronos_nova.load.host_readings import ScoringRules
from kronos_nova.load.host_readings import normalised
from kronos_nova.load.host_readings import read
from kronos_nova.load.instance_weights import PlacedInstances
from kronos_nova.load.instance_weights import Weights
from kronos_nova.load.instance_weights import by_label
from kronos_nova.load.instance_weights import profile
from kronos_nova.load.instance_weights import unit_problem
from kronos_nova.load.load_statistics import FIGURES
from kronos_nova.load.load_statistics import LoadStats
from kronos_nova.load.noise import expected_range

__all__ = ('FIGURES', 'LoadStats', 'PlacedInstances', 'Range', 'Readings', 'ScoringRules',
           'Weights', 'by_label', 'expected_range', 'normalised', 'profile', 'read',
           'unit_problem')
