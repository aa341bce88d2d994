"""Pages of long lists. A marker shows where the next page begins."""

from collections.abc import Sequence

from kronos_client.contract.base import Page


def marker_of(found: Sequence[str], request: Page) -> str | None:
    """Return the marker with which the next page is requested; None if there is no next page.

    :param found: the markers of this page's entries, such as uuids
    """
    return found[-1] if found and len(found) == request.limit else None
