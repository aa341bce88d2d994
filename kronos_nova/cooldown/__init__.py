"""What keeps Kronos from moving the same things again and again."""

from kronos_nova.cooldown.memory import Memory
from kronos_nova.cooldown.memory import PastMove

__all__ = ('Memory', 'PastMove')
