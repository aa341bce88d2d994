"""The tree of the exceptions of Kronos.

::

    KronosException
    ├── ConfigurationError          an option, a file or a schema that an operator must correct
    │   ├── PolicyError             the policy file
    │   ├── SnapshotError           a recorded snapshot
    │   │   └── SnapshotNotFound    no such snapshot
    │   ├── RequestRefused          a request names an unknown object, or is not permitted
    │   │   ├── NotInScope          an aggregate or a host that Kronos does not balance
    │   │   ├── PoliciesUnreadable  the policy file cannot be read now, so its rules are not known
    │   │   ├── HostNotFound        there is no such host
    │   │   └── HostInService       a host that a maintenance is servicing
    │   ├── DatabaseVersionError    a database older or newer than this code
    │   └── ClockSkewed             the clock of this host differs from the control database's
    ├── MetricsError                a metrics source gave no usable answer
    │   ├── MetricsMisconfigured    a file that an option names cannot be used
    │   ├── MetricsUnreachable      no connection
    │   ├── MetricsTimeout          no complete answer within the timeout
    │   ├── MetricsUntrusted        no trusted TLS connection, or http where TLS is needed
    │   ├── MetricsUnavailable      the source answers that it cannot serve now
    │   ├── MetricsDenied           the credentials are refused
    │   │   └── MetricsTenantMissing    the source has several tenants, and the request named none
    │   ├── MetricsRequestRefused   a proxy permits no such method or length
    │   ├── MetricsRedirected       the source redirects the request, usually to a login
    │   ├── MetricsNotFound         there is no Prometheus API at that URL
    │   ├── MetricsTooLarge         the answer is over the size limit
    │   ├── MetricsNotUnderstood    the answer is not the API's JSON
    │   ├── MetricsQueryRefused     the PromQL is wrong or cannot be computed
    │   │   └── MetricsLimitExceeded    the query needs more than the source permits
    │   ├── MetricsPartial          the source says that its answer is incomplete
    │   │   └── MetricsHistoryPartial   an incomplete answer about past hours, which cannot be used
    │   └── MetricsNotAVector       the PromQL gives a scalar, a matrix or histograms
    ├── ReplayBusy                  another replay of a snapshot is in progress
    ├── ReplayTooLarge              a replay takes more time or memory than it may
    ├── TooManyListeners            the maximum number of clients already listens to events
    ├── InventoryError              Nova could not be read
    ├── PlacementError              placement refused or did not answer
    ├── RepairUnrecorded            the end of a repair of allocations could not be recorded
    ├── ClaimError                  the claims of a compute node cannot be read or changed
    ├── JournalError                the state of a plan, drain or other object forbids the request
    │   ├── DrainNotFound           the host has no drain
    │   ├── HoldNotFound            there is no such request for room
    │   ├── HoldNotWaiting          the request for room is not proposed, or has ended
    │   ├── DrainPending            the host is being drained or released
    │   ├── DrainRefused            the drain would empty no host, or leave an aggregate no host
    │   ├── HostDown                nothing can be migrated off the host
    │   ├── IllegalTransition       the state of the move does not permit the new state
    │   ├── IllegalPlanTransition   the state of the plan does not permit the new state
    │   ├── IllegalDrainTransition  the state of the drain does not permit the new state
    │   ├── IllegalHoldTransition   the state of the request for room does not permit the new state
    │   ├── MaintenanceNotFound     no maintenance is in progress
    │   ├── MaintenancePending      another maintenance has not ended
    │   ├── MaintenanceRunning      another process runs the maintenance
    │   ├── MoveHeld                the move may not be started now
    │   ├── MoveLost                another worker owns the move now
    │   ├── MoveNotFound            there is no such move
    │   │   └── MoveEnded           the move has ended
    │   ├── PlanNotFound            there is no such plan
    │   │   └── PlanNotWaiting      the plan does not wait for approval
    │   ├── PlanPending             the aggregate has an open plan
    │   ├── QuarantineNotFound      the instance is in no quarantine
    │   ├── ServerNotFound          no server of that name or uuid is known
    │   │   └── ServerAmbiguous     several servers have that name
    │   └── TaskLost                another worker has ended the migration this worker prepares
    └── MoveError                   one move did not succeed
        ├── PlanOutdated            the cloud has changed since the move was planned
        ├── PreFlightError          the move was refused before anything changed
        ├── MigrationFailed         Nova ended the migration without success
        ├── MigrationTimeout        the migration took longer than permitted
        └── NovaClientError         Nova did not answer, which says nothing about the instance
            └── NovaUnavailable     a service that a move needs is down; not counted as a try

Code raises the specific exceptions and catches the general ones. ``error_type`` of a
:class:`MoveError` is part of the API; it is the name of the class unless the class sets another.
"""

import difflib
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any


class KronosException(Exception):  # noqa: N818 - OpenStack's conventional suffix
    """Base of all errors of Kronos.

    ``msg_fmt`` is the text of the error, in which keyword arguments are inserted, as in Nova.
    ``code`` is a stable word by which programs distinguish errors.
    """

    msg_fmt = 'An unknown error occurred.'
    code = 'kronos.unknown'

    def __init__(self, message: str | None = None, **kwargs: Any):
        self.kwargs = kwargs
        super().__init__(message if message is not None else self.msg_fmt % kwargs)


class ConfigurationError(KronosException):
    msg_fmt = '%(what)s: %(problem)s. %(remedy)s'
    code = 'kronos.configuration'


class PolicyError(ConfigurationError):
    """Error raised if a policies file has problems. The message has one line for each problem."""

    code = 'kronos.policies'


class SnapshotError(ConfigurationError):
    msg_fmt = '%(path)s: %(problems)s'
    code = 'kronos.snapshot'


class SnapshotNotFound(SnapshotError):
    msg_fmt = 'There is no snapshot %(snapshot)s.'
    code = 'kronos.snapshot_not_found'


class RequestRefused(ConfigurationError):
    code = 'kronos.request_refused'


class NotInScope(RequestRefused):
    code = 'kronos.not_in_scope'


class PoliciesUnreadable(RequestRefused):
    msg_fmt = ('The request was refused, because the policies file cannot be read, and its rules '
               'are therefore not known: %(problem)s. Correct the file, and try again; '
               'kronos-test-config checks the file.')
    code = 'kronos.policies_unreadable'


class HostNotFound(RequestRefused):
    code = 'kronos.host_not_found'


class HostInService(RequestRefused):
    code = 'kronos.host_in_service'


class DatabaseVersionError(ConfigurationError):
    msg_fmt = ('The %(database)s database is at revision %(found)s, but this release needs '
               'revision %(expected)s. %(remedy)s')
    code = 'kronos.database_version'


class ClockSkewed(ConfigurationError):
    """Error raised if the clock of this host differs from the clock of the control database.

    :param seconds: seconds by which the clock of this host is ahead; negative if it is behind
    """

    msg_fmt = ('The clock of this host is %(seconds).0f s %(direction)s that of the control '
               'database, so that this host plans nothing and continues no moves of other workers. '
               'Synchronise the clock (chrony, ntpd).')
    code = 'kronos.clock_skewed'

    def __init__(self, seconds: float):
        super().__init__(seconds=abs(seconds), direction='ahead of' if seconds > 0 else 'behind')


class MetricsError(KronosException):
    msg_fmt = '%(source)s: %(problem)s'
    code = 'kronos.metrics'


class MetricsMisconfigured(MetricsError):
    msg_fmt = '[kronos_prometheus] %(option)s: %(problem)s'
    code = 'kronos.metrics_misconfigured'


class MetricsUnreachable(MetricsError):
    code = 'kronos.metrics_unreachable'


class MetricsTimeout(MetricsError):
    code = 'kronos.metrics_timeout'


class MetricsUntrusted(MetricsError):
    code = 'kronos.metrics_untrusted'


class MetricsUnavailable(MetricsError):
    code = 'kronos.metrics_unavailable'


class MetricsDenied(MetricsError):
    code = 'kronos.metrics_denied'


class MetricsTenantMissing(MetricsDenied):
    code = 'kronos.metrics_tenant_missing'


class MetricsRequestRefused(MetricsError):
    code = 'kronos.metrics_request_refused'


class MetricsRedirected(MetricsError):
    code = 'kronos.metrics_redirected'


class MetricsNotFound(MetricsError):
    code = 'kronos.metrics_not_found'


class MetricsTooLarge(MetricsError):
    code = 'kronos.metrics_too_large'


class MetricsNotUnderstood(MetricsError):
    code = 'kronos.metrics_not_understood'


class MetricsQueryRefused(MetricsError):
    code = 'kronos.metrics_query_refused'


class MetricsLimitExceeded(MetricsQueryRefused):
    code = 'kronos.metrics_limit_exceeded'


class MetricsPartial(MetricsError):
    msg_fmt = ('%(source)s: the answer is incomplete: %(problem)s. Repair the named part of the '
               'metrics storage. If that part has no data that the policies need, set [kronos] '
               'accept_partial_metrics = true.')
    code = 'kronos.metrics_partial'


class MetricsHistoryPartial(MetricsPartial):
    msg_fmt = ('%(source)s: the answer about past hours is incomplete, so that it is not used: '
               '%(problem)s. Repair the named part of the metrics storage.')


class MetricsNotAVector(MetricsError):
    code = 'kronos.metrics_not_a_vector'


class ReplayBusy(KronosException):
    msg_fmt = 'Another snapshot is being replayed. Try again when that replay has ended.'
    code = 'kronos.replay_busy'


class ReplayTooLarge(KronosException):
    msg_fmt = ('The replay %(problem)s. The command "kronos-replay" replays snapshots without '
               'the limits of [kronos_api].')
    code = 'kronos.replay_too_large'


class TooManyListeners(KronosException):
    msg_fmt = ('No further client may listen to events: [kronos_api] listeners permits %(most)d '
               'clients, and this number is reached. Try again later.')
    code = 'kronos.too_many_listeners'


class InventoryError(KronosException):
    msg_fmt = 'Nova could not be read: %(problem)s'
    code = 'kronos.inventory'


class PlacementError(KronosException):
    msg_fmt = 'Placement: %(problem)s'
    code = 'kronos.placement'


class RepairUnrecorded(KronosException):
    msg_fmt = ('Repair %(repair)s is %(state)s, but the control database could not record this, '
               'and still lists the repair in its state before: %(problem)s')
    code = 'kronos.repair_unrecorded'


class ClaimError(KronosException):
    msg_fmt = 'Claim: %(problem)s'
    code = 'kronos.claim'


class JournalError(KronosException):
    code = 'kronos.journal'


class DrainNotFound(JournalError):
    msg_fmt = 'Host %(host)s was not drained by Kronos.'
    code = 'kronos.drain_not_found'


class DrainPending(JournalError):
    msg_fmt = ('Host %(host)s is being drained or released already. "kronos-manage host status '
               '%(host)s" shows the progress.')
    code = 'kronos.drain_pending'


class DrainRefused(JournalError):
    msg_fmt = '%(reason)s Nothing was changed; "host drain --force" drains nevertheless.'
    code = 'kronos.drain_refused'


class HostDown(JournalError):
    msg_fmt = ('nova-compute on %(host)s is down, so that no server can be migrated off this host. '
               'Start nova-compute; or, once the host is fenced, rebuild its servers elsewhere by '
               '"openstack server evacuate".')
    code = 'kronos.host_down'


class IllegalTransition(JournalError):
    msg_fmt = 'Move %(move)s cannot change its state from %(old)s to %(new)s.'
    code = 'kronos.illegal_transition'


class IllegalPlanTransition(JournalError):
    msg_fmt = 'Plan %(plan)s cannot change its state from %(old)s to %(new)s.'
    code = 'kronos.illegal_plan_transition'


class IllegalDrainTransition(JournalError):
    msg_fmt = 'Drain %(drain)s cannot change its state from %(old)s to %(new)s.'
    code = 'kronos.illegal_drain_transition'


class HoldNotFound(JournalError):
    msg_fmt = ('There is no request for room %(hold)s. "kronos-manage room list --all" lists the '
               'requests.')
    code = 'kronos.hold_not_found'


class HoldNotWaiting(JournalError):
    msg_fmt = 'Request for room %(hold)s is %(state)s: %(problem)s.'
    code = 'kronos.hold_not_waiting'


class IllegalHoldTransition(JournalError):
    msg_fmt = 'Request for room %(hold)s cannot change its state from %(old)s to %(new)s.'
    code = 'kronos.illegal_hold_transition'


class MaintenanceNotFound(JournalError):
    code = 'kronos.maintenance_not_found'

    def __init__(self) -> None:
        super().__init__('No maintenance is in progress.')


class MaintenancePending(JournalError):
    msg_fmt = ('Maintenance %(maintenance)s is %(state)s already. "kronos-manage maintenance show" '
               'shows its progress, "kronos-manage maintenance resume" continues it.')
    code = 'kronos.maintenance_pending'


class MaintenanceRunning(JournalError):
    msg_fmt = ('Maintenance %(maintenance)s is being run by another process. End that process; if '
               'it has died, wait half a minute and try again.')
    code = 'kronos.maintenance_running'


class MoveHeld(JournalError):
    msg_fmt = '%(reason)s'
    code = 'kronos.move_held'


class MoveLost(JournalError):
    msg_fmt = 'Move %(move)s now belongs to worker %(owner)s, and is in state %(state)s.'
    code = 'kronos.move_lost'


class MoveNotFound(JournalError):
    msg_fmt = 'There is no move %(move)s. "kronos-manage move list --all" lists the moves.'
    code = 'kronos.move_not_found'


class MoveEnded(MoveNotFound):
    msg_fmt = 'Move %(move)s has ended already, in state %(state)s.'
    code = 'kronos.move_ended'


class PlanNotFound(JournalError):
    msg_fmt = 'There is no plan %(plan)s. "kronos-manage plan list" lists the plans.'
    code = 'kronos.plan_not_found'


class PlanNotWaiting(PlanNotFound):
    msg_fmt = ('Plan %(plan)s cannot be approved or rejected, because it does not wait for '
               'approval: its state is %(state)s%(since)s.%(remedy)s')
    code = 'kronos.plan_not_waiting'


class PlanPending(JournalError):
    msg_fmt = 'Plan %(plan)s for aggregate %(aggregate)s has not ended yet.'
    code = 'kronos.plan_pending'


class QuarantineNotFound(JournalError):
    msg_fmt = 'Instance %(instance)s is not in quarantine.'
    code = 'kronos.quarantine_not_found'


class ServerNotFound(JournalError):
    msg_fmt = ('Kronos knows no server %(server)s. Kronos knows the servers of the aggregates that '
               'it has evaluated, and the servers that it has moved.')
    code = 'kronos.server_not_found'


class ServerAmbiguous(ServerNotFound):
    msg_fmt = ('%(count)d servers have the name %(server)s. Give the uuid of one of them instead: '
               '%(uuids)s')
    code = 'kronos.server_ambiguous'


class TaskLost(JournalError):
    msg_fmt = ('The live migration of instance %(instance)s cannot continue: this conductor worker '
               'gave no sign of life for too long, and another worker has ended the migration.')
    code = 'kronos.task_lost'


class MoveError(KronosException):
    msg_fmt = 'Instance %(instance)s: %(reason)s'
    code = 'kronos.move'


    @property
    def error_type(self) -> str:
        """Return the name of the error, which is shown with the result of a move."""
        return type(self).__name__


class PlanOutdated(MoveError):
    code = 'kronos.plan_outdated'


class PreFlightError(MoveError):
    code = 'kronos.pre_flight'


class MigrationFailed(MoveError):
    code = 'kronos.migration_failed'


class MigrationTimeout(MoveError):
    code = 'kronos.migration_timeout'


class NovaClientError(MoveError):
    code = 'kronos.nova_client'


class NovaUnavailable(NovaClientError):
    code = 'kronos.nova_unavailable'
    error_type = NovaClientError.__name__


def listed(path: object, problems: Sequence[str], most: int) -> str:
    """Return a text with one line for each problem of a file or folder. Each line begins with the
    path. Of more than ``most`` problems, the others are only counted."""
    lines = [*problems[:most]]
    if len(problems) > most:
        lines.append(f'and {len(problems) - most} more')
    return '\n'.join(f'{path}: {line}' for line in lines)


def meant(wrong: str, known: Iterable[str]) -> str:
    """Return the end of an error text that names the most similar known name; '' if no known name
    is similar to the wrong name."""
    close = difflib.get_close_matches(wrong, sorted(known), n=1)
    return f'; perhaps {close[0]} is meant' if close else ''
