"""The base of requests and responses, and the types that fields share."""

import datetime
from typing import Annotated
from typing import Self

import msgspec

Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]
Maybe = Time | None

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Reason = Annotated[str, msgspec.Meta(max_length=1000)]
Uuid = Annotated[str, msgspec.Meta(min_length=1, max_length=36)]
Names = Annotated[list[Name], msgspec.Meta(max_length=1000)]
"""Names in one request: as many as a large cloud has hosts."""
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of what operations take."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The base of what operations return. A client ignores fields that it does not know."""

    @classmethod
    def made_from(cls, source: object, **given: object) -> Self:
        """Copy the attributes of ``source`` that have the names of fields.

        :param given: fields that are not copied
        """
        return cls(**given, **{name: getattr(source, name)
                               for name in cls.__struct_fields__ if name not in given})


class OneHost(Request):
    """``host`` is the name of a host."""

    host: Name


class Page(Request):
    """A part of a list. ``marker`` is ``next`` of the page before."""

    limit: Limit = 100
    marker: Name | None = None
