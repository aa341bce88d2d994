"""Base classes of requests and responses, and field types that several of them use."""

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
"""A list of at most 1000 names in a request. Chosen as the number of hosts of a large cloud."""
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of requests. A request with an unknown field is refused."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The base class of responses. A client ignores unknown fields of a response."""

    @classmethod
    def made_from(cls, source: object, **given: object) -> Self:
        """Return a response whose fields have the values of the attributes of ``source`` with the
        same names.

        :param given: values of fields that are not taken from ``source``
        """
        return cls(**given, **{name: getattr(source, name)
                               for name in cls.__struct_fields__ if name not in given})


class OneHost(Request):
    """A request about one host. ``host`` is its name."""

    host: Name


class Page(Request):
    """A request for one page of a list. ``marker`` is the value of ``next`` in the page before;
    null for the first page."""

    limit: Limit = 100
    marker: Name | None = None
