"""The type of options that hold an HTTP URL. Its errors name the fault and the correct form."""

import re
from typing import Any

from oslo_config import cfg
from oslo_config import types

_AUTHORITY = re.compile(r'[\w.-]+(:[0-9]{1,5})?|\[[0-9a-f:.]+\](:[0-9]{1,5})?', re.IGNORECASE)
_LARGEST_PORT = 65535
"""Largest number of a TCP port (no unit). Fixed by TCP."""


class HttpUrl(types.URI):
    """The type of options that hold an http or https URL. Errors show a refused URL without its
    credentials."""

    def __init__(self) -> None:
        super().__init__(schemes=['http', 'https'])

    def __call__(self, value: Any) -> str:
        """Return the value as text, if it is a usable http or https URL.

        :raises ValueError: the value is not a usable URL; the message names the correct form
        """
        text = str(value)
        problem = _problem(text)
        if problem:
            raise ValueError(f'"{_without_credentials(text)}" {problem}')
        found: str = super().__call__(text)
        return found


def url_opt(name: str, default: str | None = None, help: str = '') -> cfg.Opt:  # noqa: A002
    """Return an option that holds an http or https URL."""
    return cfg.Opt(name, type=HttpUrl(), default=default, help=help)


def _problem(text: str) -> str | None:
    if not text:
        return 'is empty: write http:// or https://, host and port'
    scheme, found, rest = text.partition('://')
    if not found:
        return _without_scheme(text)
    if scheme not in ('http', 'https'):
        return f'begins with {scheme}://: write http:// or https://'
    authority = re.split('[/?#]', rest, maxsplit=1)[0].rpartition('@')[2]
    if not authority:
        return 'names no host: write it after ://'
    if not _AUTHORITY.fullmatch(authority) or _port(authority) > _LARGEST_PORT:
        return 'has no valid host and port after ://: write HOST:PORT, an IPv6 address in brackets'
    if re.search('[?#]', rest):
        return 'has a query or a fragment: remove what begins with ? or #'
    return None


def _without_scheme(text: str) -> str:
    if re.match('https?[:/]', text, re.IGNORECASE):
        return 'lacks :// after http or https: write http:// or https://'
    rest = text.lstrip('/').rpartition('@')[2]
    if _AUTHORITY.fullmatch(rest.partition('/')[0]):
        return f'lacks http:// or https://: write http://{rest}'
    return 'lacks http:// or https://'


def _port(authority: str) -> int:
    found = re.search(r':([0-9]+)$', authority)
    return int(found[1]) if found else 0


def _without_credentials(text: str) -> str:
    scheme, found, rest = text.rpartition('://') if '://' in text else ('', '', text)
    shown = f'{scheme}{found}***@{rest.rpartition("@")[2]}' if '@' in rest else text
    return shown if shown.isprintable() else repr(shown)
