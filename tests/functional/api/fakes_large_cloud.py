"""A control database as that of a large cloud: hosts, a history, a plan, and a journal."""

import dataclasses
import datetime
import json

import sqlalchemy as sa

from kronos_nova import clock
from kronos_nova.db import cycles
from kronos_nova.db import drains as db_drains
from kronos_nova.db import evaluations
from kronos_nova.db import journal as db_journal
from kronos_nova.db import models
from kronos_nova.db import server_names
from kronos_nova.drain import states as drains
from kronos_nova.objects import host_load
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans

POLICIES = ('cpu', 'memory')
EVERY = datetime.timedelta(minutes=5)
STEPS = 288


@dataclasses.dataclass
class Filled:
    """
    aggregates : their names; the first has all hosts but a few, and the plan
    """

    database: object
    aggregates: tuple[str, ...]
    hosts: int = 1000
    servers: int = 30_000
    moves: int = 50
    is_balanced: bool = False

    def __post_init__(self):
        self.cycles = cycles.Cycles(self.database)
        self.evaluations = evaluations.Evaluations(self.database)
        self.journal = db_journal.Journal(self.database, 'filler')

    def fill(self):
        """:returns: the uuid of the plan, which waits for approval"""
        now = clock.utcnow()
        server_names.ServerNames(self.database).save(
            {self.server(number): f'web-{number:05}' for number in range(self.moves)}, now)
        for name in self.aggregates:
            self.remember(name, now)
            self.evaluate(name)
        self.journal.heartbeat(clock.utcnow())
        if self.is_balanced:
            return None
        return self.journal.record_plan(self.report(0.37, with_moves=True), plans.PROPOSED, now,
                                        now + datetime.timedelta(hours=1))

    def remember(self, name, now):
        """A day of evaluations."""
        with self.database.writer() as session:
            session.add_all(models.EvaluationRow(
                aggregate=name, at=now - (STEPS - step) * EVERY, outcome=plans.BALANCED,
                policies=json.dumps({policy: [self.imbalance(step), 0.1] for policy in POLICIES}))
                for step in range(STEPS))

    def imbalance(self, step):
        """Return how it went in a day; where all ended well, moves lowered it in four steps."""
        noise = 0.02 * ((step * 7) % 29) / 29
        if self.is_balanced:
            return 0.05 + 0.08 * max(0, 4 - step // 50) + noise
        return 0.12 + 0.25 * ((step * 7) % 29) / 29

    @staticmethod
    def server(number):
        return f'00000000-0000-4000-8000-{number:012d}'

    @staticmethod
    def host(number):
        return f'compute-{number:04}.example'

    def report(self, imbalance, name=None, with_moves=False):
        return plans.AggregateReport(
            name=name or self.aggregates[0],
            outcome=plans.BALANCED if self.is_balanced else plans.PLANNED, mode='spread',
            planner='spread', combined_before=imbalance, combined_after=0.09, policies=tuple(
                plans.PolicyReport(name=policy, state='ok', weight=0.5, threshold=0.1,
                                   imbalance_before=imbalance,
                                   imbalance_after=min(imbalance, 0.09))
                for policy in POLICIES),
            moves=tuple(map(self.move, range(1, self.moves + 1))) if with_moves else (),
            not_moved=(plans.Skip(reason='no_gain', instances=tuple(
                map(self.server, range(100, self.servers)))),
                plans.Skip(reason='locked', instances=tuple(map(self.server, range(60, 100))))))

    def move(self, order):
        source, destination = self.host(order), self.host(self.hosts - 1 - order)
        return plans.PlannedMove(
            order=order, phase=plans.SPREAD, instance_uuid=self.server(order - 1), source=source,
            destination=destination, memory_mb=4096, combined_after=0.37 - 0.0056 * order,
            reason=f'evens the load: imbalance cpu 0.370 to 0.362; load of {source} cpu 0.912 to '
                   f'0.871; 4096 MiB to copy')

    def evaluate(self, name, shift=0.0):
        """Another evaluation of an aggregate; ``shift`` makes its hosts' loads others."""
        now = clock.utcnow()
        loads = self.loads(name, shift)
        report = dataclasses.replace(
            self.report(0.06 if self.is_balanced else 0.37, name), host_scores=tuple(
                plans.HostScore(load.name, policy, *load.scores[policy])
                for load in loads for policy in POLICIES))
        self.cycles.begin(name, 'filler', now - datetime.timedelta(seconds=4), 1)
        self.cycles.end(name, now, report.outcome, not self.is_balanced, report.to_json())
        self.evaluations.save(report, loads, now)

    def loads(self, name, shift):
        count = self.hosts if name == self.aggregates[0] else 12
        return [host_load.HostLoad(
            name=self.host(number), servers=30, servers_after=30,
            state='disabled' if number % 97 == 5 and not self.is_balanced else 'up',
            scores=dict.fromkeys(POLICIES, self.load(number, shift, count)))
            for number in range(count)]

    def load(self, number, shift, count):
        if self.is_balanced:
            return (0.47 + 0.06 * ((number * 37) % count) / count,) * 2
        before = 0.95 - 0.75 * ((number * 37 + int(shift * 100)) % count) / count
        return before, before if 0.25 < before < 0.9 else 0.6

    def drain(self):
        db_drains.Drains(self.database).request([drains.Drain(
            uuid='11111111-0000-4000-8000-000000000001', host=self.host(5),
            aggregate=self.aggregates[0], state=drains.BLOCKED, requested_by='jane',
            requested_at=clock.utcnow(), reason='new memory', servers=30, left=2,
            blocked={self.server(61): 'every host is full'})])

    def start(self, plan, count):
        """Let a plan run, and so many of its moves be in progress."""
        now = clock.utcnow()
        with self.database.writer() as session:
            session.execute(sa.update(models.PlanRow).where(models.PlanRow.uuid == plan).values(
                state=plans.APPROVED, approved_at=now, approved_by='jane@Default (API)'))
        self.journal.start_plan(plan, [self.move(order) for order in range(1, self.moves + 1)], now)
        for move in self.journal.dispatch(
                moves.Caps(total=count, per_source=count, per_destination=count),
                clock.utcnow):
            taken = self.journal.claim(move.uuid, now)
            self.journal.advance(taken, moves.MIGRATING, now, requested_at=now, **self.copied(0.0))

    def progress(self, plan, share):
        """Let that share of the memory of all moves in progress be copied."""
        with self.database.writer() as session:
            session.execute(sa.update(models.MoveRow).where(
                models.MoveRow.plan_uuid == plan, models.MoveRow.state == moves.MIGRATING,
            ).values(**self.copied(share)))

    @staticmethod
    def copied(share):
        total = 4096 * 2 ** 20
        return {'memory_total': total, 'memory_remaining': int((1 - share) * total)}
