"""The text of an error that is shown to operators."""

from oslo_db import exception as db_exc

from kronos_nova import boundary


def error_text(error: Exception) -> str:
    """Return an error as one sentence. A DBError is shown without its statement and values."""
    if not isinstance(error, db_exc.DBError):
        return boundary.shown(error)
    cause = getattr(error, 'inner_exception', None) or error
    why = getattr(cause, 'orig', None) or cause
    return f'A database does not answer, or refuses: {boundary.shown(why)}.'
