"""Starts cycles: decides what is due, and lets a child process do it.

Reading a large cloud and planning for it are seconds of pure Python, which in this process would
take turns with every RPC that the conductor serves, whatever its concurrency mode. A child has an
interpreter of its own, gives its memory back when it ends, and takes nothing down when it dies.
"""

import dataclasses
import datetime
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from collections.abc import Sequence

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db.journal import Journal
from kronos_nova.db.memory import Cycles
from kronos_nova.engine import cycle
from kronos_nova.engine.locks import AggregateLocks
from kronos_nova.objects import snapshot

LOG = logging.getLogger(__name__)

NICENESS = 10
"""Added to that of the service: a cycle may take its time, the service may not."""

SOON = 10
"""Seconds between two attempts to start an approved plan, should the first one fail."""


def scopes(conf):
    """Names of what ``[kronos]`` puts in scope, the pool of unassigned hosts among them."""
    pool = [snapshot.UNASSIGNED] if conf.kronos.include_unassigned_hosts else []
    return [*dict.fromkeys(conf.kronos.aggregates), *pool]


def refuse_empty_scope(conf):
    """:raises ConfigurationError: there is nothing to plan for"""
    if not scopes(conf):
        raise exception.ConfigurationError(
            what='[kronos] aggregates', problem='no aggregate is in scope',
            remedy='Name the aggregates to balance, or set include_unassigned_hosts.')


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """How to start a child: its module, and the command line that gave this process its
    configuration."""

    module: str
    arguments: Sequence[str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerPorts:
    """What tells whose turn it is; ``utcnow`` gives the time, UTC without a zone."""

    locks: AggregateLocks
    cycles: Cycles
    journal: Journal
    utcnow: Callable[[], datetime.datetime]


class CycleScheduler:
    """One worker's part in planning: at most one child at a time, under the locks of what it plans.

    :param ports: SchedulerPorts
    :param command: Command of the child
    """

    def __init__(self, conf, ports, command):
        self.conf = conf
        self.ports = ports
        self.command = command
        self.child = None

    def tick(self):
        """See whether the child has ended, else whether there is something to start one for."""
        if self.child is not None:
            self._look_after_child()
        if self.child is None:
            ours = self._take_some()
            if ours:
                self.child = self._start(ours)

    def stop(self):
        if self.child is not None:
            self.child.terminate()
            self.child.wait()
            self._look_after_child()

    def _take_some(self):
        """Aggregates for which it is time and at which nobody else is, now locked.

        One with an approved plan does not wait for its time.
        """
        group, now = self.conf.kronos, self.ports.utcnow()
        approved = {plan.aggregate for plan in self.ports.journal.approved_plans()}
        levels = cycle.automation(self.conf)
        wanted = [scope for scope in scopes(self.conf)
                  if levels.get(scope, levels['*']) != 'off']
        due = self.ports.cycles.due(wanted, now, group.evaluation_interval)
        ours = (scope for scope in wanted if scope in approved or scope in due
                if self._is_ours(scope, SOON if scope in approved else group.evaluation_interval))
        return list(itertools.islice(ours, group.aggregates_per_cycle or None))

    def _is_ours(self, scope, interval):
        if not self.ports.locks.acquire(scope):
            return False
        if self.ports.cycles.begin(scope, self.ports.journal.worker, self.ports.utcnow(), interval):
            return True
        self.ports.locks.release(scope)
        return False

    def _start(self, due):
        command = [sys.executable, '-m', self.command.module, '--scopes', *due, '--',
                   *self.command.arguments]
        # The child is no server: it needs none of the green threads that this process may have.
        environment = {**os.environ, 'OS_NOVA_DISABLE_EVENTLET_PATCHING': '1'}
        LOG.debug('Planning %s', ', '.join(due))
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)  # noqa: S603
        # From here, not by the child itself: loading Nova is half of its work.
        os.setpriority(os.PRIO_PROCESS, child.pid, os.nice(0) + NICENESS)
        return child

    def _look_after_child(self):
        status = self.child.poll()
        if status is None:
            self.ports.locks.heartbeat()
            return
        if status:
            LOG.error('A planning process ended with status %d; its own log lines say why. The '
                      'next one starts when its aggregates are due again.', status)
        self.child = None
        self.ports.locks.release_all()
