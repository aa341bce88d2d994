"""Consumers of allocations, and the set of them that changes in one transaction."""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

INSTANCE = 'INSTANCE'
MIGRATION = 'MIGRATION'

#: {resource provider uuid: {resource class: amount}}
Allocations = Mapping[str, Mapping[str, int]]


def on(allocations: Allocations, providers: Collection[str]) -> Allocations:
    """Return the part of ``allocations`` that lies on ``providers``."""
    return {uuid: held for uuid, held in allocations.items() if uuid in providers}


def off(allocations: Allocations, providers: Collection[str]) -> Allocations:
    """Return the part of ``allocations`` that does not lie on ``providers``."""
    return {uuid: held for uuid, held in allocations.items() if uuid not in providers}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """The allocations of one consumer, present or wanted.

    ``generation`` is the generation that was read; None for a consumer that placement does not
    know. ``consumer_type`` is None for a consumer that was made before microversion 1.38, whose
    type is not known.
    """

    uuid: str
    allocations: Allocations
    generation: int | None = None
    project_id: str | None = None
    user_id: str | None = None
    consumer_type: str | None = None

    @classmethod
    def from_body(cls, uuid: str, body: Mapping) -> 'Consumer':
        """Make a consumer from an answer of ``GET /allocations/{uuid}``."""
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
        """Return the consumer's value in the body of ``POST /allocations``: of microversion 1.38,
        or of 1.28 without the type."""
        body = {
            'allocations': {uuid: {'resources': dict(held)}
                            for uuid, held in self.allocations.items()},
            'consumer_generation': self.generation,
            'project_id': self.project_id, 'user_id': self.user_id,
        }
        return body | {'consumer_type': self.consumer_type} if with_type else body

    def holding(self, allocations: Allocations, **changes) -> 'Consumer':
        """Return a copy of the consumer with ``allocations``. ``changes`` are new values of its
        other fields."""
        return dataclasses.replace(self, allocations=allocations, **changes)


@dataclasses.dataclass(frozen=True, slots=True)
class AllocationSet:
    """The allocations of several consumers after one ``POST /allocations``.

    A consumer with empty allocations is removed. Each consumer carries the generation with which it
    was read, so placement refuses the whole set if any of them has changed since.
    """

    consumers: tuple[Consumer, ...]

    @classmethod
    def from_consumers(cls, *consumers: Consumer) -> 'AllocationSet':
        return cls(consumers)

    @classmethod
    def from_body(cls, body: Mapping) -> 'AllocationSet':
        """Make a set from a body of ``POST /allocations``."""
        return cls(tuple(Consumer.from_body(uuid, held) for uuid, held in body.items()))

    def to_body(self, with_types: bool = True) -> dict:
        return {consumer.uuid: consumer.to_body(with_types) for consumer in self.consumers}

    def changed_from(self, held: Iterable[Consumer]) -> 'AllocationSet':
        """Return the consumers of this set whose allocations differ from those in ``held``."""
        before = {consumer.uuid: consumer.allocations for consumer in held}
        return AllocationSet(tuple(consumer for consumer in self.consumers
                                   if consumer.allocations != before.get(consumer.uuid)))
