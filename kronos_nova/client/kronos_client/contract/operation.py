"""One operation, and how its request is laid out in HTTP."""

import dataclasses
import re
import typing
import urllib.parse
from collections.abc import Mapping

import msgspec

from kronos_client.contract.base import Request
from kronos_client.contract.base import Response

READER, OPERATOR, ADMIN = 'reader', 'operator', 'admin'
"""The audiences of operations, unless the policy file says otherwise."""

IN_PATH = re.compile(r'{(\w+)}')
"""A field of the request within a path."""

WITHOUT_BODY = frozenset(('GET', 'DELETE'))
"""The methods whose other fields stand in the query."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation: its names, types and place in HTTP.

    name : the policy rule and the identifier in the OpenAPI document
    command : the words of the command in ``kronos-manage`` and after ``openstack kronos``; None
        where there is none
    request : type of what it takes; fields that the path names stand there
    response : type of what it returns; None where nothing is returned
    refusals : HTTP statuses in addition to those of every operation
    is_slow : whether it takes seconds: few of those run at a time
    """

    name: str
    method: str
    path: str
    summary: str
    command: str | None = None
    request: type[Request] = Request
    response: type[Response] | None = None
    audience: str = READER
    status: int = 200
    refusals: tuple[int, ...] = ()
    is_slow: bool = False

    @property
    def rule(self) -> str:
        return f'kronos:{self.name}'

    @property
    def path_fields(self) -> list[str]:
        return IN_PATH.findall(self.path)

    @property
    def has_body(self) -> bool:
        return self.method not in WITHOUT_BODY

    def address(self, request: Request) -> str:
        """Return the path of a request; every character of a name is kept."""
        return self.path.format(**{
            name: urllib.parse.quote(getattr(request, name), safe='') for name in self.path_fields})

    def rest(self, request: Request) -> dict[str, object]:
        """Return the fields outside the path that differ from their defaults, as JSON has them."""
        found = msgspec.to_builtins(request)
        defaults = {field.name: field.default for field in msgspec.structs.fields(self.request)}
        return {name: value for name, value in found.items()
                if name not in self.path_fields and value != defaults.get(name)}

    def read(self, path: Mapping[str, str], query: Mapping[str, object],
             body: Mapping[str, object]) -> Request:
        """Return the request that an HTTP client sent.

        :raises ValidationError: a field is unknown, missing or of another type
        """
        sent = body if self.has_body else query
        given = query if self.has_body else body
        twice = sorted({*given, *(path.keys() & sent.keys())})
        if twice:
            raise msgspec.ValidationError(f'Object contains unknown field `{twice[0]}`')
        return msgspec.convert({**self._as_lists(sent), **path}, self.request,
                               strict=self.has_body)

    def _as_lists(self, sent):
        """Return a copy of the query, with lists where the query has a single value for a list."""
        if self.has_body:
            return sent
        lists = {field.name for field in msgspec.structs.fields(self.request)
                 if _is_list(field.type)}
        return {name: [value] if name in lists and not isinstance(value, list) else value
                for name, value in sent.items()}


def _is_list(kind):
    """Return whether a field is a list, bounded or not."""
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    return typing.get_origin(kind) is list
