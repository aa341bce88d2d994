"""Reading of resource providers from placement: the provider trees of hosts, and the sharing
providers that serve the hosts."""

import collections
import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
from concurrent import futures

from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.inventory import pace
from kronos_nova.inventory import shape
from kronos_nova.placement import errors
from kronos_nova.placement.client import PlacementClient

LOG = logging.getLogger(__name__)

PARALLEL_READS = 2
"""Number of resource providers that are read from placement at the same time, if more than 100
providers (:data:`FEW`) have to be read. Each provider needs its own requests, because placement
cannot return the inventories of several providers together. Raised, nova-conductor on the same
machine has less processor time; lowered, an evaluation takes longer. Not measured."""
FEW = 100
"""Largest number of resource providers that are read from placement one after the other, not in
parallel. Raised, evaluations of small clouds take longer; lowered, evaluations of small clouds use
several processors at once, and become only a little faster. Not measured."""
SLOW = .15
"""Seconds per resource provider above which placement or the network counts as slow. Kronos then
reads more resource providers at the same time. Raised, an evaluation may exceed its time limit
because the network is slow; lowered, a controller whose processors are busy gets more work. Chosen
as ten times the usual time; not measured."""
PARALLEL_SLOW_READS = 8
"""Number of resource providers that are read from placement at the same time if placement or the
network is slow. Raised, placement gets more requests at once; lowered, an evaluation may exceed its
time limit and be killed. Not measured."""
READS_BETWEEN_TWO_LOOKS_AT_THE_CLOCK = 20
"""Number of resource providers that are read between two measurements of the time per provider. A
time above :data:`SLOW` shows that placement or the network is slow. Raised, a slow network is
noticed later; lowered, the threads that read wait for each other more often. Not measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """The resource providers of several hosts.

    of : {uuid of a root provider: providers of its tree, including the root}
    sharing : {uuid of a sharing provider: the sharing provider}, for the sharing providers that
        serve some of the hosts
    """

    of: Mapping[str, list[shape.Provider]]
    sharing: Mapping[str, shape.SharingProvider]


READ_ALL_EVERY = 20
"""Number of evaluations after which all resource providers are read from placement again. In
between, most providers are read only if their generation has changed. But ``DELETE /allocations``
frees resources without a change of the generation. Raised, Kronos takes longer to notice resources
that were freed in this way; lowered, evaluations take longer. Not measured."""


class ProviderCache:
    """A cache of resource providers read from placement. A provider is not read again while its
    generation is the same.

    A generation changes with a provider's inventories and with a new allocation, but not when an
    allocation is removed. So a provider is also read again if one of its consumers is not an
    instance on its host. Such a consumer may be a migration that has ended, or an instance that was
    deleted or has moved, and its allocation may have been removed. After every ``read_all_every``
    readings, all providers are read again.

    Traits rarely change, so the traits of a provider are read again only if its inventories have
    changed.

    :param reading_pace: pauses between requests
    """

    def __init__(self, read_all_every: int = READ_ALL_EVERY,
                 reading_pace: pace.ReadingPace = pace.HURRY,
                 monotonic: Callable[[], float] = time.monotonic):
        self._pace = reading_pace
        self._monotonic = monotonic
        self._kept: dict[str, tuple[int, shape.Provider]] = {}
        self._traits: dict[str, tuple[dict[str, dict], frozenset[str]]] = {}
        self._every = read_all_every
        self._readings = 0
        self._amounts: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
        self._alike: dict[frozenset[str], frozenset[str]] = {}

    def read(self, client: PlacementClient, instances: Mapping[str, Collection[str]]) -> Trees:
        """Return the provider trees of hosts.

        A host that placement does not know is left out and logged. Either its nova-compute has
        never reported, or its provider was deleted.

        :param client: client of placement, which is called from several threads
        :param instances: {uuid of a host's root provider: uuids of the instances on the host}
        :raises InventoryError: placement cannot be read, or knows none of the roots
        """
        try:
            return self._read(client, instances)
        except errors.PlacementRefused as error:
            raise exception.InventoryError(
                problem=f'{error} (does the user of the request have the admin role?)') from error
        except (exception.PlacementError, boundary.OutOfBounds) as error:
            raise exception.InventoryError(problem=str(error)) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise exception.InventoryError(
                problem='an answer of placement does not have the form that its API promises: '
                        f'{error!r}') from error

    def _read(self, client: PlacementClient,
              instances: Mapping[str, Collection[str]]) -> Trees:
        if self._readings % self._every == 0:
            self._kept.clear()
            self._traits.clear()
        self._readings += 1
        known = client.providers()
        ours = {uuid: each for uuid, each in known.items() if each.root in instances}
        self._kept = {uuid: kept for uuid, kept in self._kept.items() if uuid in known}
        stale = [uuid for uuid, each in ours.items()
                 if not self._is_current(uuid, each.generation, instances[each.root])]
        for uuid, provider in self._those(client, stale):
            if provider is None:
                self._kept.pop(uuid, None)
            else:
                self._kept[uuid] = ours[uuid].generation, provider
        self._traits = {uuid: seen for uuid, seen in self._traits.items() if uuid in known}
        trees: dict[str, list[shape.Provider]] = collections.defaultdict(list)
        for uuid, each in ours.items():
            # Providers whose root was deleted are left out, because the rest of the tree will be
            # deleted too.
            if uuid in self._kept and each.root in self._kept:
                trees[each.root].append(self._kept[uuid][1])
        _tell_missing(instances.keys(), trees.keys())
        return Trees(of=trees, sharing=self._sharing(client, trees.keys()))

    def _is_current(self, uuid: str, generation: int, instances: Collection[str]) -> bool:
        kept = self._kept.get(uuid)
        return (kept is not None and kept[0] == generation
                and kept[1].held.keys() <= frozenset(instances))

    def _sharing(self, client: PlacementClient,
                 roots: Set[str]) -> dict[str, shape.SharingProvider]:
        found = {}
        for uuid in sorted(client.sharing()):
            with contextlib.suppress(errors.NotFound):  # deleted since it was listed
                found[uuid] = shape.SharingProvider(
                    provider=self._provider(client, uuid),
                    roots=client.roots_in(client.aggregates(uuid)) & roots - {uuid})
        return {uuid: each for uuid, each in found.items() if each.roots}

    def _those(self, client: PlacementClient,
               uuids: Sequence[str]) -> Iterator[tuple[str, shape.Provider | None]]:
        """Yield (uuid, provider) for each of ``uuids``. The provider is None if it was deleted
        after placement listed it."""
        usual = at_once = 1 if len(uuids) <= FEW else PARALLEL_READS
        waiting = iter(uuids)
        while few := list(itertools.islice(waiting, READS_BETWEEN_TWO_LOOKS_AT_THE_CLOCK)):
            begun = self._monotonic()
            with futures.ThreadPoolExecutor(at_once) as pool:
                yield from zip(few, pool.map(lambda uuid: self._if_there(client, uuid), few),
                               strict=True)
            each = (self._monotonic() - begun) * at_once / len(few)
            at_once = PARALLEL_SLOW_READS if each > SLOW else usual

    def _if_there(self, client: PlacementClient, uuid: str) -> shape.Provider | None:
        with contextlib.suppress(errors.NotFound):
            return self._provider(client, uuid)
        return None

    def _provider(self, client: PlacementClient, uuid: str) -> shape.Provider:
        with self._pace.step():
            holdings = client.held_on(uuid)
        with self._pace.step():
            inventories = client.inventories(uuid)
        # Thousands of consumers have the amounts of some dozen flavors, which are stored once.
        held = {consumer: self._kept_amounts(amounts) for consumer, amounts in holdings.items()}
        return shape.Provider(inventories=inventories, held=held,
                              traits=self._traits_of(client, uuid, inventories))

    def _traits_of(self, client: PlacementClient, uuid: str,
                   inventories: dict[str, dict]) -> frozenset[str]:
        seen = self._traits.get(uuid)
        if seen is not None and seen[0] == inventories:
            return seen[1]
        with self._pace.step():
            traits = client.traits(uuid)
        # Hosts of one kind have equal traits, which are stored once.
        traits = self._alike.setdefault(traits, traits)
        self._traits[uuid] = inventories, traits
        return traits

    def _kept_amounts(self, amounts: Mapping[str, int]) -> dict[str, int]:
        checked = shape.amounts(amounts)
        return self._amounts.setdefault(tuple(checked.items()), checked)


def _tell_missing(roots: Set[str], known: Set[str]) -> None:
    missing = sorted(roots - known)
    if not missing:
        return
    problem = (f'placement has no resource provider for the hypervisor '
               f'{", ".join(missing[:5])}{" and others" if len(missing) > 5 else ""} of Nova; '
               'check that nova-compute runs there and can reach placement')
    if not known:
        raise exception.InventoryError(problem=problem)
    LOG.warning('%d hosts are not considered in this evaluation: %s', len(missing), problem)
