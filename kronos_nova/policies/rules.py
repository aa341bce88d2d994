"""The models of operators' rules in the policies file: where servers may run, and when they may
move."""

import re
from typing import Annotated
from typing import Any
from typing import Literal
from typing import Self

import pydantic

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.objects.snapshot import OWN_METADATA
from kronos_nova.policies import windows
from kronos_nova.policies.fields import FileMapping
from kronos_nova.policies.fields import key

MOST_RULES = 500
"""Maximum number of rules in a policies file. Raised, a policies file can make each evaluation take
longer; lowered, a large cloud cannot have all of its rules. Chosen as more than twice the 200 rules
of the measurement ``bench rules``."""

HOST = 'host'
"""The lowest level of failure domains, at which every host is a domain of its own."""

DEFAULT_COST = 0.02
"""Cost of each server that is on a host against the preference of a rule. The cost is used for
rules without the key ``cost``. Its unit is that of the combined imbalance, the weighted sum of the
imbalances of all policies. A plan may violate the preference if the combined imbalance falls by
more than the cost. Raised, plans obey the rule although the imbalance stays larger; lowered, plans
violate the rule for a smaller decrease. Chosen as the initial value that the help of the option
``soft_group_cost`` advises."""

MOST_NAMES = 10_000
"""Maximum number of names in one list of a rule, such as the list of its servers. Raised, a
policies file may take longer to read; lowered, a rule may not be able to name all of its servers.
Chosen above the number of uuids that fit into a policies file."""


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', re.IGNORECASE)

class _OneOrMore:
    """An annotation of a list of names. With this annotation, the JSON schema accepts a single name
    in place of the list."""

    @staticmethod
    def __get_pydantic_json_schema__(core_schema: Any, handler: Any) -> dict[str, Any]:
        of_list = handler(core_schema)
        return {'anyOf': [of_list['items'], of_list]}


Words = Annotated[tuple[Annotated[str, pydantic.Field(min_length=1)], ...],
                  pydantic.Field(min_length=1, max_length=MOST_NAMES),
                  pydantic.BeforeValidator(_as_list), _OneOrMore]
"""The type of a value that is either a list of names or one name."""


class ServerSelector(FileMapping):
    """The servers that a rule selects. A server has to match every key that is set, such as
    ``project`` and ``flavor``."""

    uuid: Words | None = key(None, about="""
        Uuids of servers.""")
    project: Words | None = key(None, about="""
        IDs of projects. The rule selects servers of these projects.""")
    flavor: Words | None = key(None, about="""
        Names of flavors, or patterns with ``*``, ``?`` and ``[…]``. The rule selects servers with
        these flavors.""")
    image: dict[str, str] | None = key(None, about="""
        Properties of the image from which a server was booted, as ``property: value``. A value may
        be a pattern. The image has to match all of these properties.""")
    metadata: dict[str, str] | None = key(None, about="""
        Metadata of servers, as ``key: value``. A value may be a pattern. Only keys that begin with
        ``kronos:`` are permitted, because Kronos reads no other metadata. Owners of servers set the
        metadata; see ``tag``.""")
    tag: Words | None = key(None, about="""
        Tags of servers. The owner of a server sets its tags, its metadata, its name, and the names
        of its server groups. If a rule selects servers by any of these, and has neither ``project``
        nor ``uuid``, its servers are selected by their owners. Such a rule is ignored if a host
        cannot be emptied otherwise.""")
    server_group: Words | None = key(None, about="""
        Uuids or names of server groups. The rule selects the members of these groups. Owners of
        servers set the names of server groups; see ``tag``.""")
    name: Words | None = key(None, about="""
        Names of servers, or patterns. Owners of servers set these names; see ``tag``.""")
    availability_zone: Words | None = key(None, about="""
        Names of availability zones. The rule selects servers on the hosts of these zones. ``nova``
        stands for hosts in no availability zone.""")

    @pydantic.model_validator(mode='after')
    def _check(self) -> Self:
        if not self.model_dump(exclude_none=True):
            raise ValueError('selects no servers: give at least one key')
        for name in self.metadata or ():
            if not name.startswith(OWN_METADATA):
                raise ValueError(f'metadata: {boundary.shown(name, 63)} does not begin with '
                                 f'{OWN_METADATA}, and other metadata is not read: use a key that '
                                 'does, or a tag')
        return self

    @property
    def is_of_owners(self) -> bool:
        """True if the owners of servers can decide whether the rule selects their servers; else
        False. This is so if the rule lists neither projects nor uuids, but selects by values that
        owners set: tags, metadata, names of servers or names of server groups. A rule with such a
        selection must not keep a host from being emptied, and must not affect the servers of
        another project."""
        named_groups = (word for word in self.server_group or () if not _UUID.fullmatch(word))
        return not (self.project or self.uuid) and bool(
            self.metadata or self.tag or self.name or any(named_groups))


class Places(FileMapping):
    """The hosts that a rule names. A host has to match at least one of the keys that are set, such
    as ``hosts`` or ``aggregate``."""

    hosts: Words | None = key(None, about="""
        Names of hosts, or patterns.""")
    aggregate: Words | None = key(None, about="""
        Names of aggregates, or patterns. The rule applies to the hosts in these aggregates.""")
    trait: Words | None = key(None, about="""
        Traits of the hosts' resource providers, or patterns, such as ``CUSTOM_LICENCE``.""")
    domain: dict[str, Words] | None = key(None, about="""
        Levels of failure domains, each with names of failure domains or patterns, such as ``rack:
        [r1, r2]``. The levels are the keys in ``[kronos] failure_domain_key``.""")

    @pydantic.model_validator(mode='after')
    def _check(self) -> Self:
        if not self.model_dump(exclude_none=True):
            raise ValueError('names no hosts: give at least one key')
        return self


MUST, MUST_NOT = 'must_run_on', 'must_not_run_on'
SHOULD, SHOULD_NOT = 'should_run_on', 'should_not_run_on'
TOGETHER, APART, AT_MOST = 'keep_together', 'keep_apart', 'at_most_hosts'
NEVER, ONLY, LIMIT = 'never_move', 'move_only', 'max_moves'
UNMOVABLE = 'unmovable'
RELATIONS = (MUST, MUST_NOT, SHOULD, SHOULD_NOT, TOGETHER, APART, AT_MOST, NEVER, ONLY, LIMIT,
             UNMOVABLE)


class OperatorRule(FileMapping):
    """A rule of an operator. It has the servers that it selects, and one relation that must hold
    for these servers."""

    name: str = key(..., pattern=r'^[a-z0-9][a-z0-9_-]{0,62}$', about="""
        Name of the rule in reports and explanations: lower case letters, digits, ``-`` and ``_``.
        The name is unique in the file.""")
    servers: ServerSelector = key(..., about="""
        The servers to which the rule applies.""")
    must_run_on: Places | None = key(None, about="""
        Hosts on which the servers must run. A server on another host is moved to one of these
        hosts.""")
    must_not_run_on: Places | None = key(None, about="""
        Hosts on which the servers must not run. A server on one of these hosts is moved to another
        host.""")
    should_run_on: Places | None = key(None, about="""
        Hosts on which the servers should run. A plan may move a server to another host if the plan
        gains more than ``cost`` by it.""")
    should_not_run_on: Places | None = key(None, about="""
        Hosts on which the servers should not run. A plan may move a server to one of these hosts if
        the plan gains more than ``cost`` by it.""")
    cost: float | None = key(None, about="""
        Cost of a server on a host that ``should_run_on`` or ``should_not_run_on`` avoids, as an
        amount of combined imbalance. A move that violates the rule has to lower the combined
        imbalance by at least this amount. A move that repairs a violation may raise the combined
        imbalance by at most this amount. By default, 0.02.""", gt=0.0, le=1.0)
    keep_together: str | None = key(None, about="""
        ``host``, or a level of failure domains such as ``rack``. All servers should be on the same
        host, or in the same failure domain of this level. A server may only be moved to the host or
        failure domain that has most of the other servers.""", min_length=1)
    keep_apart: str | None = key(None, about="""
        ``host``, or a level of failure domains such as ``rack``. No two of the servers may be on
        the same host, or in the same failure domain of this level.""", min_length=1)
    at_most_hosts: int | None = key(None, about="""
        Maximum number of hosts on which the servers may run together, such as the number of
        licences.""", ge=1, le=100_000, strict=True)
    never_move: Literal[True] | None = key(None, about="""
        ``true``: the servers are not moved. They are not even moved off a host that is emptied,
        unless the servers are selected by their owners (see ``tag``).""")
    move_only: Words | None = key(None, about="""
        Times at which the servers may be moved, each in the form of ``[kronos]
        maintenance_window``. At other times the servers are not even moved off a host that is
        emptied, unless the servers are selected by their owners (see ``tag``).""")
    max_moves: int | None = key(None, about="""
        Maximum number of moves of each selected server within 24 hours. Moves that empty a host are
        not limited.""", ge=1, le=1000, strict=True)
    unmovable: Literal['leave', 'cold', 'stop'] | None = key(None, about="""
        Treatment of running servers that Nova cannot migrate live, when their host is drained. It
        takes precedence over the option ``--unmovable`` of ``host drain``. With ``leave``, the
        servers stay on the host. With ``cold``, they are migrated cold. With ``stop``, they are
        stopped until the host is released. If several rules apply to a server, the treatment that
        interrupts the server least is used. ``leave`` has no effect if the servers are selected by
        their owners (see ``tag``).""")

    @pydantic.model_validator(mode='after')
    def _check(self) -> Self:
        given = [name for name in RELATIONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f'has {len(given)} relations{_listed(given)}: give exactly one of '
                             f'{", ".join(RELATIONS)}; for several relations, write several rules')
        if self.cost is not None and self.relation not in (SHOULD, SHOULD_NOT):
            raise ValueError(f'cost has an effect only with {SHOULD} or {SHOULD_NOT}: remove it')
        try:
            windows.parse(self.move_only or ())
        except exception.ConfigurationError as error:
            raise ValueError(f'move_only: {error.kwargs["problem"]}. {error.kwargs["remedy"]}'
                             ) from error
        return self

    @property
    def relation(self) -> str:
        """The key of the rule's relation, such as ``must_run_on``."""
        return next(name for name in RELATIONS if getattr(self, name) is not None)

    @property
    def places(self) -> Places | None:
        """The hosts that the rule names; None for a relation that names no hosts."""
        return self.must_run_on or self.must_not_run_on or self.should_run_on or (
            self.should_not_run_on)

    @property
    def level(self) -> str:
        """The level of failure domains at which the rule keeps servers together or apart."""
        return self.keep_together or self.keep_apart or HOST

    @property
    def domain_levels(self) -> tuple[str, ...]:
        """The levels of failure domains that the rule names."""
        if self.level != HOST:
            return (self.level,)
        return tuple(self.places.domain or ()) if self.places else ()

    @property
    def price(self) -> float:
        """The cost of each server that is on a host against the preference of the rule, in the unit
        of the combined imbalance."""
        return DEFAULT_COST if self.cost is None else self.cost

    @property
    def open_times(self) -> windows.Windows:
        """The windows of time in which the servers may be moved."""
        return windows.parse(self.move_only or ())

    @property
    def yields(self) -> bool:
        """True if the rule may be violated to empty a host; False if the rule always applies."""
        return self.servers.is_of_owners


def _listed(names: list[str]) -> str:
    return f' ({", ".join(names)})' if names else ''


def repeated_names(rows: list[dict]) -> list[str]:
    """Return the names that more than one entry has, sorted.

    :param rows: entries as mappings whose values have not been checked
    """
    names: list[str] = [row['name'] for row in rows if isinstance(row.get('name'), str)]
    return sorted({name for name in names if names.count(name) > 1})
