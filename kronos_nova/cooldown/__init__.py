"""What keeps Kronos from moving the same things again and again."""

from kronos_nova.cooldown.planning_history import Memory
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cooldown.repetition import growing
from kronos_nova.cooldown.repetition import left

__all__ = ('Memory', 'PastMove', 'PastTry', 'growing', 'left')
