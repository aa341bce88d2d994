"""Errors of the API: their form in a response, and the exceptions that a client raises for
errors."""

import msgspec

from kronos_client import sanitize

DETAIL_CHARACTERS = 2000
"""Maximum number of characters of an API error that a client shows. A longer error is cut. Raised,
a faulty server can fill a terminal; lowered, long lists of names in an error are cut. Chosen as the
length to which the services of Kronos cut a line of an error."""

SERVER_ERROR = 500
"""Lowest HTTP status of errors whose cause is the server (no unit). For such an error, the client
shows the request id, by which the cause can be found in the log of kronos-api. Fixed by HTTP."""


class Error(msgspec.Struct):
    """An error in a response. ``code`` is a word by which programs distinguish errors; it does not
    change between releases."""

    status: int
    title: str
    code: str
    detail: str
    request_id: str


class Errors(msgspec.Struct):
    """The body of every response with a status of 400 or more."""

    errors: list[Error]


class Refused(Exception):  # noqa: N818 - named as what happened
    """Error raised if Kronos refused an operation. ``code`` is the code of the error."""

    def __init__(self, text: str, code: str):
        super().__init__(text)
        self.code = code


class Unreachable(Exception):  # noqa: N818 - named as what happened
    """Error raised if kronos-api or the control database did not respond, or if another program
    responded in place of kronos-api."""


class StopPending(Exception):  # noqa: N818 - named as what happened
    """Error raised if a stop is not yet recorded in the control database, because the database did
    not respond. The stop is recorded as soon as the database responds."""


def from_answer(error: Error) -> Exception:
    """Return the exception that a client raises for an error of kronos-api. For a status of 500 or
    more, the text of the exception has the request id, by which the cause can be found in the log
    of kronos-api."""
    if error.status < SERVER_ERROR:
        # For an address that belongs to no operation, kronos-api answers without a detail.
        text = error.detail or f'kronos-api answers {error.status}: {error.title}.'
        return Refused(sanitize.shown(text, DETAIL_CHARACTERS), error.code)
    return Unreachable(f'{sanitize.shown(error.detail, DETAIL_CHARACTERS)} (HTTP {error.status}, '
                       f'{sanitize.shown(error.request_id)})')
