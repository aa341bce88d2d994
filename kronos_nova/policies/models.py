"""Models of the policies file: policies, forecasts, queries about migrations, and the whole
file."""

import math
from collections.abc import Iterator
from typing import Any
from typing import Literal
from typing import Self

import pydantic

from kronos_nova.policies.buffers import MOST_BUFFERS
from kronos_nova.policies.buffers import Buffer
from kronos_nova.policies.rules import MOST_RULES
from kronos_nova.policies.rules import OperatorRule
from kronos_nova.policies.rules import repeated_names

WEIGHT_TOLERANCE = 1e-6
"""Largest accepted difference between 1 and the sum of the policies' weights (no unit). Raised,
weights that do not sum to 1 are accepted; lowered, weights such as three thirds are refused. Not
measured."""
_LARGEST = 10**9
"""Largest whole number (no unit) that is accepted in the sum of the policies' weights. Fixed:
larger numbers are not exact as floats, and each weight above 1 is refused anyway."""
_ROUNDING = 1e-9
"""Part of a host that is added to a number of hosts before it is rounded down. Without it, rounding
errors could change the result. Fixed by the rounding errors of float64."""

LABEL = r'^[a-zA-Z_][a-zA-Z0-9_]*$'

HOST_FRACTION, ABSOLUTE, SCORE = 'host_fraction', 'absolute', 'score'
"""Units of a profile, which is the load that a server adds to its host. See ``vm_profile_unit``."""


def _key(default: Any = ..., /, *, about: str, **rules: Any) -> Any:
    """Return a field of a policy with its description.

    :param about: description in reStructuredText, for the documentation and the JSON schema
    """
    return pydantic.Field(default, description=' '.join(about.split()), **rules)


def _query(default: Any = ..., /, *, about: str) -> Any:
    return _key(default, about=about, min_length=1)


LONGEST_HORIZON = 12
"""Maximum number of hours of a policy's forecast. Raised, a forecast takes more memory; lowered, a
forecast does not cover a night. Chosen because no plan looks further ahead."""


class Forecast(pydantic.BaseModel):
    """The settings of a policy's load forecast for the next hours."""

    model_config = pydantic.ConfigDict(frozen=True, extra='forbid', allow_inf_nan=False)

    horizon_hours: int = _key(6, ge=1, le=LONGEST_HORIZON, strict=True, about="""
        Number of hours for which plans are made, including the current hour. An initial value is
        the time by which moves should begin before a rise of the load.""")
    quantile: float = _key(0.5, ge=0.5, le=0.99, about="""
        Part of the deviations of hosts from their forecasts during the last day that a plan should
        cover: ``0.5`` plans for the likely load, ``0.9`` for a load that is exceeded in one hour of
        ten. Not for a forecast with ``vm_query`` or ``host_query``, whose answer has to include
        such a margin.""")
    history_query: str | None = _query(None, about="""
        PromQL for the mean of ``vm_profile_query`` over the last hour, or of ``imbalance_query``
        where there is no ``vm_profile_query``, with the same labels: a series that a recording rule
        keeps. By default, Prometheus is asked for ``avg_over_time((query)[1h:5m])``, which costs it
        as much as a dozen evaluations of the query for each hour.""")
    vm_query: str | None = _query(None, about="""
        PromQL of a forecast that replaces that of Kronos, with one series for each instance: the
        largest load that the instance is expected to add to its host within ``horizon_hours``, in
        the unit and with the label of ``vm_profile_query``.""")
    host_query: str | None = _query(None, about="""
        PromQL of a forecast that replaces that of Kronos, with one series for each host: its
        highest expected score, such as from ``predict_linear()``. Instances then have the same part
        of it as of the present score. Not together with ``vm_query``.""")

    @pydantic.model_validator(mode='after')
    def _check_queries(self) -> Self:
        if self.vm_query and self.host_query:
            raise ValueError('vm_query and host_query must not be given together, because the '
                             'loads of hosts follow from those of their instances: remove one of '
                             'the two')
        if self.has_own_query and self.quantile != 0.5:
            raise ValueError('quantile has no effect with vm_query or host_query: remove it, and '
                             'compute the quantile in the query')
        return self

    @property
    def has_own_query(self) -> bool:
        return bool(self.vm_query or self.host_query)


class Policy(pydantic.BaseModel):
    """A policy: one measure of load, its queries, and the imbalance above which servers are moved.

    A score is the load of a host, as a fraction of the host from 0 to 1. A profile is the load that
    a server adds to its host, by default as a fraction of the host. With ``host_capacity_query``,
    the profile has the unit of that query, so an instance is a smaller part of a larger host.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra='forbid', allow_inf_nan=False)

    name: str = _key(pattern=r'^[a-z0-9][a-z0-9_-]{0,62}$', about="""
        Lower case letters, digits, ``-`` and ``_``; unique. Reports and snapshots use it.""")
    mode: Literal['spread', 'pack', 'relieve'] = _key(about="""
        ``spread`` evens load out, ``pack`` gathers it on few hosts, ``relieve`` only moves servers
        off hosts that are above ``high``. All policies of a file have the same mode.""")
    weight: float = _key(ge=0.0, le=1.0, about="""
        Weight of the policy in the combined imbalance, ``Σ weight × (max − min)``. The weights of
        the enabled policies sum to 1. See ``imbalance_over`` for hosts that do not count.""")
    threshold: float = _key(1.0, ge=0.0, le=1.0, about="""
        With ``spread``: imbalance (highest minus lowest score) above which load is spread. No plan
        makes a policy worse that is above its threshold, or lifts one above it. Required with
        ``pack`` too, which does not use it, because packing makes hosts unequal on purpose. Not
        required with ``relieve``.""")
    imbalance_over: float = _key(1.0, gt=0.5, le=1.0, about="""
        With ``spread``: the imbalance is the distance of this quantile of the hosts' scores from
        its opposite, instead of the highest from the lowest. Of *n* available hosts, the
        ``(1 - imbalance_over) × n`` with the highest scores and as many with the lowest do not
        count, rounded down. By default, ``1.0``, all hosts count. Lower it in aggregates of
        hundreds of hosts, where one odd host must not keep the others above the threshold; an
        initial value is ``0.95``. Below, more hosts may stay hot. See
        :ref:`hosts-that-do-not-count`.""")
    high: float | None = _key(None, gt=0.0, le=1.0, about="""
        Score above which a host is relieved, whatever the scores of other hosts are. Required with
        ``relieve``, possible with ``spread``. ``high`` and ``target`` are set together.""")
    target: float | None = _key(None, gt=0.0, le=1.0, about="""
        Score at or below which a host that was above ``high`` has to end, and which no host that
        takes a server of it may exceed. Less than ``high``.""")
    vm_high: float | None = _key(None, gt=0.0, le=1.0, about="""
        Profile of a server, as a fraction of its host, above which the host is relieved too. Where
        the host is at or below ``target``, the server itself leaves it. Meant for profiles that
        show how long a server waits.""")
    imbalance_query: str = _query(about="""
        PromQL with one series for each host: its load as a fraction of the host, 0 to 1. A
        percentage is out of range, and the policy then has no data.""")
    host_label: str = _key('host', pattern=LABEL, about="""
        The label with the name that Nova knows the host by.""")
    host_capacity_query: str | None = _query(None, about="""
        PromQL with the capacity of each host, where hosts differ in size. The profile is then
        absolute, in the same unit (cores in use, bytes), and an instance is a smaller part of a
        bigger host. See ``vm_profile_unit``.""")
    vm_profile_query: str | None = _query(None, about="""
        PromQL with one series for each instance: the load that it adds to its host, as a fraction
        of the host. A move takes it off the score of the source and adds it to that of the
        destination.""")
    vm_profile_unit: Literal['host_fraction', 'absolute', 'score'] | None = _key(None, about="""
        The unit of ``vm_profile_query``. ``host_fraction``, the default, is a fraction of the host
        that the instance is on: on a host twice as big it is half as much. ``absolute`` is an
        amount, such as CPUs or bytes; it needs ``host_capacity_query`` (and is the default with
        it) or ``vm_profile_resource``. ``score`` is not changed by the size of the host: for
        counts of servers, and for contention such as steal or pressure.""")
    vm_profile_resource: Literal['VCPU', 'MEMORY_MB'] | None = _key(None, about="""
        Resource class by which the sizes of hosts are taken from their inventories in placement:
        ``VCPU`` (CPUs, including those of ``PCPU``) or ``MEMORY_MB``. An ``absolute`` profile is
        then in CPUs, or in bytes. Without it and without ``host_capacity_query``, hosts whose
        totals differ by more than 5 % are compared by the resource that the name of the policy or
        its query suggests. The policy has no data where these suggest none.""")
    vm_profile_label: str = _key('uuid', pattern=LABEL, about="""
        Label that identifies the instance. A series that also has ``host_label`` counts only on
        that host: of two series of a server the one of its own host is used, and series of hosts
        that Nova does not have are left out.""")
    vm_profile_label_type: Literal['uuid', 'name', 'display_name'] = _key('uuid', about="""
        Meaning of the values of ``vm_profile_label``: ``uuid``, ``name`` (the libvirt domain) or
        ``display_name``. A name that several servers of the cloud have is used for none of them.
        For names, Nova is also asked about servers of aggregates that are not read; for ``uuid``
        that is not necessary.""")
    vm_profile_fallback: Literal['skip', 'flavor_vcpu_ratio', 'host_average'] = _key(
        'skip', about="""
        Treatment of an instance without a series: ``skip`` does not move it, ``flavor_vcpu_ratio``
        assumes the part of its host's score that it has of the vCPUs there, ``host_average`` an
        equal part for each instance. Only ``skip`` assumes nothing, and it needs a
        ``vm_profile_query``. An impossible series (negative, infinite, more than the whole host,
        given twice) is not replaced by an assumption.""")
    capacity_query: str | None = _query(None, about="""
        PromQL with one series for each host: the used part of its capacity. ``capacity_query`` and
        ``capacity_threshold`` are set together; ``pack`` needs them.""")
    capacity_threshold: float | None = _key(None, gt=0.0, le=1.0, about="""
        Largest used part of a host that takes servers: after no move may a destination exceed it,
        neither by ``capacity_query`` nor by its score.""")
    forecast: Forecast | None = _key(None, about="""
        Forecast by which plans consider the load of the next hours too; ``{}`` has the defaults.
        Where a forecast was less exact than the present load, plans consider the present load
        alone.""")
    max_migrations_per_cycle: int = _key(10, ge=1, le=100_000, strict=True, about="""
        Maximum number of moves that a cycle plans for an aggregate. The largest value of the
        enabled policies counts.""")
    enabled: bool = _key(True, strict=True, about="""
        Whether the policy is used.""")

    @pydantic.model_validator(mode='after')
    def _check_profile(self) -> Self:
        if self.vm_profile_query is None and self.vm_profile_fallback == 'skip':
            raise ValueError('without vm_profile_query, and with vm_profile_fallback "skip", no '
                             'instance could ever be moved: give vm_profile_query, or another '
                             'vm_profile_fallback')
        return self

    @pydantic.model_validator(mode='after')
    def _check_unit(self) -> Self:
        unit, sized = self.vm_profile_unit, self.host_capacity_query is not None
        if sized and unit not in (None, ABSOLUTE):
            raise ValueError(f'vm_profile_unit is {unit}, but host_capacity_query needs a profile '
                             'in absolute units: remove one of the two')
        if sized and self.vm_profile_resource:
            raise ValueError('host_capacity_query and vm_profile_resource both give the capacity '
                             'of hosts: remove one of the two')
        if unit == ABSOLUTE and not (sized or self.vm_profile_resource):
            raise ValueError('vm_profile_unit absolute needs host_capacity_query or '
                             'vm_profile_resource, which give the capacity of hosts: add one of '
                             'the two')
        if unit == SCORE and self.vm_profile_resource:
            raise ValueError('vm_profile_resource has no effect with vm_profile_unit score, which '
                             'does not depend on the capacity of hosts: remove one of the two')
        return self

    @property
    def profile_unit(self) -> str:
        """The unit of the profile: ``vm_profile_unit``, or its default."""
        if self.vm_profile_unit is None:
            return HOST_FRACTION if self.host_capacity_query is None else ABSOLUTE
        return self.vm_profile_unit

    @pydantic.model_validator(mode='after')
    def _check_forecast(self) -> Self:
        if self.forecast and self.forecast.vm_query and self.vm_profile_query is None:
            raise ValueError('forecast.vm_query needs vm_profile_query, with which its answer is '
                             'compared: add vm_profile_query')
        return self

    @property
    def is_forecast_by_vm(self) -> bool:
        """True if the policy forecasts the loads of instances; False if it forecasts the loads of
        hosts, or has no forecast."""
        return (self.vm_profile_query is not None and self.forecast is not None
                and not self.forecast.host_query)

    @pydantic.model_validator(mode='after')
    def _check_marks(self) -> Self:
        if self.mode == 'relieve':
            if self.high is None:
                raise ValueError('mode relieve needs high, the load above which hosts are '
                                 'relieved: add it')
        elif 'threshold' not in self.model_fields_set:
            raise ValueError('modes spread and pack need threshold: add it')
        if self.mode == 'pack' and self.high is not None:
            raise ValueError('high has no effect in mode pack, where capacity_threshold limits how '
                             'full a host may get: remove it')
        if (self.high is None) != (self.target is None):
            raise ValueError('high and target must be given together: add or remove one of the '
                             'two')
        if self.high is None and self.vm_high is not None:
            raise ValueError('vm_high needs high and target: add both, or remove vm_high')
        if self.high is not None and self.target is not None and self.target >= self.high:
            raise ValueError(f'target must be below high, but {self.target:g} is not below '
                             f'{self.high:g}')
        return self

    @pydantic.model_validator(mode='after')
    def _check_imbalance(self) -> Self:
        if self.mode != 'spread' and self.imbalance_over != 1.0:
            raise ValueError('imbalance_over has no effect in other modes than spread: remove it')
        return self

    def left_out(self, hosts: int) -> int:
        """Return the number of hosts that do not count in the imbalance, at each end of the scale.
        If it is n, the n hosts with the highest scores and the n hosts with the lowest scores do
        not count.

        :param hosts: number of available hosts
        """
        return math.floor((1.0 - self.imbalance_over) * hosts + _ROUNDING)

    @pydantic.model_validator(mode='after')
    def _check_capacity(self) -> Self:
        if self.mode == 'pack' and self.capacity_query is None:
            raise ValueError('mode pack needs capacity_query, which measures how full a host is: '
                             'add it')
        if (self.capacity_query is None) != (self.capacity_threshold is None):
            raise ValueError('capacity_query and capacity_threshold must be given together: add or '
                             'remove one of the two')
        return self


class MigrationQueries(pydantic.BaseModel):
    """Queries for predictions of how long live migrations take. All of them are optional."""

    model_config = pydantic.ConfigDict(frozen=True, extra='forbid')

    dirty_rate_query: str | None = _query(None, about="""
        PromQL with one series for each instance: bytes of memory that it writes in a second.
        Exporters that measure this slow guests down a little. By default, it is not measured.""")
    used_memory_query: str | None = _query(None, about="""
        PromQL with one series for each instance: bytes of memory that a migration has to copy. This
        is the memory that the hypervisor has given to the guest (resident), and not what the guest
        reports as used.""")
    link_query: str | None = _query(None, about="""
        PromQL with one series for each host: bytes per second that its link for live migration
        carries. It takes precedence over ``link_mbps``.""")
    label: str = _key('uuid', pattern=LABEL, about="""
        Label whose value is the uuid of the instance.""")
    host_label: str = _key('host', pattern=LABEL, about="""
        The label with the name that Nova knows the host by.""")


class PolicySet(pydantic.BaseModel):
    """The content of a policies file: policies, queries about migrations, rules and buffers."""

    model_config = pydantic.ConfigDict(frozen=True, extra='forbid')

    policies: tuple[Policy, ...] = _key(min_length=1, about="""
        The policies, in any order.""")
    migration: MigrationQueries = _key(MigrationQueries(), about="""
        Queries by which durations of live migrations are predicted.""")
    rules: tuple[OperatorRule, ...] = _key((), max_length=MOST_RULES, about="""
        Rules about the hosts on which servers may be, and the times at which they may move. See
        :doc:`rules`.""")
    buffers: tuple[Buffer, ...] = _key((), max_length=MOST_BUFFERS, about="""
        Room for new servers that is always kept free. See :doc:`room`.""")

    @pydantic.model_validator(mode='after')
    def _check_together(self) -> Self:
        problems = list(contradictions([policy.model_dump() for policy in self.policies]))
        repeated = repeated_names([{'name': rule.name} for rule in self.rules])
        if repeated:
            problems.append(f'names of rules must be unique, but are repeated: '
                            f'{", ".join(repeated)}')
        twice = repeated_names([{'name': each.name} for each in self.buffers])
        if twice:
            problems.append(f'names of buffers must be unique, but are repeated: '
                            f'{", ".join(twice)}')
        if problems:
            raise ValueError('; '.join(problems))
        return self

    @property
    def active(self) -> tuple[Policy, ...]:
        """The enabled policies, sorted by name."""
        return tuple(sorted((p for p in self.policies if p.enabled), key=lambda p: p.name))

    @property
    def mode(self) -> str:
        """The mode that all policies of the file have: ``spread``, ``pack`` or ``relieve``."""
        return self.policies[0].mode

    @property
    def budget(self) -> int:
        """The maximum number of moves in one plan of an aggregate."""
        return max(policy.max_migrations_per_cycle for policy in self.active)


def contradictions(rows: list[dict]) -> Iterator[str]:
    """Yield the problems of the policies of a file taken together, such as repeated names. Problems
    of a single policy are found by the model of a policy.

    :param rows: policies as mappings whose values have not been checked
    """
    names: list[str] = [row['name'] for row in rows if isinstance(row.get('name'), str)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        yield f'names must be unique, but are repeated: {", ".join(repeated)}'
    modes = [mode for mode in ('spread', 'pack', 'relieve')
             if mode in {str(row.get('mode')) for row in rows}]
    if len(modes) > 1:
        yield (f'{" and ".join(modes)} cannot be mixed in one file: give every policy the same '
               'mode')
    weights: list[Any] = [row.get('weight') for row in rows if row.get('enabled', True) is True]
    if not weights:
        yield 'no policy is enabled'
    elif (all(_can_be_summed(weight) for weight in weights)
          and not abs(sum(weights) - 1.0) <= WEIGHT_TOLERANCE):
        yield f'the weights of the enabled policies must sum to 1, but sum to {sum(weights):g}'


def _can_be_summed(weight: Any) -> bool:
    """Return True if a weight is a number that is exact as a float, else False. Other weights are
    left out of the sum, because they are reported as problems of their policies."""
    return isinstance(weight, float) or (isinstance(weight, int) and abs(weight) <= _LARGEST)
