"""Reading of a snapshot folder. One error lists all problems of the folder."""

import collections
import dataclasses
import os
import pathlib
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import TypeVar

import pydantic
import pydantic_core

from kronos_nova.cooldown import PlanningHistory
from kronos_nova.objects import numa
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.shape import Shape
from kronos_nova.record import history
from kronos_nova.record import options
from kronos_nova.record import schema
from kronos_nova.record.metrics import RecordedMetrics
from kronos_nova.record.options import RecordedOptions
from kronos_nova.record.problems import Problems

M = TypeVar('M', bound=pydantic.BaseModel)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The content of a snapshot folder. ``taken_at`` is in Unix seconds. Each answer of ``metrics``
    is read from its file when it is first needed.

    :ivar options: recorded options of Kronos; None if they were not recorded
    :ivar has_history: whether the planning history was recorded
    """

    folder: pathlib.Path
    taken_at: float
    snapshot: objects.Snapshot
    history: PlanningHistory
    metrics: RecordedMetrics
    options: RecordedOptions | None = None
    has_history: bool = False


def read(folder: str | os.PathLike[str]) -> Recording:
    """Return the snapshot in a folder.

    :raises SnapshotError: the folder is not a valid snapshot; the message has a line for each
        problem
    """
    folder = pathlib.Path(folder)
    problems = Problems(folder)
    if not os.path.isdir(folder):
        problems.add('', 'is not a folder')
        problems.raise_if_any()
    meta = _file(folder / 'meta.json', schema.Meta, problems)
    inventory = _file(folder / 'inventory.json', schema.Inventory, problems)
    cooldowns = _optional(folder / 'cooldowns.json', schema.Cooldowns, problems)
    in_force = _optional(folder / options.NAME, schema.Options, problems)
    before = _optional(folder / history.NAME, schema.History, problems)
    if inventory is not None:
        for path, problem in _contradictions(inventory):
            problems.add(f'inventory.json: {path}', problem)
    problems.raise_if_any()
    assert meta is not None and inventory is not None
    return Recording(folder=folder, taken_at=meta.taken_at.timestamp(),
                     snapshot=_snapshot(meta, inventory), metrics=RecordedMetrics(folder),
                     options=None if in_force is None else in_force.root,
                     has_history=before is not None, history=_history(before, cooldowns))


def _history(before: schema.History | None,
             cooldowns: schema.Cooldowns | None) -> PlanningHistory:
    cooldowns = cooldowns or schema.Cooldowns()
    return history.planning_history(
        before or schema.History(), aggregates=cooldowns.aggregate_cooldowns,
        instances=cooldowns.instance_cooldowns, quarantines=cooldowns.instance_quarantines)


def _optional(path: pathlib.Path, model: type[M], problems: Problems) -> M | None:
    """Return the content of a file as an instance of ``model``; None if there is no such file. If
    the file is not valid, add its problems to ``problems``, and return None."""
    return _file(path, model, problems) if os.path.exists(path) else None


def _file(path: pathlib.Path, model: type[M], problems: Problems) -> M | None:
    try:
        tree = pydantic_core.from_json(path.read_bytes(), allow_inf_nan=False)
    except OSError as error:
        problems.add(path.name, f'cannot be read: {error.strerror}')
        return None
    except ValueError as error:
        problems.add(path.name, f'is not JSON: {error}')
        return None
    try:
        return model.model_validate(tree)
    except pydantic.ValidationError as error:
        for found in error.errors():
            problems.add(f'{path.name}{_path(found["loc"])}', _message(found))
        return None


def _path(location: Iterable[int | str]) -> str:
    path = ''.join(f'[{part}]' if isinstance(part, int) else f'.{part}' for part in location)
    return f': {path.lstrip(".")}' if path else ''


def _message(found: Mapping[str, Any]) -> str:
    if found['type'] == 'model_type':
        return 'must be an object'
    return found['msg'].removeprefix('Value error, ')


def _contradictions(inventory: schema.Inventory) -> Iterator[tuple[str, str]]:
    """Yield (path, problem) for each contradiction in the inventory, such as a server on an unknown
    host. The validation by the schema does not find contradictions."""
    hosts = {host.name for host in inventory.hosts}
    yield from _repeated(inventory)
    for table in ('aggregates', 'shared_providers'):
        for number, row in enumerate(getattr(inventory, table)):
            for name in sorted(set(row.hosts) - hosts):
                yield f'{table}[{number}].hosts', f'no host is called {name}'
    for number, aggregate in enumerate(inventory.aggregates):
        if aggregate.name == objects.UNASSIGNED:
            yield f'aggregates[{number}].name', 'is the name of the pool of hosts in no aggregate'
    for number, instance in enumerate(inventory.instances):
        if instance.host not in hosts:
            yield f'instances[{number}].host', f'no host is called {instance.host}'
    for table in ('hosts', 'shared_providers'):
        for number, row in enumerate(getattr(inventory, table)):
            for name, problem in _impossible_inventories(row.inventory):
                yield f'{table}[{number}].inventory.{name}', problem
    yield from _impossible_cells(inventory)
    yield from _impossible_moves(inventory, hosts)


def _impossible_cells(inventory: schema.Inventory) -> Iterator[tuple[str, str]]:
    for number, host in enumerate(inventory.hosts):
        counts = collections.Counter(cell.id for cell in host.cells or ())
        for repeated in sorted(cell for cell, count in counts.items() if count > 1):
            yield f'hosts[{number}].cells', f'id {repeated} is given {counts[repeated]} times'
    for number, instance in enumerate(inventory.instances):
        if instance.on_cells is not None and len(instance.on_cells) != len(instance.cells):
            yield f'instances[{number}].on_cells', (
                f'must have one number for each of the {len(instance.cells)} cells')
        if instance.on_pages and len(instance.on_pages) != len(instance.cells):
            yield f'instances[{number}].on_pages', (
                f'must have one size for each of the {len(instance.cells)} cells')


def _repeated(inventory: schema.Inventory) -> Iterator[tuple[str, str]]:
    for table, key in (('hosts', 'name'), ('hosts', 'uuid'), ('instances', 'uuid'),
                       ('aggregates', 'name'), ('server_groups', 'uuid'),
                       ('moves_under_way', 'instance_uuid'), ('shared_providers', 'uuid'),
                       ('flavors', 'id'), ('flavors', 'name')):
        rows = getattr(inventory, table)
        counts = collections.Counter(getattr(row, key) for row in rows)
        for value in sorted(value for value, count in counts.items() if count > 1):
            yield table, f'{key} {value} is given {counts[value]} times'


def _impossible_inventories(inventory: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, item in inventory.items():
        if item.reserved > item.total:
            yield name, f'reserved {item.reserved} is more than total {item.total}'
        if None not in (item.min_unit, item.max_unit) and item.min_unit > item.max_unit:
            yield name, f'min_unit {item.min_unit} is more than max_unit {item.max_unit}'


def _impossible_moves(inventory: schema.Inventory,
                      hosts: Container[str]) -> Iterator[tuple[str, str]]:
    host_of = {instance.uuid: instance.host for instance in inventory.instances}
    for number, move in enumerate(inventory.moves_under_way):
        path = f'moves_under_way[{number}]'
        if move.instance_uuid not in host_of:
            yield f'{path}.instance_uuid', f'there is no instance {move.instance_uuid}'
        elif move.source != host_of[move.instance_uuid]:
            yield f'{path}.source', f'the instance is on {host_of[move.instance_uuid]}'
        if move.destination not in hosts:
            yield f'{path}.destination', f'no host is called {move.destination}'
        elif move.destination == move.source:
            yield f'{path}.destination', 'is the source'


def _snapshot(meta: schema.Meta, inventory: schema.Inventory) -> objects.Snapshot:
    return objects.Snapshot(
        taken_at=meta.taken_at.isoformat(),
        hosts=tuple(objects.Host(
            name=row.name, uuid=row.uuid, cell=row.cell, hypervisor_type=row.hypervisor_type,
            service=objects.Service(**vars(row.service)),
            inventory=_inventories(row), used=row.used, domains=row.domains,
            traits=None if row.traits is None else tuple(sorted(set(row.traits))),
            cpu=_cpu(row.cpu), hypervisor_version=row.hypervisor_version,
            cells=_host_cells(row.cells), pools=_pools(row.pools))
                    for row in inventory.hosts),
        instances=tuple(_instance(row) for row in inventory.instances),
        aggregates=tuple(objects.Aggregate(**{**vars(row), 'hosts': tuple(row.hosts)})
                         for row in inventory.aggregates),
        server_groups=tuple(objects.ServerGroup(**{
            **vars(row), 'members': tuple(row.members), 'rules': row.rules or {}})
            for row in inventory.server_groups),
        moves_under_way=tuple(objects.MoveUnderWay(**vars(row))
                              for row in inventory.moves_under_way),
        shared_providers=tuple(objects.SharedProvider(
            uuid=row.uuid, hosts=tuple(row.hosts), inventory=_inventories(row), used=row.used)
            for row in inventory.shared_providers),
        flavors=tuple(Shape(**vars(row) | _needs(row)) for row in inventory.flavors))


def _instance(row: Any) -> objects.Instance:
    return objects.Instance(**vars(row) | {
        'flavor': row.flavor and objects.Flavor(**vars(row.flavor)),
        'image': row.image and objects.Image(**vars(row.image)), 'tags': tuple(row.tags),
        'live': _movability(row.live), 'requires': _requirements(row.requires),
        'on_cells': None if row.on_cells is None else tuple(row.on_cells),
        'on_pages': tuple(row.on_pages), **_needs(row)})


def _needs(row: Any) -> dict[str, Any]:
    return {'cells': tuple(numa.InstanceCell(**vars(each)) for each in row.cells),
            'devices': tuple(numa.Device(**vars(each)) for each in row.devices)}


def _host_cells(rows: Iterable[Any] | None) -> tuple[numa.NumaCell, ...] | None:
    return None if rows is None else tuple(numa.NumaCell(**vars(row) | {'pages': {
        int(size): numa.Pages(**vars(pages)) for size, pages in sorted(
            row.pages.items(), key=lambda each: int(each[0]))}}) for row in rows)


def _pools(rows: Iterable[Any] | None) -> tuple[numa.Pool, ...] | None:
    return None if rows is None else tuple(numa.Pool(**vars(row)) for row in rows)


def _cpu(row: Any) -> objects.Cpu | None:
    return row and objects.Cpu(arch=row.arch, model=row.model,
                               features=tuple(sorted(set(row.features))))


def _movability(row: Any) -> objects.Movability:
    return objects.MOVES_LIVE if row is None else objects.Movability(**vars(row))


def _requirements(row: Any) -> objects.Requirements:
    if row is None:
        return objects.NO_REQUIREMENTS
    return objects.Requirements(
        traits=tuple(sorted(row.traits)), forbidden=tuple(sorted(row.forbidden)),
        member_of=tuple(map(tuple, row.member_of)), image=row.image,
        cpu_model=row.cpu_model)


def _inventories(row: Any) -> dict[str, objects.ResourceInventory]:
    return {name: objects.ResourceInventory(**vars(item)) for name, item in row.inventory.items()}
