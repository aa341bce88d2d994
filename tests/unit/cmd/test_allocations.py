"""Exit codes of ``kronos-manage allocations`` where a cell does not answer."""

import types

import ddt
import fixtures

from kronos_nova.cmd import allocations
from kronos_nova.placement import audit
from tests.unit.cmd import base

FINDING = audit.Finding(kind=audit.LEAKED, instance='vm1', host='a', evidence='e', remedy='r')


@ddt.ddt
class SilentCellTest(base.ManageTestCase):
    def audited(self, silent, *findings):
        found = audit.Audit(findings=findings, instances=3, consumers=3, in_flight=frozenset(),
                            silent=silent)
        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.cmd.allocations.Cloud', lambda options: types.SimpleNamespace(
                audit=lambda limits, stderr: (None, found), placement=None, nova=None)))
        self.run_manage('db', 'sync', 'control')

    @ddt.data(((), allocations.CLEAN), (('cell2', 'cell3'), allocations.FOUND))
    @ddt.unpack
    def test_an_audit_without_findings(self, silent, code):
        self.audited(silent)
        self.assertEqual(code, self.run_manage('allocations', 'audit'))
        said = self.written(self.err)
        self.assertEqual(bool(silent), 'do not answer: cell cell2, cell cell3' in said, said)

    @ddt.data(((), (), allocations.CLEAN), (('cell2',), (), allocations.FOUND),
              (('cell2',), ('--apply',), allocations.LEFT))
    @ddt.unpack
    def test_healing_where_nothing_was_found(self, silent, words, code):
        self.audited(silent)
        self.assertEqual(code, self.run_manage('allocations', 'heal', *words))

    def test_an_audit_that_found_something_beside_a_silent_cell(self):
        self.audited(('cell2',), FINDING)
        self.assertEqual(allocations.FOUND, self.run_manage('allocations', 'audit'))
