"""The allocations of one consumer, and sets of consumers whose allocations change in one
transaction."""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

INSTANCE = 'INSTANCE'
MIGRATION = 'MIGRATION'

#: {resource provider uuid: {resource class: amount}}
Allocations = Mapping[str, Mapping[str, int]]


def on(allocations: Allocations, providers: Collection[str]) -> Allocations:
    """Return the part of ``allocations`` on the given ``providers``."""
    return {uuid: held for uuid, held in allocations.items() if uuid in providers}


def off(allocations: Allocations, providers: Collection[str]) -> Allocations:
    """Return the part of ``allocations`` that is not on the given ``providers``."""
    return {uuid: held for uuid, held in allocations.items() if uuid not in providers}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """The allocations of one consumer, either as they are in placement or as they should be.

    ``generation`` is the generation with which the consumer was read; None if placement does not
    know the consumer. ``consumer_type`` is None if the type is unknown, because the consumer was
    made with a microversion below 1.38.
    """

    uuid: str
    allocations: Allocations
    generation: int | None = None
    project_id: str | None = None
    user_id: str | None = None
    consumer_type: str | None = None

    @classmethod
    def from_body(cls, uuid: str, body: Mapping) -> 'Consumer':
        """Return a consumer from a response to ``GET /allocations/{uuid}``."""
        kind = body.get('consumer_type')
        return cls(
            uuid=uuid,
            allocations={provider: dict(held['resources'])
                         for provider, held in body['allocations'].items()},
            generation=body.get('consumer_generation'),
            project_id=body.get('project_id'), user_id=body.get('user_id'),
            # Placement may answer 'unknown', but refuses it in a request.
            consumer_type=None if kind == 'unknown' else kind)

    def to_body(self, with_type: bool = True) -> dict:
        """Return the value of the consumer in the body of ``POST /allocations``.

        :param with_type: True for microversion 1.38, which has consumer types; False for
            microversion 1.28
        """
        body = {
            'allocations': {uuid: {'resources': dict(held)}
                            for uuid, held in self.allocations.items()},
            'consumer_generation': self.generation,
            'project_id': self.project_id, 'user_id': self.user_id,
        }
        return body | {'consumer_type': self.consumer_type} if with_type else body

    def holding(self, allocations: Allocations, **changes: Any) -> 'Consumer':
        """Return a copy of the consumer with new ``allocations``. ``changes`` are new values of
        other fields of the consumer."""
        return dataclasses.replace(self, allocations=allocations, **changes)


@dataclasses.dataclass(frozen=True, slots=True)
class AllocationSet:
    """The allocations that several consumers have after one ``POST /allocations``.

    Placement removes a consumer whose allocations are empty. The set has the generation with which
    each consumer was read. So placement refuses the whole set if any of the consumers has changed
    since it was read.
    """

    consumers: tuple[Consumer, ...]

    @classmethod
    def from_consumers(cls, *consumers: Consumer) -> 'AllocationSet':
        return cls(consumers)

    @classmethod
    def from_body(cls, body: Mapping) -> 'AllocationSet':
        """Return a set from a body of ``POST /allocations``."""
        return cls(tuple(Consumer.from_body(uuid, held) for uuid, held in body.items()))

    def to_body(self, with_types: bool = True) -> dict:
        return {consumer.uuid: consumer.to_body(with_types) for consumer in self.consumers}

    def changed_from(self, held: Iterable[Consumer]) -> 'AllocationSet':
        """Return an AllocationSet of those consumers whose allocations differ from their
        allocations in ``held``."""
        before = {consumer.uuid: consumer.allocations for consumer in held}
        return AllocationSet(tuple(consumer for consumer in self.consumers
                                   if consumer.allocations != before.get(consumer.uuid)))
