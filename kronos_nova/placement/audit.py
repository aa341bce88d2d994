"""Audit of allocations: a comparison of placement with Nova's records of instances and migrations.

Every instance should have one allocation with the resources that it requests, on its host and on
sharing providers. A migration should have no allocation, except while the move is in progress. An
instance and its migrations are examined together as one *case*, because a repair may change the
allocations of all of them.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping

from kronos_nova import exception
from kronos_nova.objects.migration_status import FINISHED
from kronos_nova.objects.migration_status import LIVE
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import off
from kronos_nova.placement.holdings import Holdings
from kronos_nova.placement.holdings import untracked
from kronos_nova.placement.ownership import before_move
from kronos_nova.placement.ownership import classes
from kronos_nova.placement.ownership import totals
from kronos_nova.placement.records import InstanceRecord
from kronos_nova.placement.records import Migration
from kronos_nova.placement.records import NovaRecords

LEAKED = 'leaked'
DOUBLED = 'doubled'
MISSING = 'missing'
MISPLACED = 'misplaced'
MISMATCHED = 'mismatched'
STALLED = 'stalled'
UNKNOWN = 'unknown'
KINDS = (LEAKED, DOUBLED, MISSING, MISPLACED, MISMATCHED, STALLED, UNKNOWN)

# Resource classes that Nova's records alone decide. Others may be requested by services of which
# Nova has no record, such as accelerators.
EVERY_SERVER = frozenset(('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB'))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A wrong allocation, and its repair.

    instance : uuid of the instance, or of a consumer that is no instance
    wanted : {consumer: its allocations after the repair}; the allocations are {} if the consumer
        should have none. ``wanted`` itself is None if only an operator can repair the allocation
    needs_candidate : uuid of the instance if the repair adds an allocation candidate on the
        instance's host to the allocations in ``wanted``; None if the repair needs no candidate
    differing : resource classes whose allocated amount differs from the requested amount; empty
        unless the allocation is on the right host
    is_room : true if the consumer keeps room for a future server
    """

    kind: str
    instance: str
    host: str | None = None
    evidence: str
    remedy: str
    wanted: Mapping[str, Allocations] | None = None
    needs_candidate: str | None = None
    differing: frozenset[str] = frozenset()
    is_room: bool = False

    @property
    def can_be_healed(self) -> bool:
        return self.wanted is not None

    @property
    def can_be_healed_unasked(self) -> bool:
        """True if the finding may be repaired without an operator; else False. A finding with a
        repair may be repaired without an operator, unless its kind is MISMATCHED (wrong amounts).
        Wrong amounts have to meet two further conditions:

        * All of their resource classes are in EVERY_SERVER (CPUs, memory and disk). A service other
          than Nova may have requested other classes.
        * The repair needs no allocation candidate."""
        if self.kind != MISMATCHED:
            return self.can_be_healed
        return self.can_be_healed and not self.needs_candidate and self.differing <= EVERY_SERVER


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditCase:
    """An instance and its migrations, with the allocations of each.

    uuid : uuid of the instance
    instance : Nova's record of the instance; None if Nova has no such instance
    held : allocations of the instance
    migrations : (migration, allocations of the migration) of each migration of the instance
    """

    uuid: str
    instance: InstanceRecord | None
    held: Allocations
    migrations: tuple[tuple[Migration, Allocations], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditLimits:
    """Time limits of an audit, in seconds. If the record of an instance or migration has changed
    within the last ``grace`` seconds, an operation counts as in progress. A live migration whose
    record has not changed for ``stalled`` seconds counts as stalled, even if the nova-compute of
    its source is up."""

    grace: float = 60.0
    stalled: float = 3600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of an audit.

    ``instances`` and ``consumers`` are the numbers of examined instances and consumers.
    ``in_flight`` are the uuids of instances with an operation in progress. ``silent`` are the names
    of cells that did not respond; their instances were not examined.
    """

    findings: tuple[Finding, ...]
    instances: int
    consumers: int
    in_flight: frozenset[str]
    silent: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeptRoom:
    """A consumer in placement that keeps room for a future server.

    ``hold`` is the uuid of the request for room, and ``host`` the name of the host. ``is_kept`` is
    true while the consumer should have an allocation. ``has_ended`` is true once the consumer
    should have none. Both are false while moves make the room.
    """

    hold: str
    host: str
    is_kept: bool
    has_ended: bool


def audit(holdings: Holdings, nova: NovaRecords, limits: AuditLimits,
          track: Callable[..., Iterable] = untracked,
          rooms: Callable[[], Mapping[str, KeptRoom] | None] = dict,
          is_room: Callable[[str], bool] = lambda uuid: False) -> Audit:
    """Examine the allocations of all instances, and all consumers with allocations on compute
    nodes.

    The caller has to read ``holdings`` before the call, because Nova's records are read during the
    call. If an operation changes allocations between the two readings, Nova's records then show the
    operation as in progress. Instances of cells that do not respond are not examined. While a cell
    does not respond, no consumer is reported as unknown, because the consumer may belong to an
    instance of this cell.

    :param track: function that displays the progress, with the parameters and result of
        :func:`kronos_nova.placement.holdings.untracked`
    :param rooms: callable that returns the consumers that keep room, by uuid. The callable returns
        None if these consumers are unknown; no consumer that keeps room is then examined
    :param is_room: callable that returns whether a consumer has allocations that keep room
    """
    records, kept = nova.read(), rooms()
    known = records.instances.keys()
    holders = nova.migrations(holdings.consumers.keys() - known)
    migrations = {**holders, **records.migrations}
    by_instance = collections.defaultdict(list)
    for migration in migrations.values():
        by_instance[migration.instance_uuid].append(migration)
    unknown = _on_hosts(holdings, records.hosts) - known - migrations.keys()
    absent = by_instance.keys() - known
    deleted = nova.deleted(unknown | absent)
    if records.silent:  # the other instances may be in the cell that did not answer
        absent &= deleted
    findings, in_flight = [*_rooms(kept or {}, holdings, is_room)], set()
    judged = sorted(known | absent | (unknown & deleted))
    for uuid in track(judged, total=len(judged), description='Instances'):
        case = AuditCase(uuid=uuid, instance=records.instances.get(uuid),
                    held=holdings.consumers.get(uuid, {}),
                    migrations=tuple((each, holdings.consumers.get(each.uuid, {}))
                                     for each in by_instance[uuid]))
        if is_in_flight(case, limits):
            in_flight.add(uuid)
        finding = judge_exactly(case, nova, holdings, limits)
        if finding is not None:
            findings.append(finding)
    if not records.silent:  # the consumers may belong to instances of the cell that did not answer
        strangers = unknown - deleted - (kept or {}).keys()
        findings.extend(_strangers(strangers - nova.building(strangers), is_room, kept is not None))
    return Audit(findings=tuple(findings), instances=len(records.instances),
                 consumers=len(holdings.consumers), in_flight=frozenset(in_flight),
                 silent=records.silent)


def is_in_flight(case: AuditCase, limits: AuditLimits) -> bool:
    """Return True if an operation that may change the allocations of the case is in progress, else
    False."""
    if any(migration.settled_for < limits.grace for migration, _held in case.migrations):
        return True
    instance = case.instance
    if instance is None:
        return False
    return (instance.task_state is not None or instance.vm_state in ('building', 'resized') or
            instance.settled_for < limits.grace or
            any(_goes_on(migration, instance, limits) for migration, _held in case.migrations))


def _goes_on(migration: Migration, instance: InstanceRecord, limits: AuditLimits) -> bool:
    """Return True if a migration may still use the hosts of an instance that has no task_state.
    Return False otherwise. Such a migration may be in progress, because a migration continues after
    an operator has reset the state of its instance.

    The result is True for:

    * a live migration whose instance is still on the source
    * a cold migration or resize in progress. It fails at its end, but copies disks until then.

    The result is False for:

    * a resize that waits for its confirmation, because it no longer changes the host
    * a migration that has ended
    * a migration whose record has not changed for ``stalled`` seconds, because it counts as ended
    """
    if (migration.has_ended or migration.status == FINISHED or
            migration.settled_for >= limits.stalled):
        return False
    return migration.kind != LIVE or migration.source == instance.host


def judge_exactly(case: AuditCase, nova: NovaRecords, holdings: Holdings,
                  limits: AuditLimits) -> Finding | None:
    """Return the finding of a case, based on the exact amounts that the instance requests; None if
    there is no finding.

    Nova's records may not have the exact amounts. If the finding of :func:`judge` depends on
    amounts, the requested amounts are read from Nova and Neutron, which takes a few requests. If
    the amounts cannot be read, no error is raised, and the finding names the problem.
    """
    finding = judge(case, holdings, limits)
    if finding is None or not (finding.kind == MISMATCHED or finding.kind in (LEAKED, DOUBLED)
                               and _is_held_twice(case, holdings)):
        return finding
    try:
        asks_for = nova.asks_for(case.uuid)
    except exception.InventoryError as error:
        return Finding(kind=STALLED, instance=case.uuid, host=finding.host,
                       evidence=f'the amounts that it requests are not known. {error}',
                       remedy='correct what is named and repeat the audit')
    assert case.instance is not None
    findings = [judge(dataclasses.replace(case, instance=dataclasses.replace(
        case.instance, asks_for=asked)), holdings, limits) for asked in asks_for]
    return findings[0] if findings and all(findings) else None


def judge(case: AuditCase, holdings: Holdings, limits: AuditLimits) -> Finding | None:
    """Return the finding of one case. Return None if the allocations of the case are right, or if
    an operation in progress may still change them."""
    if is_in_flight(case, limits):
        return _stalled(case, limits)
    if case.instance is None or case.instance.host is None:
        return _nowhere(case)
    if case.instance.root is None:
        return Finding(
            kind=STALLED, instance=case.uuid, host=case.instance.host,
            evidence=f'runs on {case.instance.host}, of which Nova has no compute node record',
            remedy=f'start nova-compute on {case.instance.host} again and repeat the audit')
    return _placed(case, case.instance, case.instance.root, holdings)


def _placed(case: AuditCase, instance: InstanceRecord, root: str,
            holdings: Holdings) -> Finding | None:
    own = holdings.on_tree(case.held, root)
    shared = holdings.shared(case.held, root)
    elsewhere = off(case.held, {**own, **shared})
    holders = [(migration, held) for migration, held in case.migrations if held]
    emptied: dict[str, Allocations] = {migration.uuid: {} for migration, _held in holders}
    made = functools.partial(Finding, instance=case.uuid, host=instance.host)
    if own and not elsewhere and not holders:
        return _mismatched(case, instance, {**own, **shared})
    there: dict[str | None, Allocations] = {None: {**own, **shared}} if own else {}
    for migration, held in holders:
        on_host = holdings.on_tree(held, root)
        if on_host:
            there[migration.uuid] = before_move(
                shared, {**on_host, **holdings.shared(held, root)}, holdings.sharing)
    # A failed resize on the same host may have left the instance resources that it does not
    # request.
    right = min(there, key=lambda uuid: _distance(there[uuid], instance.asks_for), default=None)
    if own:
        return made(
            kind=DOUBLED if elsewhere else LEAKED,
            evidence=f'runs on {instance.host} and holds its allocation there; '
                     f'{_held_elsewhere(elsewhere, holders)} as well',
            remedy=f'keep only what it holds on {instance.host}' if right is None
            else _give_back(right, instance.host) + ', which is what it asks for',
            wanted={**emptied, case.uuid: there[right]})
    kind = MISPLACED if elsewhere else MISSING
    evidence = (f'runs on {instance.host} and holds nothing there; '
                f'{_held_elsewhere(elsewhere, holders)}')
    if right is not None:
        return made(kind=kind, evidence=evidence, remedy=_give_back(right, instance.host),
                    wanted={**emptied, case.uuid: there[right]})
    return made(kind=kind, evidence=evidence, needs_candidate=case.uuid,
                remedy=f'allocate on {instance.host} what its flavor asks for',
                wanted={**emptied, case.uuid: shared})


def _is_held_twice(case: AuditCase, holdings: Holdings) -> bool:
    """Return True if the instance and one of its migrations both have allocations on the instance's
    host; else False."""
    return case.instance is not None and case.instance.root is not None and all((
        holdings.on_tree(case.held, case.instance.root),
        any(holdings.on_tree(held, case.instance.root) for _migration, held in case.migrations)))


def _give_back(migration_uuid: str, host: str | None) -> str:
    return f'give it back what migration {migration_uuid} holds on {host}'


def _distance(held: Allocations, asked: Mapping[str, int] | None) -> int:
    """Return a measure of the difference between allocated and requested amounts. The measure is
    the number of pairs (resource class, amount) that are either only allocated or only requested.
    Return 0 if the requested amounts are unknown."""
    if asked is None:
        return 0
    return len({*totals(held).items()} ^ {each for each in asked.items() if each[1]})


def _mismatched(case: AuditCase, instance: InstanceRecord, held: Allocations) -> Finding | None:
    """Return the finding for an instance whose allocated amounts differ from its requested amounts;
    None if the amounts match. If Nova's records do not have the requested amounts, return a finding
    in which the requested amounts are empty; :func:`judge_exactly` then reads the amounts. The
    caller has checked that the allocations are on the right providers."""
    if instance.asks_for is None:
        asked = {}
    else:
        asked = {name: amount for name, amount in instance.asks_for.items() if amount}
        if not _differences(held, asked):
            return None
    wanted = _corrected(held, asked)
    missing = asked.keys() - classes(wanted)
    return Finding(
        kind=MISMATCHED, instance=case.uuid, host=instance.host,
        evidence=f'holds {_amounts(totals(held))} on {instance.host} and asks for '
                 f'{_amounts(asked)}',
        remedy=f'let it hold what it asks for on {instance.host}',
        wanted={case.uuid: wanted}, needs_candidate=case.uuid if missing else None,
        differing=frozenset(_differences(held, asked)))


def _differences(held: Allocations, asked: Mapping[str, int]) -> set[str]:
    """Return the resource classes whose allocated amount differs from the requested amount. A class
    that was not requested is included only if it is in EVERY_SERVER (CPUs, memory and disk). Any
    other class may have been requested by a service other than Nova and Neutron."""
    now = totals(held)
    return {name for name in {*asked, *(now.keys() & EVERY_SERVER)}
            if now.get(name, 0) != asked.get(name, 0)}


def _corrected(held: Allocations, asked: Mapping[str, int]) -> Allocations:
    """Return the allocations ``held`` with corrected amounts. If the amount of a resource class is
    wrong and only one provider has the class, the class gets the requested amount. If several
    providers have the class, the class is removed from the allocations.

    A class outside EVERY_SERVER is also removed if less is allocated than requested. The instance
    may have had several allocations of the class, such as one for each port, and have lost some.
    """
    wrong = _differences(held, asked)
    corrected = {}
    for uuid, amounts in held.items():
        right = {name: amount for name, amount in amounts.items() if name not in wrong}
        for name in wrong & amounts.keys():
            is_alone = sum(name in each for each in held.values()) == 1
            is_whole = name in EVERY_SERVER or asked.get(name, 0) < amounts[name]
            if asked.get(name) and is_alone and is_whole:
                right[name] = asked[name]
        if right:
            corrected[uuid] = right
    return corrected


def _amounts(amounts: Mapping[str, int]) -> str:
    return ' '.join(f'{name}={amount}' for name, amount in sorted(amounts.items())) or 'nothing'


def _nowhere(case: AuditCase) -> Finding | None:
    holders = [(migration, held) for migration, held in case.migrations if held]
    if not case.held and not holders:
        return None
    why = 'is on no host' if case.instance else 'is deleted'
    return Finding(
        kind=LEAKED, instance=case.uuid, evidence=f'{why}; {_held_elsewhere(case.held, holders)}',
        remedy='remove what is held for it',
        wanted={**({case.uuid: {}} if case.held else {}),
                **{migration.uuid: {} for migration, _held in holders}})


def _stalled(case: AuditCase, limits: AuditLimits) -> Finding | None:
    """Return the finding for a live migration that has stalled; None if no migration has stalled. A
    migration has stalled if its record has not changed for ``stalled`` seconds, or for ``grace``
    seconds while the nova-compute of its source is down. The finding has no repair, because only
    the hosts know whether the guest is still migrating."""
    for migration, _held in case.migrations:
        if migration.has_ended or migration.kind != LIVE or migration.settled_for < limits.grace:
            continue
        if migration.is_source_up and migration.settled_for < limits.stalled:
            continue
        return Finding(
            kind=STALLED, instance=case.uuid, host=migration.source,
            evidence=f'live migration {migration.uuid} from {migration.source} is '
                     f'{migration.status} for {migration.settled_for:.0f} s'
                     f'{"" if migration.is_source_up else " and its nova-compute is down"}',
            remedy=f'start nova-compute on {migration.source} again, which ends it, and repeat '
                   f'the audit')
    return None


def _strangers(uuids: Iterable[str], is_room: Callable[[str], bool],
               are_rooms_known: bool) -> Iterable[Finding]:
    for uuid in sorted(uuids):
        if not is_room(uuid):
            yield Finding(kind=UNKNOWN, instance=uuid,
                          evidence='holds allocations on compute nodes but Nova has no record of '
                                   'such an instance or migration',
                          remedy='remove them with --unknown, if no other service made them',
                          wanted={uuid: {}})
        elif are_rooms_known:
            yield Finding(kind=LEAKED, instance=uuid, is_room=True, wanted={uuid: {}},
                          evidence='keeps room for a server to come, of which the control database '
                                   'has no record', remedy='remove what it holds')


def _rooms(rooms: Mapping[str, KeptRoom], holdings: Holdings,
           is_room: Callable[[str], bool]) -> Iterable[Finding]:
    for uuid, room in sorted(rooms.items()):
        is_held = bool(holdings.consumers.get(uuid))
        if is_held and room.has_ended:
            yield Finding(kind=LEAKED, instance=uuid, host=room.host, is_room=True,
                          evidence=f'keeps room {room.hold}, which has ended',
                          remedy='remove what it holds', wanted={uuid: {}})
        elif room.is_kept and not is_held and not is_room(uuid):
            yield Finding(kind=MISSING, instance=uuid, host=room.host, is_room=True,
                          evidence=f'is to keep room {room.hold}, and holds nothing',
                          remedy='the next evaluation of its aggregate allocates it again, or '
                                 f'counts the server that has come: "room show {room.hold}"')


def _on_hosts(holdings: Holdings, hosts: Mapping[str, str]) -> set[str]:
    return {uuid for uuid, held in holdings.consumers.items()
            if any(holdings.roots.get(provider) in hosts for provider in held)}


def _held_elsewhere(elsewhere: Allocations,
                    holders: Iterable[tuple[Migration, Allocations]]) -> str:
    """Return a text that describes the allocations ``elsewhere`` of an instance, and the
    allocations of its migrations.

    :param holders: (migration, allocations of the migration) of each migration with allocations
    """
    parts = []
    if elsewhere:
        parts.append('it holds ' + _listed(elsewhere))
    parts += [f'its {migration.status} {migration.kind} {migration.uuid} holds {_listed(held)}'
              for migration, held in holders]
    return ', '.join(parts) or 'nothing is held for it elsewhere'


def _listed(allocations: Allocations) -> str:
    return ', '.join(
        f'{" ".join(f"{name}={amount}" for name, amount in sorted(held.items()))} on {provider}'
        for provider, held in sorted(allocations.items()))
