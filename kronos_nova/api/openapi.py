"""The OpenAPI document, made from the table of operations and the types of their requests and
responses."""

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from kronos_client.contract import operation as operations
from kronos_client.contract import versions
from kronos_client.contract.errors import Errors
from kronos_nova.api import routes
from kronos_nova.api.operation import Operation

REF = '#/components/schemas/{name}'
IN_PATH = re.compile(r'{(\w+)}')
ALWAYS = {400: 'Something in the request is wrong.', 401: 'There is no valid token.',
          403: 'The policy does not permit it.', 406: 'There is no such microversion.',
          413: 'The body is larger than [oslo_middleware] max_request_body_size.',
          503: 'Something that Kronos needs does not answer.'}
REFUSALS = {404: 'There is no such thing.', 409: 'It is not in a state in which that can be done.',
            422: 'It takes more time or memory than it may.', 429: 'As many are at it as may be.'}
LAST_EVENT_ID = {'name': 'Last-Event-ID', 'in': 'header', 'required': False,
                 'schema': {'type': 'string'},
                 'description': 'The id of the last event that a listener has which comes back.'}


def text() -> str:
    return json.dumps(document(), indent=1)


def document() -> dict:
    types = [each for operation in routes.OPERATIONS for each in (
        operation.gives, operation.body, *(operation.events or {}).values()) if each is not None]
    requests = dict.fromkeys(operation.contract.request for operation in routes.OPERATIONS
                             if operation.contract is not None)
    _schemas, components = msgspec.json.schema_components(
        [*dict.fromkeys(types), Errors, *requests], ref_template=REF)
    # The fields of requests are listed in the path, the query and the body of each operation.
    for each in requests:
        components.pop(each.__name__)
    paths: dict[str, dict[str, Any]] = {}
    for operation in routes.OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        'openapi': '3.1.0',
        'info': {'title': 'Kronos for Nova', 'version': versions.VERSIONS[-1],
                 'summary': 'What Kronos does, why, and what operators may have it do.',
                 'license': {'name': 'Apache-2.0', 'identifier': 'Apache-2.0'}},
        'servers': [{'url': '/'}],
        'security': [{'keystone': []}],
        'paths': paths,
        'components': {'schemas': components, 'securitySchemes': {'keystone': {
            'type': 'apiKey', 'in': 'header', 'name': 'X-Auth-Token'}}}}


def _operation(operation: Operation) -> dict:
    failures = ALWAYS | {status: REFUSALS[status] for status in operation.refusals}
    found: dict[str, Any] = {
        'operationId': operation.name.replace(':', '_'), 'summary': operation.summary,
        'description': f'Policy: {operation.rule}, by default for {operation.audience}s.',
        'parameters': [*_in_path(operation), *_in_query(operation)],
        'responses': {str(operation.status): _success(operation), **{
            str(status): _given('Errors', why) for status, why in sorted(failures.items())}}}
    if operation.body is not None:
        found['requestBody'] = {'content': _json(operation.body.__name__)}
    elif operation.contract is not None and operation.contract.has_body:
        found |= _body(operation.contract)
    if operation.events is not None:
        found['parameters'].append(LAST_EVENT_ID)
    return found


def _in_path(operation: Operation) -> list[dict[str, Any]]:
    return [{'name': name, 'in': 'path', 'required': True, 'schema': {'type': 'string'}}
            for name in IN_PATH.findall(operation.path)]


def _in_query(operation: Operation) -> list[dict[str, Any]]:
    given: type = operation.query
    in_path: list[str] = []
    if operation.contract is not None and not operation.contract.has_body:
        given, in_path = operation.contract.request, operation.contract.path_fields
    fields, required = _fields(given, in_path)
    return [{'name': name, 'in': 'query', 'required': name in required, 'schema': field}
            for name, field in fields.items()]


def _body(contract: operations.Operation) -> dict[str, Any]:
    """Return {'requestBody': description} for an operation of the contract. Return {} if all fields
    of the request are in the path."""
    fields, required = _fields(contract.request, contract.path_fields)
    if not fields:
        return {}
    schema = {'type': 'object', 'properties': fields, 'required': required,
              'additionalProperties': False}
    return {'requestBody': {'required': bool(required),
                            'content': {'application/json': {'schema': schema}}}}


def _fields(given: type[msgspec.Struct],
            in_path: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Return ({name: schema}, names of the required fields) for the fields of the struct ``given``.
    The fields named in ``in_path`` are left out."""
    [schema], components = msgspec.json.schema_components([given], ref_template=REF)
    struct = components[schema['$ref'].rpartition('/')[2]]
    fields = {name: field for name, field in struct['properties'].items() if name not in in_path}
    return fields, [name for name in struct.get('required', ()) if name in fields]


def _success(operation: Operation) -> dict[str, Any]:
    if operation.events is not None:
        return {'description': 'Server-sent events. The data of each is JSON: '
                + ', '.join(f'{name}: {each.__name__}' for name, each in operation.events.items()),
                'content': {'text/event-stream': {'schema': {'type': 'string'}}}}
    if operation.media is not None:
        return {'description': 'As asked.', 'content': {operation.media: {}}}
    if operation.gives is None:
        return {'description': 'Done.'}
    return _given(operation.gives.__name__, 'As asked.')


def _given(name: str, why: str) -> dict[str, Any]:
    return {'description': why, 'content': _json(name)}


def _json(name: str) -> dict[str, Any]:
    return {'application/json': {'schema': {'$ref': REF.format(name=name)}}}
