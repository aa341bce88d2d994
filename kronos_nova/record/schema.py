"""Schema of the files of a snapshot, in the formats 1 to 3.

Keys that were added by format 2 or 3 are optional, so that one model reads all three formats.
"""

from typing import Annotated
from typing import Any
from typing import Literal

import pydantic

FORMAT = 3
"""Version of the format of recorded snapshots (no unit). Fixed: the version changes when older
programs cannot read the snapshots."""
WITHOUT_OPTIONS = 2
"""Version of the format that is written into snapshots without the additions of format 3, such as
options (no unit). Older programs, which do not know format 3, can then read the snapshots. Fixed:
the older programs accept no higher version."""
ADDED = {'hosts': ('domains', 'traits', 'cpu', 'hypervisor_version', 'cells', 'pools'),
         'instances': ('flavor', 'image', 'tags', 'live', 'requires', 'cells', 'devices')}
"""{table of the inventory: keys that format 3 has added to its rows}"""

Text = Annotated[str, pydantic.Field(min_length=1, max_length=1024)]
Count = Annotated[int, pydantic.Field(ge=0, lt=1 << 53)]
Unit = Annotated[int, pydantic.Field(ge=1, lt=1 << 53)]
Seconds = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


def _or_indefinite(seconds: float) -> float:
    if seconds < 0 and seconds != -1:
        raise ValueError('must be 0 or more, or -1 for ever')
    return seconds


Quarantine = Annotated[float, pydantic.Field(allow_inf_nan=False),
                       pydantic.AfterValidator(_or_indefinite)]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra='forbid', strict=True, frozen=True)


class Meta(_Strict):
    format: Literal[1, 2, 3]
    taken_at: pydantic.AwareDatetime = pydantic.Field(strict=False)
    kronos_version: str
    cloud: str


class Aggregate(_Strict):
    name: Text
    uuid: str
    availability_zone: str | None
    hosts: list[Text]
    metadata: dict[str, str]


class Service(_Strict):
    state: Literal['up', 'down']
    status: Literal['enabled', 'disabled']
    forced_down: bool
    disabled_reason: str | None


class ResourceInventory(_Strict):
    total: Count
    reserved: Count
    allocation_ratio: float = pydantic.Field(ge=0, allow_inf_nan=False)
    min_unit: Count | None = None
    max_unit: Unit | None = None
    step_size: Unit | None = None


class Cpu(_Strict):
    arch: Text
    model: str
    features: list[Text] = []


class Pages(_Strict):
    total: Count
    used: Count = 0
    reserved: Count = 0


def _sizes(pages: dict[str, Pages]) -> dict[str, Pages]:
    for size in pages:
        if not size.isdigit() or not int(size):
            raise ValueError(f'{size} is not a size of memory pages in KiB')
    return pages


class NumaCell(_Strict):
    id: Count
    memory_mb: Count
    memory_used_mb: Count = 0
    cpus: Count = 0
    cpus_used: Count = 0
    pinned_cpus: Count = 0
    pinned_used: Count = 0
    pages: Annotated[dict[str, Pages], pydantic.AfterValidator(_sizes)] = {}


class Pool(_Strict):
    alias: Text
    total: Count
    used: Count = 0
    cell: Count | None = None
    resource_class: Text | None = pydantic.Field(default=None, alias='class')


class InstanceCell(_Strict):
    cpus: Count
    memory_mb: Unit
    pinned: bool = False
    shared_cpus: Count | None = None
    page_kb: Annotated[int, pydantic.Field(ge=-3, lt=1 << 53)] | None = None


class Device(_Strict):
    alias: Text
    count: Unit = 1
    policy: Literal['legacy', 'required', 'preferred', 'socket'] = 'legacy'


class Host(_Strict):
    name: Text
    uuid: Text
    cell: Text
    hypervisor_type: str
    service: Service
    inventory: dict[Text, ResourceInventory]
    used: dict[Text, Count] | None = None
    domains: dict[Text, Text] = {}
    traits: list[Text] | None = None
    cpu: Cpu | None = None
    hypervisor_version: Count | None = None
    cells: list[NumaCell] | None = None
    pools: list[Pool] | None = None


class SharedProvider(_Strict):
    uuid: Text
    hosts: list[Text]
    inventory: dict[Text, ResourceInventory]
    used: dict[Text, Count] = {}


class Flavor(_Strict):
    name: Text
    id: Text | None = None


class Image(_Strict):
    id: str
    properties: dict[str, str] = {}


class Movability(_Strict):
    can: Literal['live', 'cold', 'no']
    why: str = ''


class Requirements(_Strict):
    traits: list[Text] = []
    forbidden: list[Text] = []
    member_of: list[list[Text]] = []
    image: dict[str, str] = {}
    cpu_model: str = ''


class Instance(_Strict):
    uuid: Text
    name: str
    display_name: str
    host: Text
    project_id: str | None
    status: Text
    task_state: str | None
    locked: bool
    vcpus: Count
    memory_mb: Count
    disk_gb: Count
    metadata: dict[str, str]
    flavor_extra_specs: dict[str, str]
    resources: dict[Text, Count]
    shared_resources: dict[Text, Count] = {}
    launched_at: float | None = None
    flavor: Flavor | None = None
    image: Image | None = None
    tags: list[Text] = []
    live: Movability | None = None
    requires: Requirements | None = None
    cells: list[InstanceCell] = []
    on_cells: list[Count] | None = None
    on_pages: list[Unit] = []
    devices: list[Device] = []


class ServerGroup(_Strict):
    uuid: Text
    name: str
    policy: Literal['affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity']
    rules: dict[str, int] | None
    members: list[Text]

    @pydantic.field_validator('rules')
    @classmethod
    def _check_rules(cls, rules: dict[str, int] | None) -> dict[str, int] | None:
        for key, value in (rules or {}).items():
            if key != 'max_server_per_host':
                raise ValueError(f'unknown rule {key}')
            if value < 1:
                raise ValueError('max_server_per_host must be 1 or more')
        return rules


class MoveUnderWay(_Strict):
    instance_uuid: Text
    source: Text
    destination: Text
    arrived: dict[Text, Count] = {}


class Shape(_Strict):
    id: Text
    name: Text
    vcpus: Count
    memory_mb: Count
    disk_gb: Count
    extra_specs: dict[str, str] = {}
    resources: dict[Text, Count] = {}
    cells: list[InstanceCell] = []
    devices: list[Device] = []


class Inventory(_Strict):
    aggregates: list[Aggregate]
    hosts: list[Host]
    instances: list[Instance]
    server_groups: list[ServerGroup]
    moves_under_way: list[MoveUnderWay] = []
    shared_providers: list[SharedProvider] = []
    flavors: list[Shape] = []


class Cooldowns(_Strict):
    aggregate_cooldowns: dict[Text, Seconds] = {}
    instance_cooldowns: dict[Text, Seconds] = {}
    instance_quarantines: dict[Text, Quarantine] = {}


class Options(pydantic.RootModel):
    """The content of ``options.json``: {group: {option: value}}. The model does not check the
    values. oslo.config checks them later."""

    model_config = pydantic.ConfigDict(strict=True, frozen=True)

    root: dict[Text, dict[Text, Any]]


Figure = Annotated[float, pydantic.Field(allow_inf_nan=False)]


def _of_a_load(figures: list[float]) -> list[float]:
    if min(figures[0], figures[2]) < 0:
        raise ValueError('seconds and variance must be 0 or more')
    return figures


Figures = Annotated[list[Figure], pydantic.Field(min_length=5, max_length=5),
                    pydantic.AfterValidator(_of_a_load)]
"""The five figures of an instance's load in a policy: the seconds for which the load is known, the
mean, the variance, the mean over about a quarter of an hour, and the covariance. See
:class:`kronos_nova.load.LoadStats`."""


class LoadStats(_Strict):
    at: Figure
    instances: dict[Text, Figures]
    unit: Figure | None = None


class PastMove(_Strict):
    instance_uuid: Text
    source: Text
    destination: Text
    ended_at: Figure
    has_emptied: bool = False
    is_own: bool = False


class PastTry(_Strict):
    instance_uuid: Text
    source: Text
    destination: Text
    memory_mb: Count
    seconds: Seconds | None
    failed: bool
    lasted: Seconds | None = None
    processed_mb: Seconds | None = None
    sharing: Seconds = 1.0
    expected: Seconds | None = None


class Doubt(_Strict):
    policy: Text
    host: Text


class History(_Strict):
    """The content of ``history.json``; see :class:`kronos_nova.cooldown.PlanningHistory`."""

    load_stats: dict[Text, dict[Text, LoadStats]] = {}
    moves: list[PastMove] = []
    tries: list[PastTry] = []
    imbalanced: dict[Text, Count] = {}
    doubted: dict[Text, list[Doubt]] = {}
    spread: dict[Text, Seconds] = {}
    refused: dict[Text, Seconds] = {}
    refused_hosts: dict[Text, dict[Text, str]] = {}
    projects_moved: dict[Text, Count] = {}
    caused: dict[Text, Count] = {}
    instances_moved: dict[Text, Count] = {}
    instances_moved_today: dict[Text, Count] = {}
