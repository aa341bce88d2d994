"""Checks, requests and releases of drains, for commands and the API."""

import collections
import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable

from oslo_config import cfg
from oslo_utils import uuidutils

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cycle import loss_rule
from kronos_nova.cycle import options as engine_options
from kronos_nova.cycle.aggregates import aggregates_in_scope
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.ports import CycleRules
from kronos_nova.db import journal
from kronos_nova.db.cooldowns import Cooldowns
from kronos_nova.db.drains import Drains
from kronos_nova.db.engine import Database
from kronos_nova.db.holds import Holds
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.drain import planning
from kronos_nova.drain import states as drains
from kronos_nova.engine import cycle_scheduler
from kronos_nova.executor import progress
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.objects import maintenance
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.room import holding

Checked = tuple[str, list[drains.Drain], planning.DrainPlan]
"""(name of an aggregate, requested Drains of its hosts, DrainPlan for them)"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of a request to drain hosts. ``who`` is the operator; all other fields are as in
    :class:`kronos_nova.drain.states.Drain`."""

    who: str
    reason: str = ''
    with_stopped: bool = False
    unmovable: str = drains.LEAVE
    parallel: int | None = None
    deadline: datetime.datetime | None = None
    keep_spare: int = 0

    def to_drain(self, host: str) -> drains.Drain:
        """Make the Drain of a host with these options. The caller sets the aggregate of the Drain
        later."""
        return drains.Drain(
            uuid=uuidutils.generate_uuid(), host=host, aggregate='', state=drains.REQUESTED,
            requested_by=self.who, requested_at=clock.utcnow(), reason=self.reason,
            with_stopped=self.with_stopped, unmovable=self.unmovable, parallel=self.parallel,
            deadline=self.deadline, keep_spare=self.keep_spare)


class Checker:
    """A planner of the moves by which some hosts are emptied together. The plans show whether all
    of the hosts can be emptied.

    :param read: function that reads the present cloud and returns a Snapshot
    :param planner_ports: function that makes the PlannerPorts
    """

    def __init__(self, conf: cfg.ConfigOpts, database: Database, read: Callable[[], Snapshot],
                 planner_ports: Callable[[], PlannerPorts]):
        self.conf = conf
        self.database = database
        self._read = read
        self._planner_ports = planner_ports

    def check(self, wanted: Iterable[drains.Drain],
              snapshot: Snapshot | None = None) -> tuple[Snapshot, list[Checked]]:
        """Return the plans of some drains, without requesting the drains.

        :param wanted: the drains; the method determines the aggregate of each drain
        :param snapshot: present cloud; None to read it
        :returns: (Snapshot, [(aggregate, its Drains, DrainPlan), ...])
        :raises NotInScope: a host is in no aggregate that Kronos plans
        :raises PoliciesUnreadable: the policies file cannot be read
        """
        snapshot, by_aggregate = snapshot or self._read(), collections.defaultdict(list)
        snapshot = holding.with_held(snapshot, Holds(self.database).in_force(),
                                     engine_options.packs_numa_cells(self.conf))
        for each in wanted:
            name = planning.in_scope(snapshot, aggregates_in_scope(self.conf), each.host)
            by_aggregate[name].append(dataclasses.replace(
                each, aggregate=name, requested_at=self.database.utcnow()))
        options, planner_ports = engine_options.from_conf(self.conf), self._planner_ports()
        found_before, now = journal.Journal(self.database, 'observer'), self.database.utcnow()
        rules = CycleRules.from_conf(self.conf)
        tries = found_before.tries(now - datetime.timedelta(seconds=rules.experience_window))
        refused_hosts = found_before.refused_since(
            now - datetime.timedelta(seconds=rules.rejection_backoff))
        quarantines = Cooldowns(self.database).quarantined(now)
        return snapshot, [
            (name, found, planning.plan(snapshot, self._policies(), options, planner_ports, name,
                                        found, tries=tries, quarantines=quarantines,
                                        refused_hosts=refused_hosts))
            for name, found in sorted(by_aggregate.items())]

    def lowered_failover(self, snapshot: Snapshot, checked: Iterable[Checked]) -> str:
        """Return a sentence about the hosts and failure domains that are protected at present, but
        not after the drains. A host or domain is protected if all of its servers could restart
        elsewhere after its failure.
        The sentence is '' if there is no such host or domain, or if ``failover_hosts`` and
        ``failover_domains`` are not set. If there is a sentence, the drains need ``force``.

        :param checked: result of :meth:`check`
        """
        hosts = {each.host for _name, found, _plan in checked for each in found}
        lost = loss_rule.lost_by_emptying(
            snapshot, hosts, [move for _name, _found, plan in checked
                              for move in plan.report.moves],
            self._policies(), engine_options.from_conf(self.conf), self._planner_ports())
        if not lost:
            return ''
        more = f'; the same holds for {len(lost) - 1} more' if lost[1:] else ''
        return (f'After this drain, the servers of {lost[0]} could not all restart elsewhere if it '
                f'failed{more} ([kronos] failover_hosts, failover_domains).')

    def _policies(self) -> policies.PolicySet:
        return policies.load_for_request(self.conf.kronos.policies_file)

    def seconds(self, moves: Collection[PlannedMove], parallel: int | None) -> float | None:
        """Return the expected seconds until all of the planned moves have ended; None if there are
        no moves, or if the duration of a move is not known.

        :param parallel: maximum number of concurrent moves off a host; None for the number that
            ``max_concurrent_per_source`` permits
        """
        conf = self.conf
        caps = dataclasses.replace(ExecutorOptions.from_conf(conf).caps, sources={
            move.source: parallel for move in moves} if parallel else {})
        found = progress.remaining_seconds(
            moves, tuple, caps, self.database.utcnow(), between=conf.kronos_executor.poll_interval)
        return found + cycle_scheduler.SOON if moves and found is not None else None


def down(snapshot: Snapshot, hosts: Iterable[str]) -> list[str]:
    """Return the names of the hosts in ``hosts`` that have servers and whose nova-compute is down.
    The servers of these hosts cannot be migrated."""
    wanted, full = {*hosts}, {server.host for server in snapshot.instances}
    return [host.name for host in snapshot.hosts
            if host.name in wanted & full and host.service.state != 'up']


def begin(database: Database, snapshot: Snapshot, checked: Iterable[Checked],
          force: bool = False, lowered: str = '') -> list[drains.Drain]:
    """Request the drains of hosts and return the drains. If one drain is refused, no drain is
    requested.

    :param checked: result of :meth:`Checker.check`
    :param force: True to drain the hosts even if a check refuses the drains
    :param lowered: result of :meth:`Checker.lowered_failover`
    :raises HostDown: nova-compute of a host is down, so that no server can be migrated off the host
    :raises DrainPending: a host is being drained, or waits to be released
    :raises DrainRefused: without force: no server can leave, an aggregate would have no host left,
        or the servers of another host could no longer restart elsewhere after a failure
    """
    wanted = [each for _name, found, _plan in checked for each in found]
    for host in down(snapshot, [each.host for each in wanted]):
        raise exception.HostDown(host=host)

    def refuse(drained: Collection[str]) -> None:
        reason = '' if force else refusal(snapshot, checked, drained) or lowered
        if reason:
            raise exception.DrainRefused(reason=reason)
    Drains(database).request(wanted, refuse)
    return wanted


def drained(database: Database) -> set[str]:
    """Return the names of the hosts that are drained or being drained."""
    return {each.host for each in Drains(database).in_states((*drains.ACTIVE, *drains.OVER))}


def refusal(snapshot: Snapshot, checked: Iterable[Checked], drained: Collection[str]) -> str:
    """Return a sentence with the reason why some drains need ``force``; '' if the drains do not
    need ``force``. One reason is that an aggregate would have no host left that takes servers. The
    other reason is that no server can leave the hosts.

    :param drained: names of hosts that are drained already
    """
    without = without_hosts(snapshot, checked, drained)
    if without:
        return without
    for _name, found, plan in checked:
        hosts = {each.host for each in found}
        # A server that is migrating elsewhere, or will be stopped, is not blocked.
        left = sum(plan.left[host] for host in hosts)
        if left and left == sum(len(plan.blocked.get(host, ())) for host in hosts):
            return f'No server can leave {", ".join(sorted(hosts))}.'
    return ''


def without_hosts(snapshot: Snapshot, checked: Iterable[Checked],
                  drained: Collection[str]) -> str:
    """Return a sentence about an aggregate in which no host would take servers after the drains; ''
    if there is no such aggregate.

    :param drained: names of hosts that are drained already
    """
    for name, found, _plan in checked:
        hosts = {each.host for each in found}
        if not {host.name for host in snapshot.hosts if host.name in snapshot.hosts_of(name)
                and host.service.is_available} - hosts - {*drained}:
            return f'Aggregate {name} would have no host left that takes servers.'
    return ''


def releasable(database: Database, host: str) -> drains.Drain:
    """Return the newest drain of a host, if this drain may be released.

    :raises DrainNotFound: Kronos has not drained the host
    :raises HostInService: the host is being serviced in a maintenance
    """
    found, current = Drains(database).latest(host), Maintenances(database).current()
    if found is None:
        raise exception.DrainNotFound(host=host)
    if current is not None and current.hosts.get(host) == maintenance.HOOK:
        raise exception.HostInService(
            what=f'Host {host}', problem='is being serviced in a maintenance',
            remedy='When the host is ready for servers again, run "kronos-manage maintenance done '
                   f'{host}". To give up the maintenance, run "kronos-manage maintenance end".')
    return found


def release(known: Drains, drain: drains.Drain, who: str) -> None:
    """Request the release of a drained host, and end the moves of the drain. After the request, a
    worker enables the host.

    :param known: Drains of the control database
    :param who: operator
    """
    # A released drain may be released again: a worker may have died between the request to Nova and
    # its record.
    known.end(drain, (*drains.ACTIVE, *drains.OVER, drains.RELEASED), drains.RELEASING,
              known.database.utcnow(), who)


def leaving(plan: planning.DrainPlan, host: str) -> list:
    """Return the planned moves of a DrainPlan off one host."""
    return [move for move in plan.report.moves if move.source == host]


def destinations(moves: Iterable[PlannedMove]) -> dict[str, int]:
    """Return {host: number of the moves that end there}, sorted by the name of the host."""
    return dict(sorted(collections.Counter(move.destination for move in moves).items()))
