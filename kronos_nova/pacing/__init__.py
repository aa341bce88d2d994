"""What live migrations take, and when each of a plan is to begin."""

from kronos_nova.pacing.precopy import Copy
from kronos_nova.pacing.precopy import Forecast
from kronos_nova.pacing.schedule import Job
from kronos_nova.pacing.schedule import Links
from kronos_nova.pacing.schedule import Timeline
from kronos_nova.pacing.schedule import best
from kronos_nova.pacing.schedule import lower_bound
from kronos_nova.pacing.slots import ConcurrencySlots

__all__ = ('ConcurrencySlots', 'Copy', 'Forecast', 'Job', 'Links', 'Timeline', 'best',
           'lower_bound')
