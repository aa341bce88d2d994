"""Writing of a snapshot folder. A snapshot has everything that a cycle reads."""

import dataclasses
import json
import operator
import os
import pathlib
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import Protocol

from kronos_nova import exception
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle.metrics import migration_queries
from kronos_nova.inventory.base import InventorySource
from kronos_nova.metrics import answer
from kronos_nova.metrics.base import with_key
from kronos_nova.objects import metrics
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import PolicySet
from kronos_nova.record import history
from kronos_nova.record import options
from kronos_nova.record import schema
from kronos_nova.record.options import RecordedOptions

OPTIONAL = frozenset((
    'used', 'min_unit', 'max_unit', 'step_size', 'shared_resources', 'launched_at', 'domains',
    'flavor', 'image', 'tags', 'traits', 'cpu', 'hypervisor_version', 'live', 'cpu_model',
    'requires', 'cells', 'pools', 'on_cells', 'on_pages', 'devices', 'shared_cpus', 'page_kb',
    'resource_class', 'arrived'))
"""Keys that are left out of a snapshot if they have their default value."""

KEYS = {'resource_class': 'class'}
"""{name of an attribute: key in the snapshot}, for attributes whose key is not their name"""

OPTIONAL_TABLES = {'moves_under_way': 'instance_uuid', 'shared_providers': 'uuid',
                   'flavors': 'name'}
"""{table: key by which its rows are sorted}, for tables that are left out of a snapshot if they are
empty"""

NO_COOLDOWNS: dict[str, dict[str, float]] = {
    'aggregate_cooldowns': {}, 'instance_cooldowns': {}, 'instance_quarantines': {}}


class BodySource(Protocol):
    """A metrics source that can return the unparsed body of an answer."""

    def body(self, query: MetricQuery) -> bytes:
        """Return the body of the answer to a query.

        :raises MetricsError: there is no answer
        """


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The data of a snapshot before it is written.

    :ivar policies: content of the policies file
    :ivar bodies: {(policy, kind of query): body of Prometheus' answer}
    :ivar options: options in force; None if options are not recorded
    :ivar history: the planning history; None if the history is not recorded
    """

    snapshot: Snapshot
    policies: bytes
    bodies: Mapping[tuple[str, str], bytes]
    kronos_version: str
    cloud: str = ''
    options: RecordedOptions | None = None
    history: PlanningHistory | None = None


def questions(policies: PolicySet) -> Iterator[MetricQuery]:
    """Yield the queries of all enabled policies."""
    for policy in policies.active:
        for kind, field in metrics.KEYS.items():
            promql = getattr(policy, field)
            if promql is not None:
                yield MetricQuery(policy.name, kind, promql, field)


def bodies(source: BodySource, policies: PolicySet) -> dict[tuple[str, str], bytes]:
    """Return {(policy, kind of query): body of the answer} for all queries of policies and of
    migrations. Each answer is parsed as a check, so that no malformed answer is recorded.

    :raises MetricsError: a query was not answered, or the answer is malformed
    """
    found = {}
    for query in (*questions(policies), *migration_queries(policies.migration)):
        place = query.key if query.policy == metrics.MIGRATION else (
            f'policy {query.policy}, {query.key}')
        try:
            body = source.body(query)
        except exception.MetricsError as error:
            raise with_key(error, place) from error
        answer.read_vector(body, place)
        found[query.policy, query.kind] = body
    return found


def read_cloud(inventory: InventorySource, source: BodySource, policy_set: PolicySet,
               **rest: Any) -> Taken:
    """Read a live cloud, and return the data of a snapshot. The metrics are read first, all at
    about the same time. Nova and placement are read afterwards, because this may take minutes.

    :param rest: further fields of :class:`Taken`
    :raises InventoryError: Nova or placement could not be read
    :raises MetricsError: a query was not answered
    """
    answers = bodies(source, policy_set)
    snapshot = dataclasses.replace(inventory.read(), flavors=inventory.read_flavors())
    return Taken(bodies=answers, snapshot=snapshot, **rest)


def write(taken: Taken, folder: pathlib.Path) -> None:
    """Write a snapshot into an empty or new folder.

    :raises SnapshotError: the folder is not empty, or cannot be written
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise exception.SnapshotError(
                path=folder, problems='the folder is not empty. Name a new folder, because a '
                                      'snapshot is never overwritten')
        for name, content in _files(taken):
            path = folder / name
            for parent in reversed(path.relative_to(folder).parents[:-1]):
                (folder / parent).mkdir(mode=0o700, exist_ok=True)
            with open(path, 'xb', opener=_private) as file:
                file.write(content)
    except OSError as error:
        raise exception.SnapshotError(path=error.filename or folder,
                                      problems=f'cannot be written: {error.strerror}') from error


def _private(path: str, flags: int) -> int:
    """Open a file of a snapshot so that only its owner can read it. This function serves as
    ``opener`` of :func:`open`. Other users are excluded because a snapshot has names, projects and
    metadata of a whole cloud."""
    return os.open(path, flags, 0o600)


def _files(taken: Taken) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, content) of each file of a snapshot. The file meta.json comes last. So
    a folder that has meta.json is complete."""
    yield 'inventory.json', _inventory(taken.snapshot)
    yield 'policies.yaml', taken.policies
    yield 'cooldowns.json', _json(NO_COOLDOWNS, indent=2)
    if taken.options is not None:
        yield options.NAME, _json(taken.options, indent=2)
    if taken.history is not None:
        yield history.NAME, _json(history.as_object(taken.history), indent=1)
    for (policy, kind), body in sorted(taken.bodies.items()):
        yield f'metrics/{policy}/{kind}.json', body
    yield 'meta.json', _json({
        'format': _format(taken), 'taken_at': taken.snapshot.taken_at,
        'kronos_version': taken.kronos_version, 'cloud': taken.cloud}, indent=2)


def _format(taken: Taken) -> int:
    has_more = taken.options is not None or taken.history is not None or bool(
        taken.snapshot.flavors) or any(
        getattr(row, field.name) != _default(field) for table, keys in schema.ADDED.items()
        for row in getattr(taken.snapshot, table)
        for field in dataclasses.fields(row) if field.name in keys)
    return schema.FORMAT if has_more else schema.WITHOUT_OPTIONS


def _inventory(snapshot: Snapshot) -> bytes:
    """Return the inventory as JSON, with one line for each row, such as a host or a server. The
    rows are sorted, so that snapshots can be compared with diff."""
    tables: dict[str, list[Any]] = {
        'aggregates': sorted(snapshot.aggregates, key=lambda row: row.name),
        'hosts': sorted(snapshot.hosts, key=lambda row: row.name),
        'instances': sorted(snapshot.instances, key=lambda row: row.uuid),
        'server_groups': sorted(snapshot.server_groups, key=lambda row: row.uuid),
    }
    for name, key in OPTIONAL_TABLES.items():
        if rows := getattr(snapshot, name):
            tables[name] = sorted(rows, key=operator.attrgetter(key))
    parts = []
    for name, rows in tables.items():
        lines = b',\n'.join(b'  ' + _json(_row(row)).rstrip() for row in rows)
        parts.append(_json(name).rstrip() + (b': [\n' + lines + b'\n ]' if lines else b': []'))
    return b'{' + b',\n '.join(parts) + b'}\n'


def _row(value: Any) -> Any:
    """Return a row of the inventory as an object of JSON. Optional keys are left out if they have
    their default value, at every level of nesting."""
    if isinstance(value, tuple | list):
        return [_row(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _row(each) for key, each in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    return {KEYS.get(each.name, each.name): _row(getattr(value, each.name))
            for each in dataclasses.fields(value)
            if each.name not in OPTIONAL or getattr(value, each.name) != _default(each)}


def _default(field: dataclasses.Field) -> Any:
    """Return the default value of a field of a dataclass.

    :param field: the field, as :func:`dataclasses.fields` returns it
    """
    if field.default_factory is dataclasses.MISSING:
        return field.default
    return field.default_factory()


def _json(value: Any, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent, ensure_ascii=False).encode() + b'\n'
