"""Pages of long lists: the marker by which the next one is requested."""

from collections.abc import Sequence

from kronos_client.contract.base import Page


def marker_of(found: Sequence[str], request: Page) -> str | None:
    """Return the marker of the next page; None where there is none.

    :param found: the markers of this page's entries, such as uuids
    """
    return found[-1] if found and len(found) == request.limit else None
