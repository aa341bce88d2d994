"""The conductor that plans an aggregate is killed while it does."""

import datetime

from kronos_nova.db import cycles
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base
from tests.e2e.executor.test_daemons import POLICIES

INTERVAL = 20
RACK = 'rack'


class TakeoverTest(base.ExecutorTestCase):
    computes, conductors, workers = 2, 2, 1
    nova_conf = {'kronos': {
        'automation': 'observe', 'aggregates': RACK, 'include_unassigned_hosts': False,
        'evaluation_interval': INTERVAL}}

    @classmethod
    def prepare(cls, conf):
        policies = cls.cloud.root / 'policies.yaml'
        policies.write_text(POLICIES)
        conf['kronos'].update(policies_file=policies, coordination_url=cls.cloud.database.url(
            'kronos').replace('mysql+pymysql', 'mysql').partition('?')[0])
        cls.cloud.configure(nova_conf=conf)

    def setUp(self):
        super().setUp()
        self.cycles = cycles.Cycles(self.database)

    def evaluation(self):
        """The last evaluation of the aggregate, if there was one."""
        return next((each for each in self.cycles.last() if each.aggregate == RACK), None)

    def in_progress(self):
        found = self.evaluation()
        is_over = found and found.finished_at and found.finished_at >= found.started_at
        return found if found and not is_over else None

    def taken_over(self, before):
        """The evaluation that another worker began after that one."""
        found = self.evaluation()
        return found if found.worker != before.worker else None

    def has_ended(self, evaluation):
        found = self.evaluation()
        return found.finished_at and found.finished_at >= evaluation.started_at

    def test_another_takes_its_aggregate_over_within_two_intervals(self):
        self.cloud.client.create_aggregate(RACK, self.hosts)
        conductors = {daemon.name: daemon for daemon in self.cloud.nova.conductors}
        for _ in conductors:
            self.kill_the_planner(conductors)

    def kill_the_planner(self, conductors):
        before = wait_for(self.in_progress, 120, 'no conductor plans')
        victim = conductors[before.worker.partition(':')[0]]
        victim.process.kill()
        heir = wait_for(lambda: self.taken_over(before), 4 * INTERVAL, 'no conductor takes over')
        self.assertNotEqual(victim.name, heir.worker.partition(':')[0])
        self.assertLessEqual(heir.started_at - before.started_at,
                             datetime.timedelta(seconds=2 * INTERVAL))
        wait_for(lambda: self.has_ended(heir), 120, 'its evaluation does not end')
        victim.start()
