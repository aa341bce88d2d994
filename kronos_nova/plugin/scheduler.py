"""nova-scheduler with Kronos. Its manager, filter and weigher use measured load, operators' rules,
reserved room and the list of hosts that are being emptied.

The manager reads these data every few seconds. The filter and the weigher only use the data that
were read, so that scheduling never waits for another database.
"""

import datetime
import functools
import threading
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import nova.conf
from nova.scheduler import filters
from nova.scheduler import manager
from nova.scheduler import weights
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_service import periodic_task

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.conf import invalid_values
from kronos_nova.db import engine as db_engine
from kronos_nova.db import holds as db_holds
from kronos_nova.db import journal
from kronos_nova.db import schedulers
from kronos_nova.db import scores
from kronos_nova.db import worker
from kronos_nova.objects import snapshot
from kronos_nova.objects.hold import Hold
from kronos_nova.objects.snapshot import DEFAULT_ZONE
from kronos_nova.plugin import held_room
from kronos_nova.plugin.fixes import request_clock
from kronos_nova.plugin.nova_types import HostState
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import RequestSpec
from kronos_nova.plugin.nova_types import WeighedHost
from kronos_nova.policies import requests

CONF = nova.conf.CONF
# The filter and the weigher may be named in nova.conf without the notification driver.
kronos_conf.register_opts(CONF)
LOG = logging.getLogger(__name__)
_wrong = invalid_values.values(CONF)
if _wrong:  # they are read with every request
    invalid_values.use_defaults(CONF, _wrong)
    LOG.error('Options of Kronos in nova.conf are invalid, and their defaults are used until they '
              'are corrected and this service is restarted: %s', invalid_values.described(_wrong))

EXPECTED = {
    **held_room.EXPECTED,
    'nova.scheduler.manager:SchedulerManager.__init__': ('self', 'args', 'kwargs'),
    'nova.scheduler.filters:BaseHostFilter.host_passes': None,
    'nova.scheduler.weights:BaseHostWeigher': None,
}


class LastRead:
    """The data that the manager read last, for the filter and the weigher.

    scores : {host: weighted sum of its scores}; in the mode ``pack``, the sum is negated. Hosts
        with lower values are preferred
    emptied : names of the hosts that are being emptied
    rules : RequestRules of operators
    held : HeldRoom, the room that is reserved for future servers
    """

    def __init__(self) -> None:
        self.rules = requests.RequestRules()
        self.forget()

    def forget(self) -> None:
        """Drop scores, emptied hosts and holds, which come from the control database. The rules of
        operators are kept."""
        self.scores: dict[str, float] = {}
        self.emptied: frozenset[str] = frozenset()
        self.held = held_room.HeldRoom()

    def update(self, combined: Mapping[str, tuple[str, float]], emptied: Iterable[str],
               holds: Iterable[Hold]) -> None:
        """Replace scores, emptied hosts and holds (reservations of room) by new ones.

        :param combined: {host: (mode, such as ``pack``; weighted sum of its scores)}
        :param holds: the Holds in force now
        """
        self.scores = {host: -value if mode == 'pack' else value
                       for host, (mode, value) in combined.items()}
        self.emptied = frozenset(emptied)
        self.held = held_room.HeldRoom(holds)

    def heed(self, policies_file: str, aggregates: Iterable[snapshot.Aggregate],
             levels: Sequence[str]) -> None:
        """Replace the rules of operators by the rules of a policies file.

        :param levels: metadata keys of aggregates that name failure domains
        :raises PolicyError: the policies file is wrong
        """
        self.rules = requests.RequestRules(policies.load(policies_file).rules, aggregates, levels)

    def score(self, host: str) -> float:
        """Return the score of a host. For a host without a score, return the average of the other
        hosts; 0 if no host has a score."""
        if host in self.scores or not self.scores:
            return self.scores.get(host, 0.0)
        return sum(self.scores.values()) / len(self.scores)


VIEW = LastRead()


LEAVE_SECONDS = 2
"""Maximum seconds for which the shutdown of nova-scheduler waits until the report of the process is
deleted. Raised, an outage of the control database delays the shutdown for longer; lowered, the
report may remain, and ``status`` shows a dead process for an hour. Not measured."""

_reporting = threading.Lock()
"""Lock that is held while the report of this process is made or deleted. A report in progress is
deleted after it is made."""


class KronosSchedulerManager(manager.SchedulerManager):
    """Nova's scheduler with one additional periodic task."""

    _kronos_problems: Sequence[str] = ()
    _kronos_is_leaving = False

    def __init__(self, *args: Any, **kwargs: Any):
        request_clock.install()
        super().__init__(*args, **kwargs)

    @periodic_task.periodic_task(spacing=10, run_immediately=True)
    def kronos_look(self, context: RequestContext) -> None:
        """Read the rules of operators and the control database, and record whether this process has
        KronosFilter. If the control database does not answer, the filter and the weigher work
        without scores, emptied hosts and reserved room. If the rules cannot be read, the earlier
        rules stay in force."""
        self._say([*self._heed_rules(), *self._refresh(), *self._report()])

    def set_shutdown_in_progress(self) -> None:
        """Delete the report of this process when Nova begins to stop the process. Nova 33 does not
        call this method."""
        super().set_shutdown_in_progress()
        self._leave()

    def graceful_shutdown(self, *args: Any, **kwargs: Any) -> None:
        """Delete the report of this process when Nova stops the process."""
        self._leave()
        super().graceful_shutdown(*args, **kwargs)

    def _leave(self) -> None:
        if not self._kronos_is_leaving:
            self._kronos_is_leaving = True
            leaving = threading.Thread(target=_withdraw, name='kronos-leave', daemon=True)
            leaving.start()
            leaving.join(LEAVE_SECONDS)

    def _heed_rules(self) -> Iterator[str]:
        """Read the rules of operators, if the option ``heed_rules`` is on. Yield a sentence for the
        log if the rules cannot be read."""
        if not CONF.kronos_scheduler.heed_rules:
            return
        try:
            VIEW.heed(CONF.kronos.policies_file, self._aggregates(), CONF.kronos.failure_domain_key)
        except (exception.KronosException, cfg.Error) as e:
            yield f'The rules that were read before, if any, stay in force until {e} is corrected.'

    @staticmethod
    def _refresh() -> Iterator[str]:
        """Update VIEW, the data of this process for the filter and the weigher, from the control
        database. Yield a sentence for the log if the database cannot be read."""
        try:
            refresh(VIEW, _database(), CONF.kronos_scheduler.score_max_age)
        except (db_exc.DBError, exception.KronosException, cfg.Error) as e:
            VIEW.forget()
            yield ('KronosFilter and KronosWeigher know no load and no host that is emptied until '
                   f'this is corrected: {e}')

    def _report(self) -> Iterator[str]:
        """Record in the control database whether this process has KronosFilter. Yield a sentence
        for the log if this cannot be recorded."""
        try:
            with _reporting:
                if not self._kronos_is_leaving:
                    report(_database(), any(isinstance(each, KronosFilter)
                                            for each in self.host_manager.enabled_filters))
        except (db_exc.DBError, exception.KronosException, cfg.Error) as e:
            yield ('Room is kept by allocations, as if this nova-scheduler had no KronosFilter, '
                   f'until this is corrected: {e}')

    def _aggregates(self) -> list[snapshot.Aggregate]:
        return [snapshot.Aggregate(name=each.name, uuid=each.uuid, hosts=tuple(each.hosts),
                                   metadata=each.metadata)
                for each in self.host_manager.aggs_by_id.values()]

    def _say(self, problems: Sequence[str]) -> None:
        for problem in problems:
            if problem not in self._kronos_problems:
                LOG.warning('Kronos in nova-scheduler: %s', problem)
        self._kronos_problems = problems


def refresh(view: LastRead, database: db_engine.Database, score_max_age: float) -> None:
    """Update a view from the control database: scores of hosts, hosts that are being emptied, and
    holds (reservations of room).

    :param view: LastRead
    :raises DBError: the control database does not answer
    """
    oldest = database.utcnow() - datetime.timedelta(seconds=score_max_age)
    view.update(scores.Scores(database).combined(oldest),
                journal.Journal(database, worker.name(CONF.host)).hosts_being_emptied(),
                db_holds.Holds(database).in_force())


def report(database: db_engine.Database, is_filtering: bool) -> None:
    """Record in the control database that this nova-scheduler process is alive, and whether
    KronosFilter is enabled in the process.

    :param is_filtering: whether KronosFilter is enabled
    :raises DBError: the control database does not answer
    """
    schedulers.Schedulers(database).report(worker.name(CONF.host), is_filtering)


def _withdraw() -> None:
    """Delete the report of this process, or log why it cannot be deleted."""
    try:
        with _reporting:
            schedulers.Schedulers(_database()).withdraw(worker.name(CONF.host))
    except (db_exc.DBError, exception.KronosException, cfg.Error) as e:
        LOG.warning('Kronos in nova-scheduler: status shows this process for an hour after its '
                    'end, because its report cannot be deleted: %s', db_engine.first_line(e))


@functools.cache
def _database() -> db_engine.Database:
    return db_engine.Database(db_engine.control_engine(CONF))


class KronosFilter(filters.BaseHostFilter):
    """A filter of nova-scheduler that keeps servers off certain hosts.

    It refuses hosts that Kronos is emptying, and hosts where the server would take room that is
    reserved for other servers. It also refuses hosts that an operator's rule forbids for the
    server. A host that the request names is not refused.
    """

    RUN_ON_REBUILD = False

    def filter_all(self, filter_obj_list: Iterable[HostState],
                   spec_obj: RequestSpec) -> Iterator[HostState]:
        """Filter all hosts at once, so that each rule is evaluated only once for a request."""
        passed = list(super().filter_all(filter_obj_list, spec_obj))
        refused = VIEW.rules.refused(requested_server(spec_obj, passed),
                                     [each.host for each in passed])
        return (each for each in passed
                if each.host not in refused or _requests_host(spec_obj, each.host))

    def host_passes(self, host_state: HostState, spec_obj: RequestSpec) -> bool:
        return (host_state.host not in VIEW.emptied and _leaves_room(host_state, spec_obj)
                or _requests_host(spec_obj, host_state.host))


def _leaves_room(host_state: HostState, spec_obj: RequestSpec) -> bool:
    """Return True if a host still has its reserved room after the server is started there. If an
    error occurs, the result is True as well, because an error of Kronos must not keep servers from
    being started."""
    try:
        return VIEW.held.leaves_room(host_state, spec_obj)
    except Exception:
        LOG.exception('Host %s is accepted for a new server, although KronosFilter could not check '
                      'whether the server would use room that is kept for other servers. '
                      '"kronos-manage room list" shows kept room.', host_state.host)
        return True


def _requests_host(spec_obj: RequestSpec, host: str) -> bool:
    if host in (spec_obj.force_hosts or ()):
        return True
    target = spec_obj.requested_destination
    return bool(target and 'host' in target and target.host == host)


def requested_server(spec_obj: RequestSpec,
                     host_states: Iterable[HostState] = ()) -> requests.RequestedServer:
    """Return the RequestedServer of a RequestSpec.

    :param host_states: HostStates of the request, one of which may be that of the server's present
        host
    """
    group, image = spec_obj.instance_group, spec_obj.image
    properties = image.properties if image and 'properties' in image else None
    names = [getattr(group, key) for key in ('uuid', 'name') if group and key in group]
    hosts = group.hosts if group and 'hosts' in group else None
    own = _own_hosts(spec_obj, host_states) if hosts else frozenset()
    return requests.RequestedServer(
        uuid=spec_obj.instance_uuid or '', project=spec_obj.project_id or '',
        flavor=spec_obj.flavor.name,
        image={} if properties is None else {
            key: str(value) for key, value in properties.to_dict().items()},
        groups=tuple(names), others=tuple(host for host in hosts or () if host not in own),
        zone=spec_obj.availability_zone or DEFAULT_ZONE)


def _own_hosts(spec_obj: RequestSpec, host_states: Iterable[HostState]) -> set[str]:
    """Return the hosts that do not count as hosts of other members of a server's group, although
    Nova lists them as hosts of the group:

    * the hosts where the server itself is the only known member of the group; Nova counts the
      server among the members
    * the hosts that the request ignores, such as the host that the server has to leave; Nova never
      selects these hosts
    """
    group = spec_obj.instance_group
    members = {*(group.members if 'members' in group else ()), spec_obj.instance_uuid}
    return {*(spec_obj.ignore_hosts or ()),
            *(each.host for each in host_states
              if members & each.instances.keys() == {spec_obj.instance_uuid})}


class KronosWeigher(weights.BaseHostWeigher):
    """A weigher of nova-scheduler that prefers hosts whose measured load is low. If Kronos packs
    load on few hosts, the weigher prefers hosts whose load is high.

    If the server would violate preferences of operators on a host, the weight of the host is
    lowered by the sum of the costs of these preferences. This is so for any sign of the
    ``weight_multiplier``.
    """

    def weight_multiplier(self, host_state: HostState) -> float:
        return CONF.kronos_scheduler.weight_multiplier

    def weigh_objects(self, weighed_obj_list: Sequence[WeighedHost],
                      weight_properties: RequestSpec) -> list[float]:
        """Weigh all hosts at once, so that each rule is evaluated only once for a request."""
        weights = super().weigh_objects(weighed_obj_list, weight_properties)
        hosts = [each.obj for each in weighed_obj_list]
        costs = VIEW.rules.costs(requested_server(weight_properties, hosts),
                                 [each.host for each in hosts])
        # Nova multiplies the result, and a negative multiplier must not turn preferences around.
        sign = -1 if CONF.kronos_scheduler.weight_multiplier < 0 else 1
        return [weight - sign * cost for weight, cost in zip(weights, costs, strict=True)]

    def _weigh_object(self, host_state: HostState, weight_properties: RequestSpec) -> float:
        return -VIEW.score(host_state.host)
