"""The client that calls kronos-api over HTTP, through a keystoneauth adapter."""

from collections.abc import Mapping
from typing import Any

import msgspec
from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import exceptions as ks_exceptions

from kronos_client import sanitize
from kronos_client.contract import errors
from kronos_client.contract.base import Request
from kronos_client.contract.operation import Answer
from kronos_client.contract.operation import Operation


class HttpClient:
    """A client that sends requests to kronos-api over HTTP.

    :param adapter: keystoneauth adapter of the service type ``kronos``
    """

    def __init__(self, adapter: ks_adapter.Adapter):
        self._adapter = adapter

    def call(self, operation: Operation[Answer], request: Request) -> Answer:
        """Send the request of an operation to kronos-api, and return the response; None for an
        operation without a response.

        :raises Refused: kronos-api refused the request
        :raises Unreachable: kronos-api did not respond or failed, or another program responded
        """
        place = 'json' if operation.has_body else 'params'
        answer = self._sent(operation.address(request), operation.method,
                            {place: operation.rest(request)})
        return _decoded(answer, operation.response)

    def _sent(self, path: str, method: str, arguments: Mapping[str, Any]) -> Any:
        try:
            answer = self._adapter.request(path, method, raise_exc=False, **arguments)
        except ks_exceptions.EndpointNotFound as error:
            raise errors.Unreachable(
                'There is no service of type "kronos" in the catalogue of keystone. Give the URL '
                'of kronos-api with --os-kronos-endpoint.') from error
        except ks_exceptions.ClientException as error:
            raise errors.Unreachable(sanitize.shown(error)) from error
        if answer.status_code >= 400:
            raise _refusal(answer)
        return answer


def _decoded(answer: Any, response: type | None) -> Any:
    try:
        return response and msgspec.json.decode(answer.content, type=response)
    except msgspec.MsgspecError as error:
        raise errors.Unreachable(
            f'{sanitize.shown(answer.url)} does not answer as a kronos-api of this release does: '
            f'{sanitize.shown(error)}. Check that the URL is that of kronos-api, and that client '
            'and kronos-api are of the same release.') from error


def _refusal(answer: Any) -> Exception:
    try:
        [error] = msgspec.json.decode(answer.content, type=errors.Errors).errors
    except (msgspec.MsgspecError, ValueError):
        return errors.Unreachable(
            f'{sanitize.shown(answer.url)} answers {answer.status_code}, and not as kronos-api '
            'does.')
    return errors.from_answer(error)
