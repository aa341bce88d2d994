"""What the API gives, as types: the OpenAPI document is made of them."""

import datetime
from typing import Annotated

import msgspec

Time = datetime.datetime
Maybe = Time | None


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The base of them all."""


def view(cls, source, **given):
    """What ``source`` has under the names of ``cls``, but for what is given."""
    return cls(**given, **{name: getattr(source, name)
                           for name in cls.__struct_fields__ if name not in given})


class Version(View):
    """A version of the API; ``OpenStack-API-Version: kronos N`` asks for a microversion."""

    id: str
    status: str
    min_version: str
    version: str
    links: list[dict[str, str]]


class Versions(View):
    versions: list[Version]


class MaintainedHost(View):
    host: str
    state: str


class Maintenance(View):
    """The maintenance that is not done, its hosts in order."""

    uuid: str
    state: str
    requested_by: str
    requested_at: Time
    hosts: list[MaintainedHost]


class Drain(View):
    """A host that is to be empty, and how far that is. ``blocked`` tells of each server that stays
    why."""

    uuid: str
    host: str
    aggregate: str
    state: str
    requested_by: str
    requested_at: Time
    reason: str
    with_stopped: bool
    parallel: int | None
    deadline: Maybe
    keep_spare: int
    looked_at: Maybe
    servers: int | None
    left: int | None
    blocked: dict[str, str]
    problem: str
    finished_at: Maybe


class Drains(View):
    drains: list[Drain]


class Evaluated(View):
    """That an aggregate was evaluated; ``outcome`` says in a word what came of it."""

    aggregate: str
    evaluated_at: Time
    outcome: str


class Moment(View):
    """When the control database was last read."""

    at: Time


Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Reason = Annotated[str, msgspec.Meta(max_length=1000)]
Uuid = Annotated[str, msgspec.Meta(min_length=1, max_length=36)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Page(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``marker`` is ``next`` of the page before."""

    limit: Limit = 100
    marker: Name | None = None


class DrainQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By default those that are released are left out."""

    all: bool = False
