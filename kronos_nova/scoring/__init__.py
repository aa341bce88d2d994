"""From what a metrics source answered to one figure a host."""

from kronos_nova.scoring.readings import Range
from kronos_nova.scoring.readings import Readings
from kronos_nova.scoring.readings import ScoringRules
from kronos_nova.scoring.readings import normalised
from kronos_nova.scoring.readings import read

__all__ = ('Range', 'Readings', 'ScoringRules', 'normalised', 'read')
