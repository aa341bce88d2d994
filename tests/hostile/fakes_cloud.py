"""A small cloud for cycles: what tenants, exporters and operators do to it is set on its rows."""

import dataclasses

from kronos_nova.cycle import evaluation
from kronos_nova.cycle import options
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import drains
from kronos_nova.db import journal as db_journal
from kronos_nova.drain.progress import HostDrains
from kronos_nova.objects import metrics
from kronos_nova.objects import move as moves
from kronos_nova.objects import snapshot
from kronos_nova.objects.automation import Defaults
from kronos_nova.policies import loader
from tests.unit.db import fixtures

ENABLED = snapshot.Service(state='up', status='enabled')
DISABLED = snapshot.Service(state='up', status='disabled')
POLICIES = """
policies:
- {{name: cpu, mode: {mode}, weight: 1.0, threshold: 0.1, max_migrations_per_cycle: {budget},
   imbalance_query: hosts, vm_profile_query: servers, vm_profile_label: id,
   vm_profile_label_type: {label}, vm_profile_fallback: {fallback}, {more}}}
"""
RULES = evaluation.CycleRules(
    automation=Defaults(level='auto'), cooldown=600, instance_cooldown=3600,
    instance_cooldown_factor=2, instance_cooldown_max=86400, no_return_window=21600,
    experience_window=600, stale_plan_age=600, start_interval=0)
WIDE = moves.Caps(total=1000, per_source=1000, per_destination=1000)


class Cloud:
    """Hosts of one aggregate ``gpu`` and what is on them; answers the policy's queries.

    hosts : name to Service; those in ``silent`` have no exporter that answers, neither for
        themselves nor for their instances
    load : uuid to the part of a host that the instance takes
    """

    def __init__(self, clock, hosts='abc', room=16):
        self.clock, self.room = clock, room
        self.hosts = dict.fromkeys(hosts, ENABLED)
        self.instances, self.load, self.silent = {}, {}, set()
        self.groups = ()
        self.label = 'uuid'

    def server(self, uuid, host, load=0.05, **values):
        self.load[uuid] = load
        self.instances[uuid] = snapshot.Instance(**{
            'uuid': uuid, 'name': f'instance-{uuid}', 'display_name': uuid, 'host': host,
            'project_id': 'p', 'status': 'ACTIVE', 'vcpus': 1, 'memory_mb': 512, 'disk_gb': 1,
            'resources': {'VCPU': 1}, **values})

    def put(self, uuid, host):
        self.instances[uuid] = dataclasses.replace(self.instances[uuid], host=host)

    def on(self, host):
        return {uuid for uuid, each in self.instances.items() if each.host == host}

    def read(self, scopes=None, moves=()):
        return snapshot.Snapshot(
            taken_at='2026-11-20T12:00:00Z',
            hosts=tuple(snapshot.Host(
                name=name, uuid=f'rp-{name}', service=service,
                inventory={'VCPU': snapshot.ResourceInventory(total=self.room)})
                for name, service in self.hosts.items()),
            aggregates=(snapshot.Aggregate(name='gpu', uuid='gpu', hosts=tuple(self.hosts)),),
            instances=tuple(self.instances.values()), server_groups=self.groups)

    def names_elsewhere(self, attribute, names):
        return set()

    def query(self, query):
        at = self.clock().timestamp()
        measured = [each for each in self.instances.values() if each.host not in self.silent]
        if query.kind == metrics.VM_PROFILE:
            rows = [(getattr(each, self.label), self.load[each.uuid]) for each in measured]
            label = 'id'
        else:
            rows = [(host, min(1.0, sum(self.load[uuid] for uuid in self.on(host))))
                    for host in self.hosts if host not in self.silent]
            label = 'host'
        return metrics.Vector(tuple(metrics.Sample({label: name}, value, at)
                                    for name, value in rows))


class Control:
    """The control database of a cloud, its cycles, and moves that are made at once.

    :param test: where the database's fixture is used
    """

    def __init__(self, test, hosts='abc', room=16, **policy):
        self.clock = fixtures.Clock()
        self.cloud = Cloud(self.clock, hosts, room)
        self.database = test.useFixture(fixtures.ControlDatabase()).database
        self.journal = db_journal.Journal(self.database, 'one')
        self.cooldowns = cooldowns.Cooldowns(self.database)
        self.cycles = cycles.Cycles(self.database)
        self.drains = drains.Drains(self.database)
        self.cycles.begin('gpu', 'one', self.clock(), 1)
        self.rules = RULES
        self.options = options.EngineOptions(
            aggregates=('gpu',), include_unassigned_hosts=False,
            evacuate_disabled_hosts=True, no_return_window=RULES.no_return_window)
        self.cloud.label = policy.get('label', 'uuid')
        self.policies = loader.parse(POLICIES.format(**{
            'mode': 'spread', 'budget': 10, 'label': 'uuid', 'fallback': 'skip', 'more': '',
            **policy}))
        self.history = []

    def run(self):
        """One cycle. :returns: the AggregateReport; None where the aggregate is being drained"""
        ports = evaluation.CyclePorts.over(
            self.database, self.journal, inventory=self.cloud, metrics=self.cloud,
            requesters=(HostDrains,), cooldowns=self.cooldowns, cycles=self.cycles,
            history=lambda since: tuple(self.history))
        reports = evaluation.Cycle(ports, self.policies, self.options, self.rules, self.clock).run()
        return next(iter(reports.aggregates), None)

    def carry_out(self):
        """Make every move that waits. :returns: the MoveRecords"""
        made = []
        while going := self.journal.dispatch(WIDE, self.clock):
            for move in going:
                move = self.journal.claim(move.uuid, self.clock())
                for step in (moves.MIGRATING, moves.VERIFYING, moves.COMPLETED):
                    move = self.journal.advance(move, step, self.clock(), finished_at=self.clock())
                self.journal.settle(move.uuid, self.clock())
                self.cloud.put(move.instance_uuid, move.destination)
                made.append(move)
        self.journal.close_plans(self.clock())
        return made
