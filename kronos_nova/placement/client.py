"""Client of the part of placement's API that Kronos uses. The client works with any keystoneauth
adapter."""

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any
from typing import ParamSpec
from typing import TypeVar

import tenacity
from keystoneauth1 import exceptions as ks_exceptions
from oslo_log import log as logging
from oslo_utils import uuidutils

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.objects.nova_facts import PLACEMENT_ALLOCATIONS
from kronos_nova.objects.nova_facts import PLACEMENT_NEEDED
from kronos_nova.placement import errors
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer

LOG = logging.getLogger(__name__)

MOST_DETAIL = 1000
"""Maximum number of characters that a message quotes from an error response of placement. Raised, a
message can fill a screen; lowered, the cause of the error may be cut off. Not measured."""
P = ParamSpec('P')
R = TypeVar('R')

CONCURRENT_UPDATE = 'placement.concurrent_update'
RESOURCE_CLASS = re.compile('[A-Z0-9_]+')
SHARING = 'MISC_SHARES_VIA_AGGREGATE'
NOT_FOUND = 404
OBJECT = re.compile('/resource_(providers|classes)/')
"""Paths (no unit) of the objects of which placement answers that they do not exist. A consumer
without allocations exists. Fixed by placement."""
UNAVAILABLE = 408, 429
"""HTTP statuses below 500 with which a proxy answers while it or placement is too busy. Fixed by
HTTP."""
ACCESS_REFUSED = 401, 403, 406, 407
"""HTTP statuses with which placement or a proxy refuses every request: the credentials are refused
(401, 403, 407), or placement was replaced by a release without the microversion (406). Fixed by
HTTP and placement."""
TOO_LONG = 413, 414, 431
"""HTTP statuses with which a proxy refuses a request because of its length. Shorter requests reach
placement. Fixed by HTTP."""
CHANGED = 204
"""HTTP status with which placement answers after it has changed allocations. Fixed by placement."""

UNANSWERED = (ks_exceptions.ConnectionError, ks_exceptions.HttpServerError,
              ks_exceptions.DiscoveryFailure)
"""Errors of keystoneauth if placement does not answer, or if keystone, which issues the token for
the request, does not answer or answers with an error 5xx."""

#: A function from the present allocations of consumers to the wanted ones; None for no change.
Change = Callable[[Mapping[str, Consumer]], AllocationSet | None]


def retrying(attempts: int = 10, longest_pause: float = 2.0) -> tenacity.Retrying:
    """Return a tenacity.Retrying, which calls a function again after a conflict or an outage of
    placement. After ``attempts`` calls, the Retrying raises the last error. The pauses between
    calls are random and become longer, up to ``longest_pause`` seconds."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((errors.ConcurrentUpdate,
                                                errors.PlacementUnavailable)),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=longest_pause),
        stop=tenacity.stop_after_attempt(attempts), reraise=True,
        before_sleep=tenacity.before_sleep_log(LOG, logging.DEBUG))


def _understood(method: Callable[P, R]) -> Callable[P, R]:
    """Return ``method`` with a check of placement's responses. The check raises AnswerNotUnderstood
    if a response lacks a field that the microversion promises."""
    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise errors.AnswerNotUnderstood(
                problem='an answer does not have the form that its API version promises: '
                        f'{boundary.shown(repr(error))}') from error
    return checked


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderState:
    """The state of a resource provider: the root of its tree, and its generation. The generation
    changes with the provider's inventories and with each new allocation, but not when an allocation
    is removed."""

    root: str
    generation: int


class PlacementClient:
    """A client of placement. It reads consumers and providers, and changes several consumers in one
    transaction.

    ``adapter`` is a keystoneauth adapter for placement. ``attempts`` is a function that returns a
    new :class:`tenacity.Retrying` for each change. Every method raises
    :class:`~kronos_nova.placement.errors.PlacementUnavailable` if placement does not respond, and
    :class:`~kronos_nova.placement.errors.PlacementRefused` if placement refuses the request.
    """

    def __init__(self, adapter: Any, attempts: Callable[[], tenacity.Retrying] = retrying):
        self._adapter = adapter
        self._attempts = attempts
        self._version: tuple[int, int] | None = None

    @_understood
    def negotiate(self) -> str:
        """Select the highest microversion up to 1.38 that placement supports, and return the
        microversion. Placement has consumer types from 1.38 on.

        :raises PlacementTooOld: placement does not offer 1.36
        """
        response = self._request('GET', '/', has_version=False)
        _raise_for_refusal(response, 'GET', '/')
        root = _json(response)['versions'][0]
        major, minor = map(int, root['max_version'].split('.'))
        offered = major, minor
        if offered < max(PLACEMENT_NEEDED):
            lacks = ', '.join(f'{feature} ({_text(since)})'
                              for since, feature in PLACEMENT_NEEDED.items() if offered < since)
            raise errors.PlacementTooOld(offered=_text(offered), lacks=lacks,
                                         needed=_text(max(PLACEMENT_NEEDED)))
        self._version = min(offered, PLACEMENT_ALLOCATIONS)
        return _text(self._version)

    @_understood
    def consumer(self, uuid: str) -> Consumer:
        """Read a consumer and its allocations. A consumer that placement does not know has no
        allocations."""
        return Consumer.from_body(uuid, self._get(f'/allocations/{uuid}'))

    def post(self, allocations: AllocationSet) -> None:
        """Send one ``POST /allocations``, which changes all consumers or none.

        The request can be repeated safely. If the first request has changed the consumers,
        placement refuses the second one (:class:`ConsumerChanged`), because the generations of the
        consumers have changed.

        :raises InvalidAllocations, InsufficientInventory, ConcurrentUpdate: nothing was changed
        :raises PlacementUnavailable, AnswerNotUnderstood: it is unknown whether the allocations
            were changed
        """
        response = self._request('POST', '/allocations',
                                 json=allocations.to_body(self.has_consumer_types))
        is_of_placement = bool(_error(response))
        if response.status_code == 400 and is_of_placement:
            raise self._invalid(allocations, _detail(response))
        if response.status_code == 409 and is_of_placement:
            raise self._conflict(allocations, response)
        _raise_for_refusal(response, 'POST', '/allocations')
        if response.status_code != CHANGED:
            raise errors.AnswerNotUnderstood(
                problem=f'POST /allocations: HTTP {response.status_code}, with which placement '
                        'does not answer')

    def replace(self, uuids: Collection[str], change: Change) -> AllocationSet | None:
        """Read consumers, and post the allocations that ``change`` returns for them. After a
        conflict or an outage, the consumers are read again and ``change`` is called again.

        A response may be lost after the allocations were changed. ``change`` is then called with
        the changed allocations, and must return None or an empty set.

        :returns: the posted allocations; None or an empty set if there was nothing to post
        :raises ConcurrentUpdate, PlacementUnavailable: the last error, after all attempts
        """
        for attempt in self._attempts():
            with attempt:
                held = {uuid: self.consumer(uuid) for uuid in uuids}
                wanted = change(held)
                if wanted is not None and wanted.consumers:
                    self.post(wanted)
        return wanted

    @_understood
    def tree(self, root: str) -> frozenset[str]:
        """Return the uuids of all providers in the same tree as the provider ``root``."""
        providers = self._get(f'/resource_providers?in_tree={root}')['resource_providers']
        return frozenset(provider['uuid'] for provider in providers)

    def roots(self) -> dict[str, str]:
        """Return {provider uuid: uuid of the root of its tree} for all providers."""
        return {uuid: provider.root for uuid, provider in self.providers().items()}

    @_understood
    def providers(self) -> dict[str, ProviderState]:
        """Return {provider uuid: its root and generation} for all providers."""
        return {provider['uuid']: ProviderState(root=provider['root_provider_uuid'],
                                                generation=provider['generation'])
                for provider in self._get('/resource_providers')['resource_providers']}

    @_understood
    def inventories(self, provider: str) -> dict[str, dict]:
        """Return {resource class: its inventory} of one provider."""
        return self._get(f'/resource_providers/{provider}/inventories')['inventories']

    @_understood
    def traits(self, provider: str) -> frozenset[str]:
        """Return the names of the traits of one provider."""
        return frozenset(self._get(f'/resource_providers/{provider}/traits')['traits'])

    @_understood
    def roots_in(self, aggregates: Collection[str]) -> frozenset[str]:
        """Return the uuids of the root providers whose trees have a provider in any of the
        aggregates.

        :param aggregates: uuids of aggregates
        """
        if not aggregates:
            return frozenset()
        members = ','.join(sorted(aggregates))
        providers = self._get(f'/resource_providers?member_of=in:{members}')['resource_providers']
        return frozenset(provider['root_provider_uuid'] for provider in providers)

    @_understood
    def name(self, provider: str) -> str:
        """Return the name of a provider. The name of a compute node's provider is its hypervisor
        hostname."""
        return self._get(f'/resource_providers/{provider}')['name']

    @_understood
    def held_on(self, provider: str) -> dict[str, dict[str, int]]:
        """Return the allocations on one provider, as {consumer uuid: {resource class: amount}}."""
        held = self._get(f'/resource_providers/{provider}/allocations')['allocations']
        return {uuid: allocation['resources'] for uuid, allocation in held.items()}

    @_understood
    def resource_classes(self) -> frozenset[str]:
        """Return the names of all resource classes."""
        classes = self._get('/resource_classes')['resource_classes']
        return frozenset(each['name'] for each in classes)

    @_understood
    def sharing(self) -> frozenset[str]:
        """Return the uuids of all sharing providers. A sharing provider has the trait
        MISC_SHARES_VIA_AGGREGATE."""
        providers = self._get(f'/resource_providers?required={SHARING}')['resource_providers']
        return frozenset(provider['uuid'] for provider in providers)

    @_understood
    def aggregates(self, provider: str) -> frozenset[str]:
        """Return the uuids of the aggregates of a provider."""
        return frozenset(self._get(f'/resource_providers/{provider}/aggregates')['aggregates'])

    @_understood
    def in_tree_and_aggregates(self, root: str, aggregates: Collection[str]) -> frozenset[str]:
        """Return the uuids of the providers in the tree of ``root`` that are in any of
        ``aggregates``."""
        if not aggregates:
            return frozenset()
        members = ','.join(sorted(aggregates))
        providers = self._get(f'/resource_providers?in_tree={root}&member_of=in:{members}')
        return frozenset(provider['uuid'] for provider in providers['resource_providers'])

    @_understood
    def candidates(self, query: str) -> list[dict]:
        """Return the allocation requests of ``GET /allocation_candidates?query``, in the order of
        the response."""
        return self._get(f'/allocation_candidates?{query}')['allocation_requests']

    @property
    def has_consumer_types(self) -> bool:
        return self.version >= PLACEMENT_ALLOCATIONS

    @property
    def version(self) -> tuple[int, int]:
        if self._version is None:
            self.negotiate()
        assert self._version is not None
        return self._version

    def _get(self, path: str) -> dict:
        response = self._request('GET', path)
        _raise_for_refusal(response, 'GET', path)
        return _json(response)

    def _request(self, method: str, path: str, has_version: bool = True, **kwargs: Any) -> Any:
        headers = {'Accept': 'application/json'}
        if has_version:
            headers['OpenStack-API-Version'] = f'placement {_text(self.version)}'
        try:
            response = self._adapter.request(path, method, headers=headers, raise_exc=False,
                                             **kwargs)
        except UNANSWERED as error:
            raise errors.PlacementUnavailable(problem=f'{method} {path}: {error}') from error
        except ks_exceptions.ClientException as error:
            raise errors.AccessRefused(problem=f'{method} {path}: {error}') from error
        if response.status_code >= 500 or response.status_code in UNAVAILABLE:
            raise errors.PlacementUnavailable(
                problem=f'{method} {path}: HTTP {response.status_code}')
        return response

    def _invalid(self, allocations: AllocationSet, detail: str) -> errors.InvalidAllocations:
        held = [consumer.allocations for consumer in allocations.consumers]
        for provider in sorted({uuid for each in held for uuid in each}):
            if uuidutils.is_uuid_like(provider) and not self._exists(
                    f'/resource_providers/{provider}'):
                return errors.UnknownProvider(problem=f'there is no resource provider {provider}')
        for name in sorted({name for each in held for amounts in each.values()
                            for name in amounts}):
            if RESOURCE_CLASS.fullmatch(name) and not self._exists(f'/resource_classes/{name}'):
                return errors.UnknownResourceClass(problem=f'there is no resource class {name}')
        return errors.MalformedRequest(problem=detail)

    def _conflict(self, allocations: AllocationSet, response: Any) -> exception.PlacementError:
        detail = _detail(response)
        if _error(response).get('code') != CONCURRENT_UPDATE:
            return errors.InsufficientInventory(problem=detail)
        for consumer in allocations.consumers:
            if self.consumer(consumer.uuid).generation != consumer.generation:
                return errors.ConsumerChanged(problem=f'consumer {consumer.uuid}: {detail}')
        return errors.ProviderChanged(problem=detail)

    def _exists(self, path: str) -> bool:
        with contextlib.suppress(errors.NotFound):
            _raise_for_refusal(self._request('GET', path), 'GET', path)
            return True
        return False


def _text(version: tuple[int, int]) -> str:
    return '{}.{}'.format(*version)


def _json(response: Any) -> dict:
    try:
        return boundary.json_of(response.content, 'its answer')
    except boundary.OutOfBounds as error:
        raise errors.AnswerNotUnderstood(problem=str(error)) from error


def _error(response: Any) -> dict:
    try:
        error = _json(response)['errors'][0]
    except (errors.AnswerNotUnderstood, LookupError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}


def _detail(response: Any) -> str:
    detail = str(_error(response).get('detail') or response.text)
    return boundary.shown(re.sub(r'\s+', ' ', detail).strip(), MOST_DETAIL)


def _raise_for_refusal(response: Any, method: str, path: str) -> None:
    if response.status_code >= 400:
        raise _refusal_of(response, path)(
            problem=f'{method} {path}: HTTP {response.status_code}: {_detail(response)}')


def _refusal_of(response: Any, path: str) -> type[errors.PlacementRefused]:
    """Return the class of the error for a response with a status from 400 to 499.

    A response that is not in the form of placement's errors comes from another program: the
    endpoint in the catalogue is wrong, or a proxy answers in place of placement. If placement does
    not find a path that names no object, the path of the endpoint is wrong. In both cases, a status
    404 does not mean that a requested object does not exist.
    """
    if response.status_code in TOO_LONG:
        return errors.PlacementRefused
    if response.status_code in ACCESS_REFUSED or not _error(response):
        return errors.AccessRefused
    if response.status_code == NOT_FOUND:
        return errors.NotFound if OBJECT.match(path) else errors.AccessRefused
    return errors.PlacementRefused
