"""The model of a buffer in the policies file. A buffer is room for new servers that is always kept
free."""

import math
import re

import pydantic

from kronos_nova.policies.fields import FileMapping
from kronos_nova.policies.fields import key

MOST_BUFFERS = 50
"""Maximum number of buffers in a policies file. Raised, a policies file can make each evaluation
take longer; lowered, a large cloud cannot have one buffer for each aggregate and flavor. Not
measured."""
MOST_NAME = 100
"""Maximum number of characters of the name of a buffer. Raised, lines of reports can be longer;
lowered, names have to be less descriptive. Not measured."""
PERCENT = re.compile(r'(\d{1,3})%')


class Buffer(FileMapping):
    """A buffer: room in an aggregate that is always kept free for new servers of a flavor."""

    name: str = key(about="""
        Name of the buffer in reports, unique in the file.""", min_length=1, max_length=MOST_NAME)
    aggregate: str = key(about="""
        Name of the aggregate in which room is kept free.""", min_length=1)
    flavor: str = key(about="""
        Name of the flavor of the new servers, or their size, such as ``4:8192:40`` (VCPUs, MiB of
        memory, GiB of disk). The disk may be left out.""", min_length=1)
    keep: pydantic.StrictInt | str = key(about="""
        Number of new servers for which room is kept free at any time. A percentage such as
        ``"10%"`` refers to the number of servers of this flavor that would fit into the empty
        aggregate.""")

    @pydantic.field_validator('keep')
    @classmethod
    def _check_keep(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value >= 1:
            return value
        found = PERCENT.fullmatch(value) if isinstance(value, str) else None
        if found is None or not 1 <= int(found[1]) <= 100:
            raise ValueError('must be a number of servers, 1 or more, or a percentage such as '
                             '"10%"')
        return value

    @property
    def is_part(self) -> bool:
        """True if ``keep`` is a percentage; False if ``keep`` is a number of servers."""
        return not isinstance(self.keep, int)

    def wanted(self, most: int) -> int:
        """Return the number of new servers for which room is kept.

        :param most: number of servers that would fit into the empty aggregate; used only if
            ``keep`` is a percentage
        """
        if isinstance(self.keep, int):
            return self.keep
        return math.ceil(most * int(self.keep.removesuffix('%')) / 100)
