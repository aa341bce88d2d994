"""Errors of requests to placement::

    PlacementError  (kronos_nova.exception)
    ├── PlacementUnavailable     no answer or a 5xx: a write may or may not have taken effect
    ├── PlacementTooOld          it does not offer a microversion that is needed
    ├── PlacementRefused         it refuses the request: credentials, policy, catalogue
    │   └── NotFound             404: it does not know, or no longer, what was asked for
    ├── AnswerNotUnderstood      it is not the JSON that the API promises: often a proxy's own page
    ├── InvalidAllocations       400
    │   ├── MalformedRequest     the body breaks the schema of the API
    │   ├── UnknownProvider      it names a resource provider that does not exist
    │   └── UnknownResourceClass it names a resource class that does not exist
    ├── SourceRefused            409: what the instance holds on its source is not permitted there
    ├── InsufficientInventory    409: capacity, or min_unit, max_unit, step_size
    ├── ConcurrentUpdate         409 placement.concurrent_update: read again and try again
    │   ├── ConsumerChanged      a consumer's generation is not the one that was sent
    │   └── ProviderChanged      a resource provider's generation moved under placement
    └── NothingToMove            the consumers do not hold what a move needs

Placement has one error code for the three errors with status 400, and one for the two kinds of
``ConcurrentUpdate``. The client tells them apart by reading the objects that the request named,
never by the text of the answer.
"""

from kronos_nova import exception


class PlacementUnavailable(exception.PlacementError):
    code = 'kronos.placement.unavailable'


class PlacementTooOld(exception.PlacementError):
    msg_fmt = ('Placement offers microversions up to %(offered)s, not %(needed)s; it lacks '
               '%(lacks)s. Upgrade placement first.')
    code = 'kronos.placement.too_old'


class PlacementRefused(exception.PlacementError):
    code = 'kronos.placement.refused'


class NotFound(PlacementRefused):
    code = 'kronos.placement.not_found'


class AnswerNotUnderstood(exception.PlacementError):
    code = 'kronos.placement.not_understood'


class InvalidAllocations(exception.PlacementError):
    code = 'kronos.placement.invalid'


class MalformedRequest(InvalidAllocations):
    code = 'kronos.placement.malformed'


class UnknownProvider(InvalidAllocations):
    code = 'kronos.placement.unknown_provider'


class UnknownResourceClass(InvalidAllocations):
    code = 'kronos.placement.unknown_resource_class'


class SourceRefused(exception.PlacementError):
    """Placement refuses to allocate again what an instance holds on its source, because the limits
    of the source have changed. So the instance cannot move to any destination."""

    code = 'kronos.placement.source_refused'


class InsufficientInventory(exception.PlacementError):
    code = 'kronos.placement.insufficient_inventory'


class ConcurrentUpdate(exception.PlacementError):
    code = 'kronos.placement.concurrent_update'


class ConsumerChanged(ConcurrentUpdate):
    code = 'kronos.placement.consumer_changed'


class ProviderChanged(ConcurrentUpdate):
    code = 'kronos.placement.provider_changed'


class NothingToMove(exception.PlacementError):
    code = 'kronos.placement.nothing_to_move'
