"""Refusals: their form in an answer, and the errors that a client raises for them."""

import msgspec

from kronos_client import sanitize

DETAIL_CHARACTERS = 2000
"""Maximum number of characters of an error that a client shows. Raised, a faulty server can fill a
terminal; lowered, long lists of names are cut. Chosen as the length at which the programs of Kronos
cut a line of an error."""

SERVER_ERROR = 500
"""HTTP status (no unit) from which the cause is in the log of kronos-api. Fixed by HTTP."""


class Error(msgspec.Struct):
    """One error. ``code`` is a stable word, by which programs tell errors apart."""

    status: int
    title: str
    code: str
    detail: str
    request_id: str


class Errors(msgspec.Struct):
    """The body of any answer with a status from 400 on."""

    errors: list[Error]


class Refused(Exception):  # noqa: N818 - named as what happened
    """An operation that is refused. ``code`` is the code of the error."""

    def __init__(self, text: str, code: str):
        super().__init__(text)
        self.code = code


class Unreachable(Exception):  # noqa: N818 - named as what happened
    """kronos-api or the control database did not answer, or something else did in its place."""


class StopPending(Exception):  # noqa: N818 - named as what happened
    """Kronos is stopped without the control database, which gets the stop when it answers."""


def from_answer(error: Error) -> Exception:
    """Make the exception that a client raises for an error of kronos-api. The text of a server
    error names the request, which the log of kronos-api has."""
    if error.status < SERVER_ERROR:
        # An address without an operation is refused without a detail.
        text = error.detail or f'kronos-api answers {error.status}: {error.title}.'
        return Refused(sanitize.shown(text, DETAIL_CHARACTERS), error.code)
    return Unreachable(f'{sanitize.shown(error.detail, DETAIL_CHARACTERS)} (HTTP {error.status}, '
                       f'{sanitize.shown(error.request_id)})')
