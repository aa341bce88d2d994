"""Exit codes of ``kronos-manage allocations`` where a cell does not answer."""

import dataclasses
import json
import os
import types

import ddt
import fixtures
from oslo_db import exception as db_exc

from kronos_nova.cmd import allocations
from kronos_nova.db import counters
from kronos_nova.db import engine as db_engine
from kronos_nova.objects import repair as repairs
from kronos_nova.placement import audit
from kronos_nova.placement import heal
from tests.unit.cmd import base

FINDING = audit.Finding(kind=audit.LEAKED, instance='vm1', host='a', evidence='e', remedy='r')


@ddt.ddt
class SilentCellTest(base.ManageTestCase):
    def audited(self, silent, *findings):
        found = audit.Audit(findings=findings, instances=3, consumers=3, in_flight=frozenset(),
                            silent=silent)
        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.cmd.allocations.Cloud', lambda options: types.SimpleNamespace(
                audit=lambda limits, stderr, rooms: (None, found), placement=None, nova=None)))
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

    def test_repairs_that_were_made_are_listed_if_the_database_fails_at_one(self):
        """Otherwise an operator would not learn of them."""
        others = [dataclasses.replace(FINDING, instance=uuid) for uuid in ('vm2', 'vm3')]
        self.audited((), FINDING, *others)

        def healed(healer, finding):
            if finding.instance == 'vm2':
                raise db_exc.DBConnectionError('gone away')
            return heal.Outcome(finding=finding, state=repairs.HEALED,
                                repair=f'r-{finding.instance}')

        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.cmd.allocations.heal.Healer.heal', healed))
        self.assertEqual(allocations.LEFT, self.run_manage(
            'allocations', 'heal', '--apply', '-f', 'json'))
        said = self.written(self.out)
        self.assertEqual([('vm1', 'healed', 'r-vm1'), ('vm2', 'failed', ''),
                          ('vm3', 'healed', 'r-vm3')],
                         [(each['Instance'], each['State'], each['Repair'])
                          for each in json.loads(said[said.index('['):])])

    def test_an_undone_repair_is_named(self):
        self.audited(())
        self.useFixture(fixtures.MonkeyPatch(
            'kronos_nova.cmd.allocations.heal.undo', lambda *arguments: None))
        self.assertEqual(0, self.run_manage('allocations', 'undo', 'r'))
        self.assertIn('Repair r is undone.', self.written(self.out))

    def test_an_audit_that_found_something_beside_a_silent_cell(self):
        self.audited(('cell2',), FINDING)
        self.assertEqual(allocations.FOUND, self.run_manage('allocations', 'audit'))
        self.assertEqual({'leaked': 1.0, 'silent_cell': 1.0}, self.kept())
        self.audited(())
        self.run_manage('allocations', 'audit')
        self.assertEqual({}, self.kept())

    def kept(self):
        """{kind: how many}, of those kinds of which there are any, as the exporter finds it."""
        engine = db_engine.create_engine(f'sqlite:///{self.state}/kronos.sqlite')
        self.addCleanup(engine.dispose)
        totals = counters.Counters(db_engine.Database(engine)).read()
        found = {each.labels['kind']: each.value for each in totals
                 if each.name == counters.AUDIT_FINDINGS}
        self.assertEqual({*audit.KINDS, allocations.SILENT}, found.keys())
        return {kind: value for kind, value in found.items() if value}

    def test_an_audit_does_without_the_control_database(self):
        self.audited(())
        os.unlink(f'{self.state}/kronos.sqlite')
        self.assertEqual(allocations.CLEAN, self.run_manage('allocations', 'audit'))
        self.assertIn('is not recorded for kronos-exporter', self.written(self.err))
