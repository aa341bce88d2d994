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
from kronos_nova.policies.fields import FileMapping
from kronos_nova.policies.fields import key
from kronos_nova.policies.rules import MOST_RULES
from kronos_nova.policies.rules import OperatorRule
from kronos_nova.policies.rules import repeated_names

WEIGHT_TOLERANCE = 1e-6
"""Largest accepted difference between 1 and the sum of the policies' weights (no unit). Raised,
weights are accepted although their sum is clearly not 1; lowered, three weights of one third are
refused if they are written with few digits. Not measured."""
_LARGEST = 10**9
"""Largest weight, as a whole number, with which the sum of the weights is still checked (no unit).
If a weight is larger, the sum is not checked, because Python cannot convert huge whole numbers to
float. Fixed: the exact value does not matter, because each weight above 1 is refused with an error
of its own."""
_ROUNDING = 1e-9
"""Fraction of a host that is added to a computed number of hosts before the number is rounded down.
Without this fraction, a result such as 2.9999999 in place of 3 would be rounded down to 2. Fixed by
the rounding errors of float64."""

LABEL = r'^[a-zA-Z_][a-zA-Z0-9_]*$'

HOST_FRACTION, ABSOLUTE, SCORE = 'host_fraction', 'absolute', 'score'
"""Units of a profile, which is the load that a server adds to its host. See ``vm_profile_unit``."""


def _query(default: Any = ..., /, *, about: str) -> Any:
    return key(default, about=about, min_length=1)


LONGEST_HORIZON = 12
"""Maximum number of hours of a policy's forecast. Raised, a forecast takes more memory; lowered, a
forecast does not cover a whole night. Chosen because no plan considers loads that are further in
the future."""


class Forecast(FileMapping):
    """The settings of a policy's load forecast for the next hours."""

    horizon_hours: int = key(6, ge=1, le=LONGEST_HORIZON, strict=True, about="""
        Number of hours whose expected loads a plan considers, including the current hour. An
        initial value is the number of hours by which moves should begin before the load rises.""")
    quantile: float = key(0.5, ge=0.5, le=0.99, about="""
        Probability with which the load of a host stays at or below the forecast load. With ``0.5``,
        plans are made for the likely load. With ``0.9``, plans are made for a load that is exceeded
        in one hour of ten. The margin for higher values is computed from the errors of the
        forecasts in the last day. With ``vm_query`` or ``host_query``, the key must have its
        default, and the query has to include any margin.""")
    history_query: str | None = _query(None, about="""
        PromQL for the mean of ``vm_profile_query`` over the last hour, with the same labels. If the
        policy has no ``vm_profile_query``, the mean of ``imbalance_query`` is needed instead. The
        key is meant for series that a recording rule of Prometheus computes. By default, Kronos
        sends ``avg_over_time((query)[1h:5m])``. For each past hour, Prometheus then evaluates the
        query a dozen times.""")
    vm_query: str | None = _query(None, about="""
        PromQL for a forecast that replaces the forecast of Kronos, with one series for each
        instance. The value is the largest load that the instance is expected to add to its host
        within ``horizon_hours``. It has the unit and the label of ``vm_profile_query``.""")
    host_query: str | None = _query(None, about="""
        PromQL for a forecast that replaces the forecast of Kronos, with one series for each host.
        The value is the highest score that is expected of the host, for instance by
        ``predict_linear()``. Each instance is assumed to have the same share in the expected score
        as in the present score. The key cannot be used together with ``vm_query``.""")

    @pydantic.model_validator(mode='after')
    def _check_queries(self) -> Self:
        if self.vm_query and self.host_query:
            raise ValueError('vm_query and host_query must not be given together, because the '
                             'loads of hosts follow from those of their instances: remove one of '
                             'the two')
        if self.own_query and self.quantile != 0.5:
            raise ValueError('quantile has no effect with vm_query or host_query: remove it, and '
                             'compute the quantile in the query')
        return self

    @property
    def own_query(self) -> str | None:
        """The query that replaces the forecast of Kronos; None if there is no such query."""
        return self.vm_query or self.host_query


class Policy(FileMapping):
    """A policy: one measure of load, its queries, and the imbalance above which servers are moved.

    A score is the load of a host, as a fraction of the host from 0 to 1. A profile is the load that
    a server adds to its host, by default as a fraction of the host. With ``host_capacity_query``,
    the profile is in the unit of that query's answer, such as CPUs. The same server is then a
    smaller fraction of a larger host.
    """

    name: str = key(pattern=r'^[a-z0-9][a-z0-9_-]{0,62}$', about="""
        Name of the policy in reports and snapshots: lower case letters, digits, ``-`` and ``_``.
        The name is unique in the file.""")
    mode: Literal['spread', 'pack', 'relieve'] = key(about="""
        Purpose of moves. ``spread`` makes the loads of hosts even. ``pack`` gathers instances on
        few hosts. ``relieve`` only moves servers off hosts whose score is above ``high``. All
        policies of a file have the same mode.""")
    weight: float = key(ge=0.0, le=1.0, about="""
        Weight of the policy in the combined imbalance, which is ``Σ weight × (max − min)`` over the
        policies. ``max`` and ``min`` are the highest and the lowest score of the hosts in a policy.
        The weights of the enabled policies sum to 1. See ``imbalance_over`` for hosts that are left
        out of the imbalance.""")
    threshold: float = key(1.0, ge=0.0, le=1.0, about="""
        Imbalance (highest minus lowest score of a host) above which load is spread, with mode
        ``spread``. No plan lifts the imbalance of a policy above its threshold, or increases an
        imbalance that is above the threshold. The key is required with ``pack`` as well, but has no
        effect there, because packing makes the loads of hosts unequal on purpose. The key is
        optional with ``relieve``. Reports, metrics and the page show 1 in its place with ``pack``
        and ``relieve``.""")
    imbalance_over: float = key(1.0, gt=0.5, le=1.0, about="""
        Quantile of the hosts' scores from which the imbalance is computed, with mode ``spread``:
        the imbalance is the difference between this quantile and the quantile ``1 -
        imbalance_over``. Of *n* available hosts, the ``(1 - imbalance_over) × n`` hosts with the
        highest scores and the same number of hosts with the lowest scores are left out. The number
        is rounded down. By default, ``1.0``: no host is left out. Lower it in aggregates of
        hundreds of hosts, where a single unusual host should not lead to moves; an initial value is
        ``0.95``. With lower values, more hosts may keep a high load. See
        :ref:`hosts-that-do-not-count`.""")
    high: float | None = key(None, gt=0.0, le=1.0, about="""
        Score above which a host is relieved, whatever the scores of other hosts are. The key is
        required with mode ``relieve``, and optional with ``spread``. ``high`` and ``target`` have
        to be set together.""")
    target: float | None = key(None, gt=0.0, le=1.0, about="""
        Score to which a host is relieved whose score was above ``high``. The servers of such a host
        are only moved to hosts whose score is then at or below ``target``. The value is less than
        ``high``.""")
    vm_high: float | None = key(None, gt=0.0, le=1.0, about="""
        Load of a single server, as a fraction of its host, above which the host is relieved even if
        the score of the host is not above ``high``. If the score of the host is at or below
        ``target``, the server itself is moved. The key is meant for loads that show how long a
        server waits, such as CPU steal.""")
    imbalance_query: str = _query(about="""
        PromQL for the score, with one series for each host. The score is the load of the host as a
        fraction of the host, from 0 to 1. With percentages instead of fractions, the policy has no
        data.""")
    host_label: str = key('host', pattern=LABEL, about="""
        Label whose value is the name of the host in Nova.""")
    host_capacity_query: str | None = _query(None, about="""
        PromQL for the capacity of each host, where hosts differ in size. ``vm_profile_query`` then
        has an amount in the unit of this capacity (cores in use, bytes), so that the same instance
        is a smaller fraction of a larger host. See ``vm_profile_unit``.""")
    vm_profile_query: str | None = _query(None, about="""
        PromQL for the load that each instance adds to its host, with one series for each instance.
        By default the load is a fraction of the host. A planned move subtracts the load from the
        score of the source, and adds it to the score of the destination.""")
    vm_profile_unit: Literal['host_fraction', 'absolute', 'score'] | None = key(None, about="""
        Unit of ``vm_profile_query``. ``host_fraction`` is a fraction of the present host of the
        instance. On a host of twice the size, the fraction is half as large. ``absolute`` is an
        amount, such as CPUs or bytes. It requires ``host_capacity_query`` or
        ``vm_profile_resource``. ``score`` is an amount that adds to the score of any host without
        regard to the size of the host. It is meant for numbers of servers, and for contention such
        as CPU steal or pressure. By default, ``absolute`` with ``host_capacity_query``, otherwise
        ``host_fraction``.""")
    vm_profile_resource: Literal['VCPU', 'MEMORY_MB'] | None = key(None, about="""
        Resource class whose inventory in placement is the size of a host: ``VCPU`` (the CPUs of
        ``VCPU`` and ``PCPU`` together) or ``MEMORY_MB``. A load in the unit ``absolute`` is then in
        CPUs, or in bytes. The key cannot be used together with ``host_capacity_query``. By default,
        hosts have the same size if the totals of their inventories differ by at most 5 %. For other
        hosts, Kronos chooses the resource class by the name of the policy, or else by the names of
        metrics in the query. If these names do not suggest a resource class, the policy has no
        data.""")
    vm_profile_label: str = key('uuid', pattern=LABEL, about="""
        Label whose value identifies the instance in the answer to ``vm_profile_query``. If an
        instance has several series, the series whose ``host_label`` names the host of the instance
        is used. If some series name hosts of this cloud, series that name other hosts are
        ignored.""")
    vm_profile_label_type: Literal['uuid', 'name', 'display_name'] = key('uuid', about="""
        Meaning of the value of ``vm_profile_label``: ``uuid``, ``name`` (the name of the libvirt
        domain) or ``display_name``. If several servers of the cloud have the same name, the series
        with this name are not used. To find such servers, Kronos also reads the names of servers in
        other aggregates from Nova. With ``uuid``, this is not necessary.""")
    vm_profile_fallback: Literal['skip', 'flavor_vcpu_ratio', 'host_average'] = key(
        'skip', about="""
        Treatment of an instance without a series in the answer to ``vm_profile_query``. With
        ``skip``, the instance is not moved, and no load is assumed. With ``flavor_vcpu_ratio``, the
        score of the host is divided among its running instances in proportion to their vCPUs. With
        ``host_average``, the score of the host is divided into equal parts. ``skip`` requires a
        ``vm_profile_query``. If the series of an instance is impossible (negative, infinite, more
        than the whole host, given twice), no load is assumed, and the instance is not moved.""")
    capacity_query: str | None = _query(None, about="""
        PromQL for the used fraction of the capacity of each host, with one series for each host.
        The key is required with mode ``pack``. ``capacity_query`` and ``capacity_threshold`` have
        to be set together.""")
    capacity_threshold: float | None = key(None, gt=0.0, le=1.0, about="""
        Largest fraction of the capacity of a host that may be used after a move to the host. The
        limit applies to the value of ``capacity_query`` and to the score of the host.""")
    forecast: Forecast | None = key(None, about="""
        Settings of the load forecast, with which plans consider the loads of the next hours as
        well. With ``{}``, all settings have their defaults. If the forecast was not clearly more
        exact in the last day than the assumption that loads do not change, plans consider only the
        present loads.""")
    max_migrations_per_cycle: int = key(10, ge=1, le=100_000, strict=True, about="""
        Maximum number of moves in one plan of an aggregate. If the enabled policies have different
        values, the largest value applies.""")
    enabled: bool = key(True, strict=True, about="""
        Whether Kronos uses the policy.""")

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
        """Return the number n of hosts that the imbalance ignores at each end of the scale: the n
        hosts with the highest scores, and the n hosts with the lowest scores.

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


class MigrationQueries(FileMapping):
    """Queries for predictions of how long live migrations take. All of them are optional."""

    dirty_rate_query: str | None = _query(None, about="""
        PromQL for the bytes of memory that each instance writes per second, with one series for
        each instance. An exporter that measures this rate makes guests a little slower. By default,
        the rate is not measured.""")
    used_memory_query: str | None = _query(None, about="""
        PromQL for the bytes of memory that a migration of each instance has to copy, with one
        series for each instance. This is the memory that the hypervisor has given to the guest
        (resident memory), and not the memory that the guest reports as used.""")
    link_query: str | None = _query(None, about="""
        PromQL for the bytes per second that the live migration link of each host can carry, with
        one series for each host. The query takes precedence over ``[kronos_executor]
        link_mbps``.""")
    label: str = key('uuid', pattern=LABEL, about="""
        Label whose value is the uuid of the instance.""")
    host_label: str = key('host', pattern=LABEL, about="""
        Label whose value is the name of the host in Nova.""")


class PolicySet(FileMapping):
    """The content of a policies file: policies, queries about migrations, rules and buffers."""

    policies: tuple[Policy, ...] = key(min_length=1, about="""
        The policies of the file, in any order.""")
    migration: MigrationQueries = key(MigrationQueries(), about="""
        Queries from which Kronos predicts the durations of live migrations.""")
    rules: tuple[OperatorRule, ...] = key((), max_length=MOST_RULES, about="""
        Rules of operators: the hosts on which servers may run, and the times at which servers may
        be moved. See :doc:`rules`.""")
    buffers: tuple[Buffer, ...] = key((), max_length=MOST_BUFFERS, about="""
        Buffers: room that is always kept free for new servers. See :doc:`room`.""")

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
    """Yield the problems that several policies of a file have together, such as repeated names.
    Problems of a single policy are found by the model of a policy.

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
    """Return True if the sum of all weights can be checked with this weight, else False. The sum is
    not checked if a weight is no number, or is a whole number above :data:`_LARGEST`. Such a weight
    is reported as a problem of its policy."""
    return isinstance(weight, float) or (isinstance(weight, int) and abs(weight) <= _LARGEST)
