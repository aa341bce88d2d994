"""The executor's interface to Nova by the public API, for processes outside Nova."""

import contextlib
from collections.abc import Iterator
from typing import Any
from urllib import parse

import openstack
from keystoneauth1 import exceptions as ks_exc
from oslo_log import log as logging

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.drain import states as drains
from kronos_nova.executor import compute
from kronos_nova.executor import outages
from kronos_nova.objects import migration_status
from kronos_nova.objects import snapshot
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.move import request_id
from kronos_nova.objects.nova_facts import COMPUTE_EXECUTION

LOG = logging.getLogger(__name__)

NOT_FOUND = 404
"""HTTP status with which Nova answers that a resource does not exist (no unit). Fixed by HTTP."""
ABOUT_US = (401, 403, 408, 413, 429)
"""HTTP statuses with which Nova refuses a request for a reason that concerns Kronos and not the
instance. The reasons are Kronos's credentials (401, 403), a request that is too slow or too large
(408, 413), and too many requests (429). Fixed by HTTP."""


NOT_AS_PLANNED = (404, 409)
"""HTTP statuses with which Nova refuses to move an instance that was deleted (404), or that is busy
or locked (409). Fixed by Nova's API."""


class OpenStackComputeApi:
    """A ComputeApi that uses Nova's public API.

    :param connection: openstack.connection.Connection of an administrator
    """

    def __init__(self, connection: openstack.connection.Connection):
        self._connection = connection
        self._requested = compute.RequestedMigrations()

    def instance(self, uuid: str) -> compute.InstanceState | None:
        server = self._server(uuid)
        return None if server is None else compute.InstanceState(
            host=server['OS-EXT-SRV-ATTR:host'], status=server['status'],
            task_state=server['OS-EXT-STS:task_state'], locked=server['locked'])

    def _server(self, uuid: str) -> dict[str, Any] | None:
        """Return a server as Nova shows it; None if there is no such server.

        :raises NovaUnavailable: the cell of the server is down. Nova then shows only a few values
        """
        server = self._get(uuid, f'/servers/{uuid}', 'server')
        if server is not None and 'OS-EXT-STS:task_state' not in server:
            raise _silent(uuid, 'its cell is down')
        return server

    def service(self, host: str) -> snapshot.Service | None:
        found = self._services(host)
        if not found:
            return None
        return snapshot.Service(
            state=found[0]['state'], status=found[0]['status'],
            forced_down=found[0]['forced_down'], disabled_reason=found[0]['disabled_reason'])

    def _services(self, host: str) -> list[dict[str, Any]]:
        """Return the nova-compute services whose host has exactly this name. Nova's own selection
        ignores case (COMPUTE1 is compute1), and selects all services for an empty name.

        :raises NovaUnavailable: the cell of the host is down. Nova then shows only names
        """
        listed = self._list(host, f'/os-services?binary=nova-compute&host={parse.quote(host, "")}',
                            'services')
        found = [each for each in listed if each['host'] == host]
        if any('state' not in each for each in found):
            raise _silent(host, 'its cell is down')
        return found

    def hold_room(self, move: MoveRecord) -> None:
        """Remember the newest migration of the instance, so that the migration of the move can be
        recognised later. No resources are reserved, because only an RPC to nova-compute could
        reserve resources."""
        listed = self._listed(move)
        if listed is not None:
            self._requested.about_to_ask(move, map(_listed_migration, listed))

    def release_room(self, move: MoveRecord, has_moved: bool) -> None:
        """Forget the migration that was remembered for a move. No resources are released, because
        Nova's public API cannot reserve any."""
        self._requested.forget(move)

    def live_migrate(self, move: MoveRecord) -> None:
        self._migrate(move, {'os-migrateLive': {'host': move.destination,
                                                'block_migration': 'auto'}})

    def cold_migrate(self, move: MoveRecord) -> None:
        self._migrate(move, {'migrate': {'host': move.destination}})

    def _migrate(self, move: MoveRecord, action: dict[str, Any]) -> None:
        # The client does not repeat the request: if the first one arrived, Nova would refuse the
        # second.
        answer = self._request(
            move.instance_uuid, 'POST', f'/servers/{move.instance_uuid}/action', json=action,
            headers={'X-OpenStack-Request-ID': request_id(move.uuid)},
            connect_retries=0, status_code_retries=0)
        if answer.status_code in NOT_AS_PLANNED:
            raise exception.PlanOutdated(instance=move.instance_uuid,
                                         reason=f'Nova refused: {message_of(answer)}')
        if answer.status_code >= 400:
            raise exception.PreFlightError(instance=move.instance_uuid,
                                           reason=f'Nova refused: {message_of(answer)}')

    def confirm(self, move: MoveRecord) -> None:
        answer = self._request(move.instance_uuid, 'POST', f'/servers/{move.instance_uuid}/action',
                              json={'confirmResize': None})
        if answer.status_code >= 400:
            LOG.debug('Nova refused to confirm the cold migration of instance %s: %s',
                      move.instance_uuid, message_of(answer))

    def migration(self, move: MoveRecord) -> compute.MigrationState | None:
        found = self._migration(move)
        if found is None:
            return None
        progress = self._progress(move, found)
        return compute.MigrationState(
            uuid=found['uuid'], status=found['status'], was_started=found['dest_node'] is not None,
            fault=self._fault(move) if found['status'] in migration_status.FAILED else '',
            memory_total=progress.get('memory_total_bytes'),
            memory_remaining=progress.get('memory_remaining_bytes'),
            memory_processed=progress.get('memory_processed_bytes'))

    def set_free(self, move: MoveRecord) -> bool:
        """Do not clear the task_state of the instance, and return False. A nova-conductor that is
        down may still carry out the request after its restart."""
        return False

    def abort(self, move: MoveRecord) -> bool:
        return self._act_on_migration(move, 'DELETE', '')

    def force_complete(self, move: MoveRecord) -> bool:
        return self._act_on_migration(move, 'POST', '/action', json={'force_complete': None})

    def _act_on_migration(self, move: MoveRecord, method: str, path: str, **kwargs: Any) -> bool:
        """Send a request about the migration of a move. Return True if Nova accepted the request,
        False if Nova refused the request or has no such migration."""
        found = self._migration(move)
        if found is None:
            return False
        answer = self._request(
            move.instance_uuid, method,
            f'/servers/{move.instance_uuid}/migrations/{found["id"]}{path}', **kwargs)
        if answer.status_code >= 400:
            LOG.debug('Nova refused the request %(method)s for migration %(migration)s%(path)s: '
                      '%(answer)s',
                      {'method': method, 'migration': found['uuid'], 'path': path,
                       'answer': message_of(answer)})
        return answer.status_code < 400

    def _migration(self, move: MoveRecord) -> dict[str, Any] | None:
        """Return the migration that was requested for a move, as Nova lists it; None if there is
        none."""
        listed = {each['id']: each for each in self._listed(move) or ()}
        found = self._requested.find(move, map(_listed_migration, listed.values()))
        return None if found is None else listed[found.number]

    def _listed(self, move: MoveRecord) -> list[dict[str, Any]] | None:
        """Return the migrations of the move's instance and kind (live or cold), as Nova lists them.
        Return None if Nova answers 404."""
        kind = migration_status.COLD if move.kind in drains.COLD_KINDS else migration_status.LIVE
        return self._get(move.instance_uuid, f'/os-migrations?migration_type={kind}&'
                                             f'instance_uuid={move.instance_uuid}', 'migrations')

    def _progress(self, move: MoveRecord, migration: dict[str, Any]) -> dict[str, Any]:
        """Return Nova's details of a live migration in progress, such as its memory in bytes.
        Return {} for any other migration."""
        if migration['status'] in migration_status.ENDED or move.kind in drains.COLD_KINDS:
            return {}
        return self._get(move.instance_uuid,
                         f'/servers/{move.instance_uuid}/migrations/{migration["id"]}',
                         'migration') or {}

    def _fault(self, move: MoveRecord) -> str:
        """Return the error that Nova reports for the newest request to migrate the instance; '' if
        there is none. Only requests of the move's kind (live or cold) count."""
        path = f'/servers/{move.instance_uuid}/os-instance-actions'
        actions = self._get(move.instance_uuid, path, 'instanceActions') or ()
        kind = 'migrate' if move.kind in drains.COLD_KINDS else 'live-migration'
        asked = [each for each in actions if each['action'] == kind]
        if not asked:
            return ''
        newest = max(asked, key=lambda each: each['start_time'])
        found = self._get(move.instance_uuid, f'{path}/{newest["request_id"]}', 'instanceAction')
        events = found['events'] if found else ()
        return next((event['details'] for event in events if event.get('details')), '')

    def _get(self, what: str, path: str, key: str) -> Any:
        """Send a GET, and return the value of ``key`` in the answer; None if the resource does not
        exist.

        :raises NovaUnavailable: Nova fails, or something else answers in its place
        """
        answer = self._request(what, 'GET', path)
        if answer.status_code == NOT_FOUND:
            return None
        if answer.status_code >= 400:
            raise _silent(what, f'HTTP {answer.status_code}: {message_of(answer)}')
        try:
            return answer.json()[key]
        except (ValueError, TypeError, KeyError) as error:
            raise _silent(what, f'its answer to GET {path} has no {key}') from error

    def _list(self, what: str, path: str, key: str) -> list[dict[str, Any]]:
        """Send a GET for a list, and return the list as :meth:`_get` does.

        :raises NovaUnavailable: the answer is 404, which Nova itself never gives for a list
        """
        found = self._get(what, path, key)
        if found is None:
            raise _silent(what, f'HTTP 404 to GET {path}')
        return found

    def _request(self, what: str, method: str, path: str, **kwargs: Any) -> Any:
        """Send a request about ``what``, an instance or a host, and return Nova's answer. The
        answer may be a refusal.

        :raises NovaClientError: there is no answer, or the answer says that Nova itself failed or
            that Kronos' credentials are refused
        """
        with _answered(what):
            answer = self._connection.compute.request(path, method, microversion=COMPUTE_EXECUTION,
                                                      raise_exc=False, **kwargs)
        if answer.status_code >= 500 or answer.status_code in ABOUT_US:
            raise _silent(what, f'HTTP {answer.status_code}: {message_of(answer)}')
        return answer


def _listed_migration(found: dict[str, Any]) -> compute.ListedMigration:
    return compute.ListedMigration(
        number=found['id'], uuid=found['uuid'], status=found['status'],
        source=found.get('source_compute'), created_at=clock.parsed(found['created_at']))


def message_of(answer: Any) -> str:
    """Return Nova's text about an error."""
    try:
        return next(iter(answer.json().values()))['message']
    except (ValueError, AttributeError, StopIteration, KeyError, TypeError):
        return answer.reason


def _silent(what: str, why: str) -> exception.NovaUnavailable:
    return exception.NovaUnavailable(instance=what, reason=f'Nova did not answer: {why}')


@contextlib.contextmanager
def _answered(what: str) -> Iterator[None]:
    try:
        yield
    except (openstack.exceptions.SDKException, ks_exc.ClientException) as e:
        reason = ' '.join(str(e).split())
        if outages.is_outage(e):
            raise _silent(what, reason) from e
        raise exception.NovaClientError(instance=what,
                                        reason=f'Nova cannot be reached: {reason}') from e
