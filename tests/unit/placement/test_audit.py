"""What an audit says of one instance."""

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
