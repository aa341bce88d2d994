"""kronos-api, asked by a keystoneauth adapter."""

import urllib.parse

import msgspec
from keystoneauth1 import exceptions as ks_exceptions
from osc_lib import exceptions

from kronos_nova import boundary
from kronos_nova.api import openapi

PAGE = 1000
"""Entries that are asked for at a time; the most that the API gives."""


class Client:
    """
    :param adapter: whose ``request`` does not raise for a status
    """

    def __init__(self, adapter):
        self._adapter = adapter

    def get(self, path: str, given: type, **params):
        """What is at a path, as one of the views of the API; parameters that are None are left out.

        :raises CommandError: it was refused, or nobody answered
        """
        return self.ask('GET', path, given, params={
            name: value for name, value in params.items() if value is not None})

    def pages(self, path: str, given: type, field: str, most: int, **params):
        """Up to ``most`` entries of a list that is given in pages."""
        found, marker = [], None
        while len(found) < most:
            page = self.get(path, given, limit=min(PAGE, most - len(found)), marker=marker,
                            **params)
            found += getattr(page, field)
            marker = page.next
            if marker is None:
                break
        return found

    def ask(self, method: str, path: str, given: type | None = None, **request):
        """
        :param given: view of the API that is answered with, None where nothing is
        :raises CommandError: it was refused, or nobody answered
        """
        try:
            answer = self._adapter.request(path, method, raise_exc=False, **request)
        except ks_exceptions.EndpointNotFound as error:
            raise exceptions.CommandError(
                'There is no service of type "kronos" in the catalogue of keystone; '
                '--os-kronos-endpoint gives an address.') from error
        except ks_exceptions.ClientException as error:
            raise exceptions.CommandError(boundary.shown(error)) from error
        if answer.status_code >= 400:
            raise exceptions.CommandError(_refusal(answer))
        try:
            return given and msgspec.json.decode(answer.content, type=given)
        except msgspec.MsgspecError as error:
            raise exceptions.CommandError(
                f'What is at {boundary.shown(answer.url)} is no kronos-api of this release: '
                f'{boundary.shown(error)}') from error


def at(path: str, name: str) -> str:
    """The path of something that a person named, whatever characters that has."""
    return path.format(urllib.parse.quote(name, safe=''))


def _refusal(answer):
    try:
        [error] = msgspec.json.decode(answer.content, type=openapi.Errors).errors
    except (msgspec.MsgspecError, ValueError):
        return (f'{boundary.shown(answer.url)} answers {answer.status_code}, and not as kronos-api '
                'does.')
    return f'{boundary.shown(error.detail)} (HTTP {error.status}, {error.request_id})'
