"""Checks of queries: each query of each policy is sent, and its answer is compared with the
cloud."""

import dataclasses
import re
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.cycle import forecast_columns
from kronos_nova.cycle.metrics import FRACTION
from kronos_nova.cycle.metrics import migration_queries
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.load import host_readings
from kronos_nova.load import instance_weights
from kronos_nova.metrics import adaptation
from kronos_nova.metrics import exporters
from kronos_nova.metrics import health
from kronos_nova.metrics import joins
from kronos_nova.metrics import ranges
from kronos_nova.metrics.base import InstantSource
from kronos_nova.metrics.base import with_key
from kronos_nova.metrics.labels import Diagnosis
from kronos_nova.metrics.labels import Proposal
from kronos_nova.metrics.prometheus import PrometheusClient
from kronos_nova.objects import metrics
from kronos_nova.objects.metrics import Matrix
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Times
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from kronos_nova.policies.models import ABSOLUTE
from kronos_nova.policies.models import MigrationQueries
from kronos_nova.record import writer

DOUBLED = 0.1
"""Largest accepted difference of a value between two answers, as a fraction of the largest value. A
check sends a query twice, with and without extra series, and warns if a value differs by more.
Extra series are those of another cloud, and those of a target that is scraped twice. They may
double values. Raised, the check misses extra series that change only the values of small servers;
lowered, a change of the load between the two queries causes a warning. Chosen between 0.5, the
change if a CPU is counted twice, and 0.02, a change on a busy machine without extra series."""
IOWAIT = 0.05
"""Share of a host's CPU time in iowait above which a check warns about a query that counts iowait
as load. Raised, hosts with slow disks seem busy without a warning about the reason; lowered, hosts
with ordinary disks cause a warning. Chosen as a third of 0.15, the threshold of imbalance in the
example policies."""
_IDLE = re.compile(r'node_cpu_seconds_total.*\bmode\s*(?:=|!=|=~|!~)\s*"[^"]*\bidle\b')
_IOWAIT = ('max by (instance) (avg by (instance, job) (rate('
           f'node_cpu_seconds_total{{{{mode="iowait"}}}}[{{window}}]))) > {IOWAIT}')
OF_FORECASTS = metrics.HISTORY, metrics.FORECAST

Extra = tuple[tuple[str, ...], str, str, str]
"""(kinds of exporters, label matcher that leaves out extra series, sentence about the fault,
remedy)"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueryFinding:
    """The result of one query.

    :ivar policy: name of the policy, or ``_migration`` for queries about moves
    :ivar kind: imbalance, vm_profile, capacity, host_capacity, history or forecast; or dirty_rate,
        used_memory or link
    :ivar state: ok, not checked, warning or failed
    :ivar health: healthy, partial, stale or unreachable
    :ivar matched: number of expected hosts (for a vm_profile: instances) that have a series
    :ivar expected: number of hosts or instances that should have a series. ``matched`` and
        ``expected`` are None if nothing can be compared
    :ivar missing: names without a series
    :ivar unknown: names in the answer that belong to no host or instance
    :ivar repeated: names with several series
    :ivar out_of_range: names whose value is not in [0, 1]
    :ivar proposal: change of the policy after which more hosts or instances would have a series;
        None if no such change is known
    """

    policy: str
    kind: str
    state: str
    health: str
    matched: int | None = None
    expected: int | None = None
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    out_of_range: tuple[str, ...] = ()
    proposal: str | None = None
    detail: str = ''


def examine(source: 'Answers', policy_set: PolicySet, snapshot: Snapshot | None,
            options: EngineOptions, now: float) -> Iterator[QueryFinding]:
    """Send the queries of all policies and the queries about moves, and yield a finding for each
    query.
    :param snapshot: the cloud to compare answers with; None if Nova could not be read
    :param now: Unix seconds
    """
    cloud = _Cloud(snapshot, options, now)
    found_exporters = _exporters(source, cloud)
    extra = [*_doubled(source), *_foreign(found_exporters)]
    by_name = {policy.name: policy for policy in policy_set.active}
    of_forecasts = (query for policy in policy_set.active
                    for query in forecast_columns.questions(policy))
    of_hosts = [each for each in writer.questions(policy_set)
                if not _is_of_instances(by_name[each.policy], each.kind)]
    for query in (*writer.questions(policy_set), *of_forecasts):
        policy = by_name[query.policy]
        expected = cloud.expected(policy, query.kind)
        if not expected.names:
            yield _with_ranges(source, query,
                               _uncompared(source, query, expected, snapshot is None))
            continue
        asked: InstantSource = source
        accepts = source.is_in_all(of_hosts)
        if expected.noun == 'instances':
            asked = _WithoutForeign(source, policy.host_label, cloud.hosts)
            accepts = health.any_proposal
        found = health.examine(asked, query, expected, accepts)
        finding = _finding(policy, query.kind, expected, found, options)
        if expected.noun == 'hosts':
            finding = _with_join(source, query, expected, finding)
            finding = _with_file(finding, found_exporters)
        elif query.kind == metrics.VM_PROFILE:
            finding = _with_label(asked, query, policy, cloud.instances, finding)
        finding = _with_iowait(source, query, finding, found_exporters)
        yield _with_ranges(source, query, _with_extra(source, query, expected, finding, extra))
    for query in migration_queries(policy_set.migration):
        yield _of_migration(source, query, cloud, policy_set.migration)


def _of_migration(source: 'Answers', query: MetricQuery, cloud: '_Cloud',
                  queries: MigrationQueries) -> QueryFinding:
    """Return the finding on a query for the prediction of moves' durations. Such a query belongs to
    no policy. Missing series cause only a warning, because durations are then predicted from past
    moves."""
    expected = (cloud.expected_hosts(queries.host_label) if query.kind == metrics.LINK
                else cloud.expected_instances(queries.label, 'uuid'))
    if not expected.names:
        return _uncompared(source, query, expected, not cloud.hosts)
    found = health.examine(source, query, expected)
    if found.diagnosis is None:
        return QueryFinding(policy=query.policy, kind=query.kind, state='failed',
                            health=found.state.value, detail=found.detail)
    return QueryFinding(
        policy=query.policy, kind=query.kind, health=found.state.value, detail=found.detail,
        state='ok' if found.state is health.AnswerHealth.HEALTHY else 'warning',
        matched=len(found.diagnosis.matched), expected=len(expected.names),
        missing=found.diagnosis.missing, unknown=found.diagnosis.unknown,
        repeated=found.diagnosis.repeated)


class Answers:
    """A client that sends each query of a policy only once."""

    def __init__(self, client: PrometheusClient):
        self.instant = client.instant
        self._client = client
        self._known: dict[MetricQuery, Vector | exception.MetricsError] = {}

    def query(self, query: MetricQuery) -> Vector:
        """Return the instant vector that answers a query.

        :raises MetricsError: Prometheus did not answer the query, either now or at an earlier call
            with the same query
        """
        if query not in self._known:
            try:
                self._known[query] = self._client.query(query)
            except exception.MetricsError as error:
                self._known[query] = error
        answer = self._known[query]
        if isinstance(answer, exception.MetricsError):
            raise answer
        return answer

    def query_range(self, query: MetricQuery, times: Times) -> Matrix:
        return self._client.query_range(query, times)

    def is_in_all(self, queries: Iterable[MetricQuery]) -> Callable[[Proposal], bool]:
        """Return a function that tells whether a change may be proposed. A change to another label
        as ``host_label`` may be proposed only if every series in the answers to ``queries`` has the
        label, because the label then has to name the hosts in all of them."""
        return lambda proposal: not proposal.is_plain or all(
            self.has_label(each, proposal.label) for each in queries)

    def has_label(self, query: MetricQuery, label: str) -> bool:
        """Return whether every series in the answer to a query has a label. Return true if there is
        no answer."""
        try:
            return all(label in sample.labels for sample in self.query(query).samples)
        except exception.MetricsError:
            return True


class _WithoutForeign:
    """A metrics source that leaves out the series of hosts of other clouds. A cycle leaves out the
    same series."""

    def __init__(self, source: InstantSource, host_label: str, hosts: Collection[str]):
        self._source, self._host_label, self._hosts = source, host_label, hosts

    def query(self, query: MetricQuery) -> Vector:
        vector = self._source.query(query)
        foreign = instance_weights.foreign_hosts(vector.samples, self._host_label, self._hosts)
        return vector if not foreign else dataclasses.replace(vector, samples=tuple(
            sample for sample in vector.samples
            if sample.labels.get(self._host_label) not in foreign))


def _with_label(source: InstantSource, query: MetricQuery, policy: Policy,
                instances: Sequence[Instance], finding: QueryFinding) -> QueryFinding:
    """Return the finding. If no value of the policy's label names a server, the finding gets a
    proposal: another label whose values name servers."""
    if finding.matched or not finding.expected:
        return finding
    label, attribute = exporters.guest_label(source.query(query).samples, instances)
    if not label:
        return finding
    proposal = ', '.join(
        f'{key}: {value}' for key, value, known in (
            ('vm_profile_label', label, policy.vm_profile_label),
            ('vm_profile_label_type', attribute, policy.vm_profile_label_type))
        if value != known)
    return _worse(dataclasses.replace(finding, proposal=proposal), '',
                  f'servers match with {proposal}')


def _with_file(finding: QueryFinding, found: exporters.Found | None) -> QueryFinding:
    """Return the finding. A warning is added if more hosts would have a series after the query is
    joined with ``node_uname_info``. The warning names the command that writes a policies file with
    such queries. A finding that already has a proposal is returned unchanged.
    :param found: the exporters that Prometheus scrapes; None if they are not known
    """
    node = found and found.exporter(exporters.NODE)
    if (finding.proposal or not node or not (node.naming and node.naming.is_join)
            or len(node.hosts) <= (finding.matched or 0)):
        return finding
    return _worse(finding, '', f'series of {node.kind} name '
                  f'{plural.count(len(node.hosts), "host")} by {node.naming}: kronos-test-config '
                  '--propose FILE writes such queries')


def _with_iowait(source: 'Answers', query: MetricQuery, finding: QueryFinding,
                 found: exporters.Found | None) -> QueryFinding:
    """Return the finding, with a warning if the query counts iowait as load and CPUs of a host wait
    for disks. The warning names the host. Other machines, such as those of a storage cluster, do
    not count.

    :param found: the exporters that Prometheus scrapes; None if they are not known
    """
    if query.kind not in (metrics.IMBALANCE, metrics.CAPACITY) or 'iowait' in query.promql:
        return finding
    windows = [each.window for each in ranges.ranges(query.promql)
               if _IDLE.search(each.selector)]
    if not windows:
        return finding
    try:
        waiting = source.instant(_IOWAIT.format(window=windows[0])).samples
    except exception.MetricsError:
        return finding
    node = found and found.exporter(exporters.NODE)
    if node and node.naming:
        ours = {labels.get('instance') for labels in node.hosts.values()}
        waiting = tuple(sample for sample in waiting if sample.labels.get('instance') in ours)
    if not waiting:
        return finding
    most = max(waiting, key=lambda sample: sample.value)
    return _worse(finding, f'CPUs that wait for disks (iowait) count as busy: '
                  f'{most.value:.0%} of those of {most.labels.get("instance", "")}. Take '
                  'the sum of mode=~"idle|iowait" by CPU, as the recipes do')


def _worse(finding: QueryFinding, before: str, after: str = '') -> QueryFinding:
    """Return the finding with the texts ``before`` and ``after`` added to its detail. A state "ok"
    becomes "warning"."""
    return dataclasses.replace(
        finding, state='warning' if finding.state == 'ok' else finding.state,
        detail='; '.join(filter(None, (before, finding.detail, after))))


def _with_join(source: 'Answers', query: MetricQuery, expected: health.Expected,
               finding: QueryFinding) -> QueryFinding:
    """Return the finding. If some hosts have no series, and a join of the query with
    ``node_uname_info`` would give them series, the finding gets this join as its proposal. A
    finding that already has a proposal is not changed."""
    if not finding.missing or finding.proposal:
        return finding
    join = joins.propose(source.instant, query.promql, source.query(query), expected.label,
                         expected.names, finding.matched or 0)
    if not join:
        return finding
    return dataclasses.replace(finding, proposal=join, detail=(
        f'{finding.detail}; the hosts match with a join by {joins.METRIC}: {join}'))


def _doubled(source: 'Answers') -> Iterator[Extra]:
    """Yield (kinds, matcher, sentence, remedy) for each kind of exporter that Prometheus scrapes
    several times on one machine. ``kinds`` is a tuple of this one kind. ``matcher`` is a label
    matcher that leaves out the extra series. ``sentence`` describes the fault."""
    for kind, (how, selector) in exporters.doubled(source.instant).items():
        yield ((kind,), selector, f'{kind} is scraped {how}, and the query counts each',
               'Take "max by ({label}, ...)" of the series before they are counted or added up')


def _exporters(source: 'Answers', cloud: '_Cloud') -> exporters.Found | None:
    """Return the exporters that Prometheus scrapes, as a Found; None if Prometheus does not
    answer."""
    try:
        return exporters.find(source.instant, cloud.needed, cloud.hosts, cloud.instances)
    except exception.MetricsError:
        return None


def _foreign(found: exporters.Found | None) -> Iterator[Extra]:
    """Yield one tuple like the tuples of :func:`_doubled`, (kinds, matcher, sentence, remedy), if
    Prometheus has series of another cloud. ``kinds`` are all kinds of exporters."""
    if found is not None and found.selector:
        yield (tuple(exporters.TARGETS), found.selector, 'series of another cloud count',
               f'Add {found.selector} to the selector of each metric')


def _with_extra(source: 'Answers', query: MetricQuery, expected: health.Expected,
                finding: QueryFinding, extra: Iterable[Extra]) -> QueryFinding:
    """Return the finding, with a warning if extra series change the answer. Extra series are series
    of another cloud, and series of an exporter that is scraped several times.
    :param extra: tuples of :func:`_doubled` and :func:`_foreign`
    """
    for kinds, selector, sentence, remedy in extra:
        alone = query.promql
        for kind in kinds:
            alone = adaptation.restricted(alone, kind, selector)
        name = alone != query.promql and _changed(source, query, alone, expected)
        if name:
            detail = (f'{sentence}: of {name} it has another value with {selector} alone. '
                      f'{remedy.replace("{label}", expected.label)}')
            finding = _worse(finding, detail)
    return finding


def _changed(source: 'Answers', query: MetricQuery, promql: str,
             expected: health.Expected) -> str | None:
    """Return the first host or instance whose value changes too much if extra series are left out;
    None if there is none. The change is the difference of the values in the answers to ``query``
    and ``promql``. It is too much above :data:`DOUBLED` times the largest value in the second
    answer.

    :param promql: the query without the extra series
    """
    try:
        values, others = (
            {sample.labels.get(expected.label): sample.value for sample in vector.samples}
            for vector in (source.query(query), source.instant(promql)))
    except exception.MetricsError:
        return None
    names = expected.names & values.keys() & others.keys()
    largest = max((abs(others[name]) for name in names), default=0)
    return min((name for name in names
                if abs(values[name] - others[name]) > DOUBLED * largest), default=None)


def _with_ranges(source: 'Answers', query: MetricQuery, finding: QueryFinding) -> QueryFinding:
    """Return the finding, with a warning if a range in the query is too short for the scrape
    interval."""
    short = tuple(ranges.too_short(source.instant, query.promql))
    return _worse(finding, '; '.join(short)) if short else finding


class _Cloud:
    """The names of the hosts and instances for which answers should have series."""

    def __init__(self, snapshot: Snapshot | None, options: EngineOptions, now: float):
        age = options.max_sample_age or float('inf')
        self.oldest, self.newest = now - age, now + age
        self.hosts: frozenset[str] = frozenset()
        self.needed: frozenset[str] = frozenset()
        self.instances: tuple[Instance, ...] = ()
        self.in_scope: set[str] = set()
        if snapshot is None:
            return
        known = {UNASSIGNED, *(aggregate.name for aggregate in snapshot.aggregates)}
        self.in_scope = {host for scope in options.scopes(()) if scope in known
                         for host in snapshot.hosts_of(scope)}
        self.hosts = frozenset(host.name for host in snapshot.hosts)
        self.needed = frozenset(host.name for host in snapshot.hosts
                                if host.name in self.in_scope and host.service.is_available)
        self.instances = snapshot.instances

    def expected(self, policy: Policy, kind: str) -> health.Expected:
        if not _is_of_instances(policy, kind):
            return self.expected_hosts(policy.host_label)
        return self.expected_instances(policy.vm_profile_label, policy.vm_profile_label_type)

    def expected_hosts(self, label: str) -> health.Expected:
        return health.Expected(label=label, names=self.needed, others=self.hosts,
                               oldest=self.oldest, newest=self.newest)

    def expected_instances(self, label: str, attribute: str) -> health.Expected:
        names: dict[bool, set[str]] = {True: set(), False: set()}
        moving = set()
        for instance in self.instances:
            name = getattr(instance, attribute)
            is_needed = instance.status == 'ACTIVE' and instance.host in self.in_scope
            names[is_needed].add(name)
            if instance.task_state == 'migrating':
                moving.add(name)
        return health.Expected(
            label=label, names=frozenset(names[True]), others=frozenset(names[False]),
            noun='instances', moving=frozenset(moving), oldest=self.oldest,
            newest=self.newest)


def _is_of_instances(policy: Policy, kind: str) -> bool:
    """Return True if a query of this kind is about instances, and its answer should have a series
    for each instance. Return False if the query is about hosts."""
    if kind in OF_FORECASTS:
        return policy.is_forecast_by_vm
    return kind == metrics.VM_PROFILE


def _uncompared(source: InstantSource, query: MetricQuery, expected: health.Expected,
                is_unread: bool) -> QueryFinding:
    """Return a finding that says only whether the query is answered. The names in the answer are
    not compared. Either Nova could not be read, or no host or instance in scope needs a series."""
    try:
        found = len(source.query(query).samples)
    except exception.MetricsError as error:
        return QueryFinding(policy=query.policy, kind=query.kind, state='failed',
                            health=health.AnswerHealth.UNREACHABLE.value,
                            detail=str(with_key(error, query.key)))
    why = ('Nova could not be read' if is_unread
           else f'there are no {expected.noun} in scope that need one')
    return QueryFinding(
        policy=query.policy, kind=query.kind, state='not checked',
        health=health.AnswerHealth.HEALTHY.value,
        detail=f'{found} series; whose they are is not checked: {why}')


def _finding(policy: Policy, kind: str, expected: health.Expected, found: health.Health,
             options: EngineOptions) -> QueryFinding:
    if found.diagnosis is None:
        return QueryFinding(policy=policy.name, kind=kind, state='failed',
                            health=found.state.value, detail=found.detail)
    diagnosis = found.diagnosis
    is_fraction = kind == metrics.IMBALANCE or (
        kind == metrics.VM_PROFILE and policy.profile_unit != ABSOLUTE)
    out_of_range = found.out_of_range if is_fraction else ()
    beyond = '' if not out_of_range or found.extreme is None else (
        f'{len(out_of_range)} of {len(expected.names)} {expected.noun} out of range '
        f'{FRACTION}, such as {boundary.shown(out_of_range[0], 80)} at {found.extreme:g}'
        f'{host_readings.range_remedy(found.extreme, FRACTION)}')
    return QueryFinding(
        policy=policy.name, kind=kind, health=found.state.value,
        detail='; '.join(filter(None, (beyond, found.detail))),
        state='failed' if out_of_range else _state(
            policy, kind, expected, found, diagnosis, options),
        matched=len(diagnosis.matched), expected=len(expected.names),
        missing=diagnosis.missing, unknown=diagnosis.unknown, repeated=diagnosis.repeated,
        out_of_range=out_of_range,
        proposal=diagnosis.proposal.remedy(expected.label)
        if diagnosis.proposal and expected.noun == 'hosts' else None)


def _state(policy: Policy, kind: str, expected: health.Expected, found: health.Health,
           diagnosis: Diagnosis, options: EngineOptions) -> str:
    """Return the state of a query whose values are in range: ``ok``, ``warning`` or ``failed``. A
    query has failed if plans cannot use its policy with this answer. An incomplete answer about
    forecasts causes only a warning, because plans can use the present load."""
    coverage = len(diagnosis.matched) / len(expected.names)
    is_used = found.is_whole or options.accept_partial_metrics
    if kind in OF_FORECASTS:  # without a forecast, plans use the present load
        is_fatal = False
    elif kind == metrics.VM_PROFILE:
        is_fatal = ((coverage == 0 or not is_used)
                    and policy.vm_profile_fallback == 'skip')
    else:
        is_fatal = coverage < options.min_coverage or bool(diagnosis.repeated) or not is_used
    if is_fatal:
        return 'failed'
    return 'ok' if found.state is health.AnswerHealth.HEALTHY else 'warning'
