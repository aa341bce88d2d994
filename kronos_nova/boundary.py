"""Checks and bounds for input from outside Kronos.

Every module that reads a response, a message, a file or a name from outside calls these functions.
The results of these functions are bounded in number, size and range. The functions raise no other
exception than :class:`OutOfBounds`. The caller converts this exception to an exception of its own
package, with the name of the file or the address.

In all functions, ``what`` is the name of the value in the text of the exception.
"""

import json
import math
from collections.abc import Mapping
from collections.abc import Sized
from typing import Any
from typing import TypeVar

import msgspec

from kronos_client import sanitize
from kronos_nova import exception

NAME_CHARACTERS = 255
"""Maximum number of characters of a name in Nova, and of a key or a value of metadata. Fixed by
Nova, which has the same limit."""

UUID_CHARACTERS = 36
"""Number of characters of a uuid, including its four hyphens. Fixed by the definition of uuids."""

JSON_ITEMS = 10_000_000
"""Maximum number of values in all lists and objects of one JSON document together. Raised, a small
document can take more memory, about a hundred bytes for each value; lowered, the documents of large
clouds are refused. Chosen above the largest document that is expected: an answer of Prometheus
about 300,000 instances, which has seven million values."""

_Sized = TypeVar('_Sized', bound=Sized)
_STRUCTURE = (b'[', b'{', b',')

remark = sanitize.remark
shown = sanitize.shown


class OutOfBounds(exception.KronosException):
    """Input from outside is larger, deeper or of another type than permitted."""

    msg_fmt = '%(what)s %(problem)s'
    code = 'kronos.out_of_bounds'


def storable(value: object, what: str, most: int = NAME_CHARACTERS) -> str:
    """Return the value if it is a text that :func:`printable` accepts and that has no characters of
    four bytes (in UTF-8). Tables of MariaDB, such as Nova's, may have an encoding without these
    characters. MariaDB then refuses a query with such a text.

    :raises OutOfBounds: the text has characters of four bytes, or :func:`printable` refuses the
        value
    """
    found = printable(value, what, most)
    if sanitize.BEYOND.search(found):
        raise OutOfBounds(what=what, problem='has characters that no name in Nova may have')
    return found


def text(value: object, what: str, most: int = NAME_CHARACTERS) -> str:
    """Return the value if it is a text of at most ``most`` characters.

    :raises OutOfBounds: the value is no text, or longer than ``most`` characters
    """
    if not isinstance(value, str):
        raise OutOfBounds(what=what, problem=f'must be text, not {_kind(value)}')
    if len(value) > most:
        raise OutOfBounds(what=what, problem=f'has {len(value)} characters, more than {most}')
    return value


def printable(value: object, what: str, most: int = NAME_CHARACTERS) -> str:
    """Return the value if it is a text without control characters and without lone surrogates. Such
    a text is safe in logs, terminals and databases.

    :raises OutOfBounds: the value is no such text, or longer than ``most`` characters
    """
    found = text(value, what, most)
    if not found.isprintable():
        raise OutOfBounds(what=what, problem='has characters that cannot be printed')
    return found


def integer(value: object, what: str, lowest: int, highest: int) -> int:
    """Return the value if it is a whole number within the bounds.

    :raises OutOfBounds: the value is no whole number, or not from ``lowest`` to ``highest``
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise OutOfBounds(what=what, problem=f'must be a whole number, not {_kind(value)}')
    if not lowest <= value <= highest:
        raise OutOfBounds(what=what, problem=f'must be {lowest} to {highest}')
    return value


def number(value: object, what: str) -> float:
    """Return the value as a finite float.

    :raises OutOfBounds: the value is no number, not finite, or larger than a float can be
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise OutOfBounds(what=what, problem=f'must be a number, not {_kind(value)}')
    try:
        found = float(value)
    except OverflowError as error:
        raise OutOfBounds(
            what=what, problem='is larger than any number that is accepted') from error
    if not math.isfinite(found):
        raise OutOfBounds(what=what, problem='must be a finite number')
    return found


def sized(values: _Sized, what: str, most: int) -> _Sized:
    """Return ``values`` unchanged if there are at most ``most`` of them.

    :raises OutOfBounds: there are more than ``most``
    """
    if len(values) > most:
        raise OutOfBounds(what=what, problem=f'has {len(values)} entries, more than {most}')
    return values


def texts(values: object, what: str, most: int, most_characters: int = NAME_CHARACTERS
          ) -> dict[str, str]:
    """Return ``values`` as a dict if it is a mapping of texts to texts, such as metadata.

    :param most_characters: maximum number of characters of a value

    :raises OutOfBounds: the value is no such mapping, has more than ``most`` keys, or a text is too
        long
    """
    if not isinstance(values, Mapping):
        raise OutOfBounds(what=what, problem=f'must be an object, not {_kind(values)}')
    sized(values, what, most)
    return {text(key, f'a key of {what}'): text(value, f'{what}: {shown(key, 80)}', most_characters)
            for key, value in values.items()}


def json_of(body: bytes | str, what: str, most_items: int = JSON_ITEMS) -> Any:
    """Parse a JSON document, and return its value.

    Values in lists and objects are counted before the document is parsed, so that a refused
    document takes no memory. Python's own limit of recursion bounds the levels of nesting.

    :raises OutOfBounds: the document is no JSON, has too many levels of nesting, or may have more
        than ``most_items`` values
    """
    content = body.encode() if isinstance(body, str) else body
    if _has_more(content, most_items):
        raise OutOfBounds(what=what, problem=f'has more than {most_items} members')
    try:
        return json.loads(content)
    except RecursionError as error:
        raise OutOfBounds(what=what, problem='is nested too deep') from error
    except ValueError as error:
        raise OutOfBounds(what=what, problem=f'is not JSON: {shown(error)}') from error


def typed_json(body: bytes, decoder: msgspec.json.Decoder, most_items: int = JSON_ITEMS) -> object:
    """Decode a JSON document into the type of ``decoder``. Return None if the document has another
    type or is outside the bounds of :func:`json_of`. This function takes a third of the time of
    :func:`json_of`, but does not name the fault of the document."""
    if _has_more(body, most_items):
        return None
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def _has_more(content: bytes, most_items: int) -> bool:
    """Return true if a document may have more than ``most_items`` values, and false if it cannot.
    The document is not parsed. Instead, the characters ``[``, ``{`` and ``,`` are counted. A
    document has at least as many of these characters as values in lists and objects."""
    return len(content) > most_items and sum(map(content.count, _STRUCTURE)) > most_items


def _kind(value: object) -> str:
    return type(value).__name__
