"""Findings of an audit for one instance."""

import testtools

from kronos_nova.placement import audit
from kronos_nova.placement.holdings import Holdings
from kronos_nova.placement.records import InstanceRecord

BANDWIDTH = 'NET_BW_EGR_KILOBIT_PER_SEC'
HOLDINGS = Holdings(roots={each: 'host' for each in ('host', 'bridge', 'other', 'gpu')},
                    sharing={}, consumers={})


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
