"""Messages on the bus, and a control database that they must not spoil."""

import contextlib
import copy
import datetime

from kronos_nova import exception
from kronos_nova.claims import central
from kronos_nova.db import cooldowns
from kronos_nova.db import journal as db_journal
from kronos_nova.executor import broker
from kronos_nova.executor import messages
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.hostile.fuzz import mutate
from tests.unit.db import fixtures
from tests.unit.executor import fakes_executor
from tests.unit.executor.test_executor import OPTIONS
from tests.unit.executor.test_executor import RecordedNova

HOSTS = ('cmp1', 'cmp2')
WIDE = moves.Caps(total=10, per_source=10, per_destination=10)


class Bus:
    """The endpoints of an executor, of a handler of results and of the store of claims, and behind
    them a journal with a dispatched move, a planned one, and a finished one."""

    def __init__(self):
        self._control = fixtures.ControlDatabase()
        self._control.setUp()
        database = self._control.database
        self.clock, self.nova = fixtures.Clock(), RecordedNova()
        self.journal = db_journal.Journal(database, 'one')
        self.cooldowns = cooldowns.Cooldowns(database)
        self.worker = fakes_executor.Worker(
            self.journal, self.nova, self.cooldowns, OPTIONS, self.clock)
        self.claims = central.CentralTable(database)
        self.tasks = broker.TaskEndpoint(self.worker.executor.accept)
        self.results = broker.ResultEndpoint(self.worker.outcomes.settle)
        self.journal.record_plan(
            fixtures.report([('vm1', 'a', 'b'), ('vm2', 'a', 'b', 1)]), plans.EXECUTING,
            self.clock(), self.clock() + datetime.timedelta(hours=1))
        [self.move] = self.journal.dispatch(WIDE, self.clock)

    def task(self, rng):
        """A task, nearly as one is cast."""
        return mutate.tree(rng, messages.task(self.move))

    def result(self, rng):
        """(publisher, event type, payload), nearly as a result is sent."""
        event, payload = messages.result(self.move)
        payload |= {'final': True, 'state': rng.choice((moves.FAILED, moves.COMPLETED))}
        return tuple(mutate.tree(rng, ['one', event, payload], most=2)[:3])

    def write(self, rng):
        """Claims of ``cmp1`` as a compute host may send them; the rows that it then has."""
        row = {'host': 'cmp1', 'node': 'cmp1', 'instance_uuid': 'vm1', 'vcpus': 1,
               'memory_mb': 512, 'disk_gb': 1, 'pci': '["0000:81:00.1"]', 'numa_topology': None,
               'resize_target': 0, 'created_at': datetime.datetime.now(datetime.UTC).isoformat(),
               'state': 'claimed', 'migration_uuid': None}
        sent = mutate.tree(rng, {'host': 'cmp1', 'put': [row, copy.copy(row)],
                                 'drop': [['cmp1', 'vm1', False]]})
        with contextlib.suppress(exception.ClaimError):
            self.claims.write(*(sent.get(name) if isinstance(sent, dict) else sent
                                for name in ('host', 'put', 'drop')))
        return {host: self.claims.load(host) for host in HOSTS}

    def stop(self):
        self._control.cleanUp()
