"""The models of the policies file."""

from collections.abc import Iterator
from typing import Literal

import pydantic

WEIGHT_TOLERANCE = 1e-6
_LARGEST = 10**9

Fraction = pydantic.Field(ge=0.0, le=1.0, allow_inf_nan=False)


class Policy(pydantic.BaseModel):
    """One measure of load, and what imbalance of it is worth a migration.

    Figures are fractions of a host, 0 to 1. With ``host_capacity_query`` the profile is absolute
    instead, in the unit of that query, and an instance weighs less on a bigger host.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra='forbid', allow_inf_nan=False)

    name: str = pydantic.Field(pattern=r'^[a-z0-9][a-z0-9_-]{0,62}$')
    mode: Literal['spread', 'pack']
    weight: float = Fraction
    threshold: float = Fraction
    imbalance_query: str = pydantic.Field(min_length=1)
    host_label: str = pydantic.Field('host', pattern=r'^[a-zA-Z_][a-zA-Z0-9_]*$')
    host_capacity_query: str | None = pydantic.Field(None, min_length=1)
    vm_profile_query: str | None = pydantic.Field(None, min_length=1)
    vm_profile_label: str = pydantic.Field('uuid', pattern=r'^[a-zA-Z_][a-zA-Z0-9_]*$')
    vm_profile_label_type: Literal['uuid', 'name', 'display_name'] = 'uuid'
    vm_profile_fallback: Literal['skip', 'flavor_vcpu_ratio', 'host_average'] = 'skip'
    capacity_query: str | None = pydantic.Field(None, min_length=1)
    capacity_threshold: float | None = pydantic.Field(None, gt=0.0, le=1.0)
    max_migrations_per_cycle: int = pydantic.Field(10, ge=1, le=100_000, strict=True)
    enabled: bool = pydantic.Field(True, strict=True)

    @pydantic.model_validator(mode='after')
    def _check_profile(self):
        if self.vm_profile_query is None and self.vm_profile_fallback == 'skip':
            raise ValueError('without vm_profile_query and with vm_profile_fallback "skip" no '
                             'instance could ever move: give one of the two')
        return self

    @pydantic.model_validator(mode='after')
    def _check_capacity(self):
        if self.mode == 'pack' and self.capacity_query is None:
            raise ValueError('capacity_query is needed in pack mode: it says how full a host is')
        if (self.capacity_query is None) != (self.capacity_threshold is None):
            raise ValueError('capacity_query and capacity_threshold are given together or not at '
                             'all')
        return self


class PolicySet(pydantic.BaseModel):
    """All policies of a file, in the file's order."""

    model_config = pydantic.ConfigDict(frozen=True, extra='forbid')

    policies: tuple[Policy, ...] = pydantic.Field(min_length=1)

    @pydantic.model_validator(mode='after')
    def _check_together(self):
        problems = list(contradictions([policy.model_dump() for policy in self.policies]))
        if problems:
            raise ValueError('; '.join(problems))
        return self

    @property
    def active(self) -> tuple[Policy, ...]:
        """The enabled policies, by name: their order in the file means nothing."""
        return tuple(sorted((p for p in self.policies if p.enabled), key=lambda p: p.name))

    @property
    def mode(self) -> str:
        """``spread`` or ``pack``."""
        return self.policies[0].mode

    @property
    def budget(self) -> int:
        """Moves that a cycle may plan in an aggregate."""
        return max(policy.max_migrations_per_cycle for policy in self.active)


def contradictions(rows: list[dict]) -> Iterator[str]:
    """What is wrong with policies taken together, whatever is wrong with each of them.

    :param rows: policies as mappings, with anything in them
    """
    names = [row.get('name') for row in rows if isinstance(row.get('name'), str)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        yield f'names must be unique, but are repeated: {", ".join(repeated)}'
    if {'spread', 'pack'} <= {str(row.get('mode')) for row in rows}:
        yield 'spread and pack cannot be mixed in one file: give every policy the same mode'
    weights = [row.get('weight') for row in rows if row.get('enabled', True) is True]
    if not weights:
        yield 'no policy is enabled'
    elif (all(_can_be_summed(weight) for weight in weights)
          and not abs(sum(weights) - 1.0) <= WEIGHT_TOLERANCE):
        yield f'the weights of the enabled policies must sum to 1, but sum to {sum(weights):g}'


def _can_be_summed(weight):
    """Whether it is a number, and none that no float holds; either is said of the policy itself."""
    return isinstance(weight, float) or (isinstance(weight, int) and abs(weight) <= _LARGEST)
