"""The history of moves and cooldowns, by which Kronos avoids moving the same instances too
often."""

from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cooldown.planning_history import PlanningHistory
from kronos_nova.cooldown.planning_history import growing
from kronos_nova.cooldown.planning_history import left

__all__ = ('PastMove', 'PastTry', 'PlanningHistory', 'growing', 'left')
