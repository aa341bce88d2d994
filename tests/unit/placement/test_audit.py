"""Findings of an audit for one instance."""

import dataclasses

import testtools

from kronos_nova.objects.migration_status import COLD
from kronos_nova.objects.migration_status import LIVE
from kronos_nova.objects.migration_status import RESIZE
from kronos_nova.placement import audit
from kronos_nova.placement.holdings import Holdings
from kronos_nova.placement.records import InstanceRecord
from kronos_nova.placement.records import Migration
from kronos_nova.placement.records import Records

BANDWIDTH = 'NET_BW_EGR_KILOBIT_PER_SEC'
HOLDINGS = Holdings(roots={each: 'host' for each in ('host', 'bridge', 'other', 'gpu')},
                    sharing={}, consumers={})
TWO_HOSTS = Holdings(roots={'host': 'host', 'far': 'far'}, sharing={}, consumers={})


def case(held, **asked):
    instance = InstanceRecord(
        uuid='vm', root='host', host='host1', cell='cell1', project_id='p', user_id='u',
        vm_state='active', task_state=None, settled_for=1000.0, asks_for={'VCPU': 1, **asked})
    return audit.AuditCase(uuid='vm', instance=instance, held={'host': {'VCPU': 1}, **held},
                           migrations=())


class AmountTest(testtools.TestCase):
    def found(self, held, **asked):
        return audit.judge(case(held, **asked), HOLDINGS, audit.AuditLimits())

    def test_what_is_missing_of_two_ports_is_not_put_where_the_one_is(self):
        finding = self.found({'bridge': {BANDWIDTH: 1000}}, **{BANDWIDTH: 2000})

        self.assertEqual({'vm': {'host': {'VCPU': 1}}}, finding.wanted)
        self.assertEqual('vm', finding.needs_candidate)

    def test_what_is_too_much_on_one_provider_is_taken_off_it(self):
        finding = self.found({'gpu': {'VGPU': 2}}, VGPU=1)

        self.assertEqual({'vm': {'host': {'VCPU': 1}, 'gpu': {'VGPU': 1}}}, finding.wanted)
        self.assertIsNone(finding.needs_candidate)

    def test_only_amounts_that_nova_alone_decides_are_corrected_unasked(self):
        def is_due(held, **asked):
            return self.found(held, **asked).can_be_healed_unasked

        self.assertTrue(is_due({'host': {'VCPU': 4, 'MEMORY_MB': 4096}}, MEMORY_MB=512))
        self.assertTrue(is_due({'host': {'VCPU': 1, 'MEMORY_MB': 256}}, MEMORY_MB=512))
        self.assertFalse(is_due({'gpu': {'VGPU': 2}}, VGPU=1), 'another service may have made it')
        self.assertFalse(is_due({}, MEMORY_MB=512), 'placement has to be asked where')


class MigrationTest(testtools.TestCase):
    def found(self, kind, status, settled_for=100.0, **changes):
        """The finding for a server on host1 that holds only on the migration's destination, while
        the migration holds on host1."""
        migration = Migration(uuid='m', instance_uuid='vm', kind=kind, status=status,
                              source='host1', destination='host2', settled_for=settled_for,
                              is_source_up=True)
        known = case({})
        return audit.judge(dataclasses.replace(
            known, held={'far': {'VCPU': 1}},
            instance=dataclasses.replace(known.instance, **changes),
            migrations=((migration, {'host': {'VCPU': 1}}),)), TWO_HOSTS, audit.AuditLimits())

    def test_a_migration_that_has_not_changed_for_long_has_ended(self):
        for kind in (COLD, RESIZE):
            self.assertEqual({'m': {}, 'vm': {'host': {'VCPU': 1}}},
                             self.found(kind, 'migrating', settled_for=3600.0).wanted)

    def test_a_migration_that_may_still_move_the_server_is_left_alone(self):
        self.assertIsNone(self.found(COLD, 'migrating', task_state='resize_migrating'))
        self.assertIsNone(self.found(COLD, 'migrating', settled_for=10.0))
        self.assertIsNone(self.found(COLD, 'finished', vm_state='resized'))
        for kind in (LIVE, COLD, RESIZE, 'evacuation'):
            self.assertIsNone(self.found(kind, 'running'))


class Nova:
    """Records of Nova in which server ``vm`` is resized from cell1 to cell2, and waits for the
    confirmation. The copy of ``vm`` in cell1 is hidden.

    :param silent: names of cells that do not answer
    :param deleted: uuids of instances that a cell which answers has as deleted
    """

    def __init__(self, silent=(), deleted=()):
        self._silent, self._deleted = silent, frozenset(deleted)

    def read(self):
        migration = Migration(uuid='m', instance_uuid='vm', kind=RESIZE, status='finished',
                              source='host1', destination='host2', settled_for=1000.0,
                              is_source_up=True)
        return Records(hosts={'host': 'host1'}, instances={}, migrations={'m': migration},
                       silent=self._silent)

    def migrations(self, _uuids):
        return {}

    def deleted(self, uuids):
        return self._deleted & frozenset(uuids)

    def building(self, _uuids):
        return frozenset()


class SilentCellTest(testtools.TestCase):
    def found(self, **nova):
        held = dataclasses.replace(TWO_HOSTS, consumers={
            'vm': {'far': {'VCPU': 1}}, 'm': {'host': {'VCPU': 1}}})
        return [(each.kind, each.instance, each.wanted) for each in audit.audit(
            held, Nova(**nova), audit.AuditLimits()).findings]

    def test_a_server_whose_cell_does_not_answer_is_not_deleted(self):
        """Another cell may have the migration of a server that was resized across cells."""
        self.assertEqual([], self.found(silent=('cell2',)))

    def test_a_server_that_is_certainly_deleted_is_found_although_a_cell_is_silent(self):
        leaked = [(audit.LEAKED, 'vm', {'vm': {}, 'm': {}})]
        self.assertEqual(leaked, self.found(silent=('cell2',), deleted=['vm']))
        self.assertEqual(leaked, self.found(), 'no cell that is silent can have it')
