"""Repetition of the steps that confirm a cold migration or resize, while a service does not answer.

nova-compute on the source confirms a cold migration or resize. If a service does not answer at this
time, Nova sets the instance to ERROR although its guest is unharmed, or Nova loses the request.
After a lost request, the instance stays in VERIFY_RESIZE for ever, because Nova's API refuses a
second request. With this fix, nova-compute repeats the steps until the services answer. It also
accepts a second request, which the executor sends if the first request was lost.

Launchpad: no bug is known. Option: ``[kronos_fixes] confirmation_retry``.
"""

from collections.abc import Callable
from collections.abc import MutableMapping
from typing import Any
from typing import TypeVar

import nova.conf
from nova import exception as nova_exception
from nova import objects
from nova.compute import power_state
from nova.compute import task_states
from nova.compute import vm_states
from oslo_log import log as logging

from kronos_nova.db.engine import first_line
from kronos_nova.objects import migration_status
from kronos_nova.plugin import outages
from kronos_nova.plugin import placement
from kronos_nova.plugin import reverts
from kronos_nova.plugin.nova_types import ComputeNode
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import Mixin
from kronos_nova.plugin.nova_types import RequestContext

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

R = TypeVar('R')

PATIENCE_SECONDS = 180
"""Seconds for which a step of a confirmation is repeated while a service does not answer. Raised,
nova-compute has more requests in progress during a long outage; lowered, an instance may be set to
ERROR during a restart of a service. Chosen as the same time as in the fix ``status_retry``."""

_MANAGER = 'nova.compute.manager:ComputeManager'

EXPECTED = {
    f'{_MANAGER}.confirm_resize': ('self', 'context', 'instance', 'migration'),
    f'{_MANAGER}._confirm_resize': ('self', 'context', 'instance', 'migration'),
    f'{_MANAGER}._delete_allocation_after_move': ('self', 'context', 'instance', 'migration'),
    f'{_MANAGER}._delete_stashed_flavor_info': ('self', 'instance'),
}

MARK = 'kronos_confirms'
"""Key (no unit) in the ``stats`` of a ComputeNode. The key means that the nova-compute of the node
accepts a repeated request to confirm. nova-compute saves the stats, and conductors read them."""


def mark(stats: MutableMapping[str, object]) -> None:
    """Record in the stats of a node that its nova-compute accepts a repeated request to confirm a
    cold migration. Nothing is recorded if the option is off."""
    if CONF.kronos_fixes.confirmation_retry:
        stats[MARK] = '1'


def is_repeatable_on(node: ComputeNode) -> bool:
    """Return whether the nova-compute of a ComputeNode accepts a repeated request to confirm a cold
    migration. Without the fix, a second request sets the instance to ERROR."""
    return MARK in (node.stats or {})


class ConfirmsPatiently(Mixin):
    """A mixin for the compute manager that repeats the steps of a confirmation while a service does
    not answer."""

    def confirm_resize(self, context: RequestContext, instance: Instance,
                       migration: Migration) -> None:
        """Confirm a cold migration or resize by Nova's method, once a conductor and placement
        answer. If one of them does not answer for :data:`PATIENCE_SECONDS`, the migration stays
        unconfirmed, and can be confirmed later."""
        if CONF.kronos_fixes.confirmation_retry:
            try:
                _patiently(instance, _probe, context, migration)
            except nova_exception.MigrationNotFound:
                LOG.debug('Nova no longer has a record of the migration to confirm.',
                          instance=instance)
            except Exception as error:
                if not outages.is_outage(error):
                    raise
                _leave_unconfirmed(instance, migration, error)
                return
        super().confirm_resize(context, instance, migration)

    def _confirm_resize(self, context: RequestContext, instance: Instance,
                        migration: Migration | None = None) -> None:
        if not CONF.kronos_fixes.confirmation_retry:
            super()._confirm_resize(context, instance, migration=migration)
            return
        # Nova has just read the instance, under a lock.
        if instance.vm_state != vm_states.RESIZED:
            LOG.info('The cold migration or resize is confirmed already.', instance=instance)
            return
        _patiently(instance, self._confirm_rest, context, instance, migration)

    def _confirm_rest(self, context: RequestContext, instance: Instance,
                      migration: Migration) -> None:
        """Do the steps of a confirmation that an earlier attempt has not done."""
        if instance.migration_context is not None:
            super()._confirm_resize(context, instance, migration=migration)
            return
        # Only the last step, the state of the instance, is left.
        instance.vm_state = (vm_states.STOPPED if instance.power_state == power_state.SHUTDOWN
                             else vm_states.ACTIVE)
        instance.task_state = None
        instance.save(expected_task_state=[None, task_states.DELETING, task_states.SOFT_DELETING])

    def _delete_allocation_after_move(self, context: RequestContext, instance: Instance,
                                      migration: Migration) -> None:
        """Delete the allocations of the migration by Nova's method. If the migration is confirmed,
        an outage or a failed deletion is only logged
        (:func:`~kronos_nova.plugin.reverts.may_be_left`). If the error were raised, Nova would set
        the instance to ERROR."""
        try:
            super()._delete_allocation_after_move(context, instance, migration)
        except Exception as error:
            if not CONF.kronos_fixes.confirmation_retry or (
                    migration.status != migration_status.CONFIRMED) or (
                    not reverts.may_be_left(error)):
                raise
            reverts.log_undeleted(f'Cold migration {migration.uuid} is confirmed', instance, error)

    def _delete_stashed_flavor_info(self, instance: Instance) -> None:
        if CONF.kronos_fixes.confirmation_retry:
            _patiently(instance, super()._delete_stashed_flavor_info, instance)
        else:
            super()._delete_stashed_flavor_info(instance)


def _probe(context: RequestContext, migration: Migration) -> None:
    """Raise an error if a conductor or placement does not answer. Called before Nova's method: if
    no conductor answered the first query of Nova's method, the request to confirm would be lost."""
    objects.Migration.get_by_id(context, migration.id)
    placement.client().consumer(migration.uuid)


def _leave_unconfirmed(instance: Instance, migration: Migration, error: Exception) -> None:
    """Set the status of a migration back to ``finished``. Nova's API then accepts another request
    to confirm the migration."""
    LOG.warning('The cold migration or resize is not confirmed, because a service does not answer: '
                '%s. Confirm it later; Kronos confirms the cold migrations of drains.',
                first_line(error), instance=instance)
    if migration.status != migration_status.CONFIRMING:
        return
    migration.status = migration_status.FINISHED
    try:
        migration.save()
    except Exception as failure:
        if not outages.is_outage(failure):
            raise
        LOG.warning('The status of migration %s stays "confirming": %s. If the migration belongs '
                    'to a drain, Kronos repeats the request to confirm the migration. For any '
                    'other migration, Nova refuses another request.', migration.uuid,
                    first_line(failure), instance=instance)


def _patiently(instance: Instance, act: Callable[..., R], *args: Any) -> R:
    """Call ``act``, and repeat the call while a service does not answer.

    :raises Exception: the last error of ``act``
    """
    tries = outages.retrying(
        PATIENCE_SECONDS,
        before_sleep=lambda state: LOG.warning(
            'The cold migration or resize cannot be confirmed now, because a service does not '
            'answer; nova-compute tries again: %s', first_line(state.outcome.exception()),
            instance=instance))
    return tries(act, *args)
