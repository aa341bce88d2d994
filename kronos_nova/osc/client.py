"""kronos-api, asked for the operations that the contract does not have yet."""

import urllib.parse

from kronos_nova.client.http import HttpClient

PAGE = 1000
"""Entries a request asks for. Raised above the API's own limit, it is refused; lowered, long lists
take more requests. Chosen as that limit."""


class Client(HttpClient):
    """Operations by their paths, in addition to those of the contract."""

    def get(self, path: str, given: type, **params):
        """Return the answer to GET; parameters that are None are left out.

        :param given: view of the API
        :raises Refused: kronos-api refused the request
        :raises Unreachable: kronos-api did not answer
        """
        return self.ask('GET', path, given, params={
            name: value for name, value in params.items() if value is not None})

    def pages(self, path: str, given: type, field: str, most: int, **params):
        """Return up to ``most`` entries of a list that is given in pages."""
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
        :raises Refused: kronos-api refused the request
        :raises Unreachable: kronos-api did not answer
        """
        return self._decoded(self._send(path, method, request), given)


def at(path: str, name: str) -> str:
    """The path of something with a name that a person typed."""
    return path.format(urllib.parse.quote(name, safe=''))
