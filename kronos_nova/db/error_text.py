"""The text of an error, for people."""

from oslo_db import exception as db_exc

from kronos_nova import boundary


def error_text(error: Exception) -> str:
    """Format an error as one sentence; a DBError without its statement and values."""
    if not isinstance(error, db_exc.DBError):
        return boundary.shown(error)
    cause = getattr(error, 'inner_exception', None) or error
    why = getattr(cause, 'orig', None) or cause
    return f'A database does not answer, or refuses: {boundary.shown(why)}.'
