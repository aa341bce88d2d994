"""Errors of requests to placement::

    PlacementError  (kronos_nova.exception)
    ├── PlacementUnavailable     no response or a 5xx, of placement or keystone: it is unknown
    │                            whether a write has taken effect
    ├── PlacementTooOld          placement does not offer a microversion that is needed
    ├── PlacementRefused         placement refuses the request
    │   ├── AccessRefused        every request is refused: credentials, policy, microversion, or
    │   │                        another program answers at the endpoint in the catalogue
    │   └── NotFound             404: the requested object does not exist, or no longer exists
    ├── AnswerNotUnderstood      a response is not the JSON of the API: often a proxy's own page
    ├── InvalidAllocations       400
    │   ├── MalformedRequest     the body breaks the schema of the API
    │   ├── UnknownProvider      the body names a resource provider that does not exist
    │   └── UnknownResourceClass the body names a resource class that does not exist
    ├── SourceRefused            409: the instance's own allocations exceed limits of its source
    ├── InsufficientInventory    409: capacity, or min_unit, max_unit, step_size
    ├── ConcurrentUpdate         409 placement.concurrent_update: the caller reads again and retries
    │   ├── ConsumerChanged      a consumer's generation differs from the generation that was sent
    │   └── ProviderChanged      a resource provider's generation changed during the request
    └── NothingToMove            the consumers lack the allocations that a move needs

Placement has one error code for the three errors with status 400, and one for the two kinds of
``ConcurrentUpdate``. To distinguish these errors, the client reads the objects that the request
named. The client never uses the text of the response.
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


class AccessRefused(PlacementRefused):
    code = 'kronos.placement.access_refused'


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
    """Error raised if placement refuses to write the present allocations of an instance on its
    source. The limits of the source have changed, so the instance cannot move to any
    destination."""

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


OF_EVERY_REQUEST = PlacementUnavailable, PlacementTooOld, AccessRefused, AnswerNotUnderstood
"""Errors that do not depend on the request: placement would answer other requests in the same way.
They say nothing about the instance, provider or move that the request is about. All other errors
are refusals or conflicts of the one request."""
