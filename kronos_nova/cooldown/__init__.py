"""What keeps Kronos from moving the same things again and again."""

from kronos_nova.cooldown.memory import Memory
from kronos_nova.cooldown.memory import PastMove
from kronos_nova.cooldown.memory import PastTry
from kronos_nova.cooldown.repetition import growing
from kronos_nova.cooldown.repetition import left

__all__ = ('Memory', 'PastMove', 'PastTry', 'growing', 'left')
