"""The description of an operation of the API, and the conversion of its request to and from
HTTP."""

import dataclasses
import re
import typing
import urllib.parse
from collections.abc import Mapping

import msgspec

from kronos_client.contract.base import Request
from kronos_client.contract.base import Response

Answer = typing.TypeVar('Answer', bound=Response | None)
"""Type of the response of an operation; None for an operation without a response."""

READER, OPERATOR, ADMIN = 'reader', 'operator', 'admin'
"""Roles for which operations are meant. The file of ``[kronos_api] policy_file`` can permit an
operation to other roles."""

IN_PATH = re.compile(r'{(\w+)}')
"""Pattern of a field of the request in ``Operation.path``, such as ``{host}``."""

WITHOUT_BODY = frozenset(('GET', 'DELETE'))
"""HTTP methods of requests without a body. Fields that are not in the path are then sent in the
query string."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation(typing.Generic[Answer]):
    """An operation of the API: its names, its types, and its HTTP method and path.

    name : name of the policy rule, and identifier in the OpenAPI document
    command : words of the command in ``kronos-manage`` and after ``openstack kronos``; None for an
        operation without a command
    path : the HTTP path, with the names of some fields of the request in braces, such as ``{host}``
    request : type of the request. The fields whose names are in ``path`` are sent in the path, the
        other fields in the body or the query string
    response : type of the response; None for an operation without a response
    refusals : HTTP statuses of the operation's errors, in addition to the statuses that every
        operation can have
    is_slow : whether the operation takes seconds; kronos-api runs only few such operations at the
        same time
    """

    name: str
    method: str
    path: str
    summary: str
    command: str | None = None
    request: type[Request] = Request
    response: type[Answer] | None = None
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
        """Return the URL path of a request. Values in the path are quoted, so that a name may have
        any characters."""
        return self.path.format(**{
            name: urllib.parse.quote(getattr(request, name), safe='') for name in self.path_fields})

    def rest(self, request: Request) -> dict[str, object]:
        """Return {field: value for JSON} for the fields of a request that are not in the path.
        Fields with their default value are left out."""
        found = msgspec.to_builtins(request)
        defaults = {field.name: field.default for field in msgspec.structs.fields(self.request)}
        return {name: value for name, value in found.items()
                if name not in self.path_fields and value != defaults.get(name)}

    def read(self, path: Mapping[str, str], query: Mapping[str, object],
             body: Mapping[str, object]) -> Request:
        """Return the request of the operation from the parts of an HTTP request.

        :param path: values of the fields in the path
        :param query: parameters of the query string
        :param body: members of the JSON body
        :raises ValidationError: a field is unknown, missing or of another type
        """
        sent = body if self.has_body else query
        given = query if self.has_body else body
        twice = sorted({*given, *(path.keys() & sent.keys())})
        if twice:
            raise msgspec.ValidationError(f'Object contains unknown field `{twice[0]}`')
        return msgspec.convert({**self._as_lists(sent), **path}, self.request,
                               strict=self.has_body)

    def _as_lists(self, sent: Mapping[str, object]) -> Mapping[str, object]:
        """Return a copy of the query parameters. In the copy, a single value of a list field is
        replaced by a list with this value."""
        if self.has_body:
            return sent
        lists = {field.name for field in msgspec.structs.fields(self.request)
                 if _is_list(field.type)}
        return {name: [value] if name in lists and not isinstance(value, list) else value
                for name, value in sent.items()}


def _is_list(kind: object) -> bool:
    """Return True if the type of a field is a list, with or without bounds; else False."""
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    return typing.get_origin(kind) is list
