"""Reports as they are kept: written and read in one place."""

import json

import testtools

from kronos_nova.objects import plan as plans


def report():
    return plans.AggregateReport(
        name='gpu', outcome=plans.PLANNED, mode='spread', planner='spread',
        policies=(plans.PolicyReport(name='cpu', state='ok', weight=1.0, threshold=0.1,
                                     imbalance_before=0.5, imbalance_after=0.1),),
        combined_before=0.5, combined_after=0.1, hosts_emptied=('c',),
        moves=(plans.PlannedMove(order=2, phase=plans.SPREAD, instance_uuid='vm', source='a',
                                 destination='b', memory_mb=1, combined_after=0.1, reason='evens',
                                 depends_on=(1,), next_best=plans.NextBest(
                              instance_uuid='other', destination='c', memory_mb=2,
                              combined_after=0.2)),),
        not_moved=(plans.Skip(reason='refused', instances=('x', 'y')),), warnings=('mind',),
        refusals=(plans.Refusal(instance_uuid='x', hosts=('a', 'b', 'c'), reason='NUMA'),))


class ReportTest(testtools.TestCase):
    def test_what_is_written_is_read(self):
        self.assertEqual(report(), plans.AggregateReport.from_json(report().to_json()))

    def test_one_of_an_older_release(self):
        kept = json.loads(report().to_json())
        del kept['refusals'], kept['warnings']
        found = plans.AggregateReport.from_json(json.dumps(kept))
        self.assertEqual(((), ()), (found.refusals, found.warnings))

    def test_one_of_a_newer_release(self):
        kept = json.loads(report().to_json())
        kept['colour'], kept['moves'][0]['speed'] = 'red', 3
        self.assertEqual(report(), plans.AggregateReport.from_json(json.dumps(kept)))
