"""The common part of tests that make room for servers on Nova's and placement's fixtures."""

import pathlib
import time

import fixtures
import nova.conf

from kronos_client.contract import room as contract
from kronos_nova import clock
from kronos_nova.cycle import evaluation
from kronos_nova.cycle import options
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.room_requests import RoomRequests
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import holds
from kronos_nova.db import journal as db_journal
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.objects import hold
from kronos_nova.objects import snapshot
from kronos_nova.placement.room_allocations import RoomAllocations
from kronos_nova.plugin import compute_api
from kronos_nova.plugin import inventory
from kronos_nova.policies import loader
from kronos_nova.services import room
from kronos_nova.services.context import Context
from tests.functional import test_balancing
from tests.unit.executor import fakes_executor

CONF = nova.conf.CONF


class RoomMixin:
    """Makes room for servers of the flavor ``wide_name``, and carries the moves out.

    keeps_by_allocations : allocations may keep the room
    """

    keeps_by_allocations = False

    def set_up_room(self):
        """Make what plans, moves and keeps. Called by ``setUp``, when Nova's services run."""
        self.flags(include_unassigned_hosts=True, group='kronos')
        self.database = self.control_database
        self.holds = holds.Holds(self.database)
        self.journal = db_journal.Journal(self.database, 'tester')
        self.inventory = inventory.InProcessInventory()
        self.worker = fakes_executor.Worker(
            self.journal, compute_api.InProcessComputeApi(), cooldowns.Cooldowns(self.database),
            ExecutorOptions.from_conf(CONF), clock.utcnow)
        self.policies = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'policies.yaml')
        self.policies.write_text(test_balancing.POLICIES)
        self.flags(policies_file=str(self.policies), group='kronos')
        self.context = Context(
            conf=CONF, database=self.database, who='jane', read_cloud=self.inventory.read,
            read_flavors=self.inventory.read_flavors, host_api=None,
            planner_ports=lambda: PlannerPorts(source=None, clock=time.monotonic,
                                               now=time.time()),
            room_allocations=lambda: RoomAllocations(self.placement_client))

    def name_of(self, flavor):
        return next(each['name'] for each in self.api.get_flavors() if each['id'] == flavor)

    def evaluate(self):
        """An evaluation in a new process."""
        ports = evaluation.CyclePorts.over(
            self.database, self.journal, inventory=self.inventory, requesters=(RoomRequests,),
            metrics=test_balancing.CountingMetrics(self.inventory.read),
            room_allocations=(RoomAllocations(self.placement_client)
                              if self.keeps_by_allocations else None))
        cycles.Cycles(self.database).begin(snapshot.UNASSIGNED, 'tester', clock.utcnow(), 1)
        evaluation.Cycle(ports, loader.load(self.policies), options.from_conf(CONF),
                         evaluation.CycleRules.from_conf(CONF), clock.utcnow).run()

    def until(self, uuid, *wanted):
        with fixtures.Timeout(120, gentle=True):
            while self.holds.get(uuid).state not in wanted:
                self.evaluate()
                self.worker.tick()
                time.sleep(0.2)
        return self.holds.get(uuid)

    def make(self, **more):
        return room.make(self.context, contract.MakeRoom(flavor=self.wide_name, **more))

    def made(self, **more):
        return self.until(self.make(approve=True, **more).hold.uuid, hold.HELD)

    def where(self, flavor, state='ACTIVE'):
        """Boot a server and return its host."""
        server = self._create_server(flavor_id=flavor, networks='none', expected_state=state)
        return server['OS-EXT-SRV-ATTR:host']
