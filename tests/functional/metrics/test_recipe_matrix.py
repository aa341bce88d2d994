"""A part of the matrix of recipes and clouds; the whole one has a command of its own
(:mod:`tests.functional.metrics.recipe_matrix`)."""

import dataclasses
import time

import ddt
import testtools

from kronos_nova import policies
from kronos_nova.cycle import steps
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.endpoint import Endpoint
from tests.functional.metrics import machines
from tests.functional.metrics import recipe_matrix as matrix


@ddt.ddt
class RecipeMatrixTest(testtools.TestCase):
    @ddt.data(('KSM', "inovex'"), ('libvirt exporter reads a part', "Tinkoff's"),
              ('hosts named by address', "Debian's"), ('doubled scrapes', 'ceilometer'),
              ('two regions in one Prometheus', "inovex'"),
              ('busy network and slow disks', "inovex'"))
    @ddt.unpack
    def test_a_row_is_what_the_documentation_has(self, condition, exporter):
        found = dict(matrix.judge(self, condition, exporter))
        self.assertEqual([], [each for each in found.values() if each.startswith('WRONG')])
        text = matrix.TABLE.read_text()
        row = text[text.index(f'* - {condition}\n'):]
        described = row[row.index(f'- {exporter}\n'):].split('\n')[1].strip(' -')
        self.assertEqual(described, matrix.described(found))

    def test_every_recipe_and_exporter_is_in_the_table(self):
        text = matrix.TABLE.read_text()
        for name in (*(path.stem for path in matrix.RECIPES.glob('*.yaml')), *matrix.EXPORTERS,
                     *matrix.CONDITIONS):
            self.assertIn(name, text)

    def test_a_wrong_score_is_found(self):
        """The judge is no test that cannot fail: with a host that has another load than it says."""
        cloud = machines.Machines(matrix.hosts(), machines.inovex)
        client = prometheus.PrometheusClient(Endpoint(url=cloud.server(self).url))
        cloud.machines[1].base_cpu += 2
        cell = matrix.Cell(cloud, client, policies.load(matrix.RECIPES / 'cpu-memory.yaml'), 'KSM',
                           "inovex'")
        self.assertRegex(cell.verdict(), 'WRONG: cpu of cmp2 is .*, true is')

    def test_limits_for_destinations_move_nothing(self):
        even = [dataclasses.replace(each, guests=[], network=network, disk=disk)
                for each, network, disk in zip(matrix.hosts(), (0.95, 0.1, 0.1, 0.1),
                                               (0.004, 0.06, 0.004, 0.004), strict=True)]
        for number, each in enumerate(even):
            each.guests = [machines.Guest(number=number, cpu=each.cpus / 4, vcpus=8,
                                          used=each.memory / 4, flavor=each.memory / 4)]
        cloud = machines.Machines(even, machines.inovex)
        client = prometheus.PrometheusClient(Endpoint(url=cloud.server(self).url))
        report, = steps.plan_cycle(
            cloud.snapshot(), policies.load(matrix.RECIPES / 'cpu-memory-io.yaml'),
            EngineOptions(aggregates=('agg',), include_unassigned_hosts=False),
            PlannerPorts(source=client, clock=lambda: 0.0, now=time.time())).aggregates
        self.assertEqual(('balanced', ()), (report.outcome, report.moves), report)
