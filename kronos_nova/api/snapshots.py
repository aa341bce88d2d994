"""Operations on snapshots: list snapshots, download a snapshot, and plan for a snapshot with other
policies."""

from typing import IO
from typing import Annotated

import msgspec

from kronos_client.contract.base import Name
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import OPERATOR
from kronos_nova.api.operation import Call
from kronos_nova.api.operation import Operation
from kronos_nova.operations import snapshots

ARCHIVE = 'application/gzip'


class Snapshot(Response):
    """A recorded snapshot of the cloud. ``bytes`` is the size of all files of the snapshot
    together."""

    name: str
    taken_at: Time
    cloud: str
    kronos_version: str
    bytes: int


class Snapshots(Response):
    snapshots: list[Snapshot]


class WhatIf(Request):
    """Input that a replay uses in place of recorded input. ``policies`` is the content of a
    policies file as an object, and ``budget`` is the maximum number of planned moves."""

    policies: dict | None = None
    spread_planner: Name | None = None
    pack_planner: Name | None = None
    budget: Annotated[int, msgspec.Meta(ge=0, le=100_000)] | None = None


class ReplayedMove(Response):
    order: int
    phase: str
    instance_uuid: str
    source: str
    destination: str
    memory_mb: int
    combined_after: float | None
    reason: str
    group: int | None


class ReplayedStay(Response):
    """The servers that stay on their hosts for one reason."""

    reason: str
    count: int
    instances: list[str]


class ReplayedPolicy(Response):
    name: str
    state: str
    detail: str
    weight: float
    threshold: float
    imbalance_before: float | None
    imbalance_after: float | None


class ReplayedAggregate(Response):
    """The plan that a replay makes for an aggregate."""

    name: str
    outcome: str
    mode: str
    planner: str
    policies: list[ReplayedPolicy]
    combined_before: float | None
    combined_after: float | None
    hosts_emptied: list[str]
    moves: list[ReplayedMove]
    not_moved: list[ReplayedStay]
    notes: list[str]
    warnings: list[str]


class Replay(Response):
    """The result of a replay, as ``kronos-replay -f json`` writes it. ``options`` is ``recorded``
    if the replay used the recorded options, and ``defaults`` if it used the default options.
    ``notes`` has a sentence about these options."""

    format: int
    options: str
    notes: list[str]
    planning_seconds: float
    aggregates: list[ReplayedAggregate]


def list_snapshots(call: Call) -> Snapshots:
    found = call.services.snapshots.list()
    return Snapshots(snapshots=[Snapshot.made_from(each) for each in found])


def download(call: Call) -> IO[bytes]:
    return call.services.snapshots.packed(call.path['snapshot'])


def replay(call: Call) -> Replay:
    return msgspec.convert(call.services.snapshots.replay(
        call.path['snapshot'], snapshots.Change(**msgspec.structs.asdict(call.body))), Replay)


OPERATIONS = (
    Operation(method='GET', path='/v1/snapshots', name='snapshots:list', run=list_snapshots,
              gives=Snapshots, summary='Recorded snapshots of the cloud, the newest first.'),
    Operation(method='GET', path='/v1/snapshots/{snapshot}', name='snapshots:download',
              run=download, media=ARCHIVE, audience=OPERATOR, is_slow=True, refusals=(404,),
              summary='One of them, as a compressed tar archive for kronos-replay.'),
    Operation(method='POST', path='/v1/snapshots/{snapshot}/what-if', name='snapshots:replay',
              run=replay, gives=Replay, body=WhatIf, audience=OPERATOR, is_slow=True,
              refusals=(404, 422, 429),
              summary='What would be planned for it, with other policies or planners. Changes '
                      'nothing.'),
)
