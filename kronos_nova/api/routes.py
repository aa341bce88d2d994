"""All operations of the API, and its versions."""

from kronos_nova.api import acting
from kronos_nova.api import listening
from kronos_nova.api import reading
from kronos_nova.api import snapshots
from kronos_nova.api import watching

SERVICE = 'kronos'
"""Its type in keystone's catalogue, and in the header of microversions."""

VERSIONS = ('1.0',)
"""Microversions, the newest last; what each changed is in the documentation."""

OPERATIONS = (*reading.OPERATIONS, *watching.OPERATIONS, *listening.OPERATIONS,
              *snapshots.OPERATIONS, *acting.OPERATIONS)
