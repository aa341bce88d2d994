"""Pages of long lists: the marker by which the next one is requested."""

from collections.abc import Sequence

from kronos_client.contract.base import Page


def marker_of(found: Sequence[str], request: Page) -> str | None:
    """Return the marker of the next page; None where there is none.

    :param found: the entries of this page, by what marks them
    """
    return found[-1] if found and len(found) == request.limit else None
