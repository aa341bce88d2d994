"""Pages of long lists. A marker shows where the next page begins."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import TypeVar

from kronos_client.contract.base import Page

_Entry = TypeVar('_Entry')


def first_page(found: Sequence[_Entry], request: Page, marker: Callable[[_Entry], str]
               ) -> tuple[Sequence[_Entry], str | None]:
    """Return the entries of a page, and the marker with which the next page is requested; None if
    there is no next page.

    :param found: the entries from the beginning of the page on, one more than the page may have.
        The additional entry shows that there is a next page
    :param marker: function that returns the marker of an entry, such as its uuid
    """
    page = found[:request.limit]
    return page, marker(page[-1]) if len(found) > len(page) else None
