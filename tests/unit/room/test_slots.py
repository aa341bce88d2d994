"""The number of further servers that fit."""

import testtools

from kronos_nova import exception
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.objects import numa
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.shape import Shape
from kronos_nova.policies.rules import OperatorRule
from kronos_nova.policies.selection import Selections
from kronos_nova.room import failover
from kronos_nova.room import shapes
from kronos_nova.room import slots
from tests.unit.room import clouds


def count(snapshot, text='2:4096', **more):
    return slots.SlotCounter(snapshot, ConstraintRules(), [shapes.parse(text)], **more).slots(0)


class SlotsTest(testtools.TestCase):
    def test_each_host_holds_what_its_scarcest_resource_does(self):
        found = count(clouds.cloud([clouds.host('a', 8, 9000), clouds.host('b', 3, 16384)]))

        self.assertEqual(({'a': 2, 'b': 1}, 3), (found.by_host, found.total))
        self.assertEqual({'VCPU': 11 - 6, 'MEMORY_MB': 25384 - 3 * 4096}, found.unusable)

    def test_a_disabled_host_holds_none(self):
        off = objects.Service(state='up', status='disabled')
        self.assertEqual(0, count(clouds.cloud([clouds.host('a', service=off)])).total)

    def test_the_scarce_resource_is_named(self):
        self.assertEqual('VCPU', count(clouds.cloud([clouds.host('a', 1)])).short)
        self.assertEqual('MEMORY_MB', count(clouds.cloud([clouds.host('a', 99, 1024)])).short)

    def test_hosts_that_are_kept_for_others_do_not_count(self):
        kept = objects.Aggregate(name='kept', uuid='k', hosts=('a',),
                                 metadata={'filter_tenant_id': 'theirs'})
        snapshot = clouds.cloud([clouds.host('a'), clouds.host('b')], aggregates=(kept,))

        self.assertEqual({'b': 4}, count(snapshot).by_host)
        self.assertEqual({'a': 4, 'b': 4}, count(snapshot, project_id='theirs').by_host)

    def test_a_trait_of_the_flavor_is_required(self):
        snapshot = clouds.cloud([clouds.host('a', traits=('HW_CPU_X86_AVX2',)),
                                 clouds.host('b', traits=())])
        shape = Shape(name='avx', vcpus=1, memory_mb=1024,
                      extra_specs={'trait:HW_CPU_X86_AVX2': 'required'})
        counter = slots.SlotCounter(snapshot, ConstraintRules(), [shape])
        self.assertEqual({'a': 8}, counter.slots(0).by_host)

    def test_a_rule_of_the_operator_keeps_servers_of_a_flavor_on_some_hosts(self):
        snapshot = clouds.cloud([clouds.host('a'), clouds.host('b')])
        rule = OperatorRule.model_validate({
            'name': 'licence', 'servers': {'flavor': 'oracle'}, 'must_run_on': {'hosts': ['b']}})
        rules = ConstraintRules(selections=Selections([rule], snapshot))
        wanted = [Shape(name='oracle', vcpus=1, memory_mb=1024), shapes.parse('1:1024')]
        counter = slots.SlotCounter(snapshot, rules, wanted)
        self.assertEqual([{'b'}, {'a', 'b'}], [{*counter.slots(n).by_host} for n in (0, 1)])

    def test_a_pool_that_hosts_share_is_counted_once(self):
        pool = objects.SharedProvider(
            uuid='pool', hosts=('a', 'b'),
            inventory={'DISK_GB': objects.ResourceInventory(total=50)}, used={'DISK_GB': 10})
        snapshot = clouds.cloud([clouds.host('a'), clouds.host('b')], shared_providers=(pool,))

        found = count(snapshot, '1:1024:10')

        self.assertEqual((4, 'DISK_GB'), (found.total, found.short))

    def test_each_cell_counts(self):
        self.assertEqual(8, count(clouds.cloud([
            clouds.host('a'), clouds.host('b', cell='cell2')])).total)

    def test_slots_after_a_loss_are_those_of_the_worst_host(self):
        """A server of the other host has to restart where slots are counted."""
        snapshot = clouds.cloud([clouds.host('a'), clouds.host('b')],
                                [clouds.server('one', 'a', 4, 1024)])
        judge = failover.failover_of(snapshot, ConstraintRules())
        counter = slots.SlotCounter(snapshot, ConstraintRules(), [shapes.parse('2:1024')])

        self.assertEqual([2], slots.after_losses(counter, [judge.judge((n,)) for n in (0, 1)]))
        self.assertEqual(6, counter.slots(0).total)

    def test_after_a_loss_that_not_all_survive_nothing_is_promised(self):
        snapshot = clouds.cloud([clouds.host('a')], [clouds.server('one', 'a')])
        judge = failover.failover_of(snapshot, ConstraintRules())
        counter = slots.SlotCounter(snapshot, ConstraintRules(), [shapes.parse('2:1024')])

        self.assertEqual([None], slots.after_losses(counter, [judge.judge((0,))]))


class ShapesTest(testtools.TestCase):
    def test_what_placement_is_asked_for(self):
        plain = Shape(name='m', vcpus=2, memory_mb=4096, disk_gb=20)
        self.assertEqual({'VCPU': 2, 'MEMORY_MB': 4096, 'DISK_GB': 20}, plain.resources)
        specs = {'hw:cpu_policy': 'dedicated', 'resources:CUSTOM_FPGA': '1',
                 'resources:DISK_GB': '0'}
        self.assertEqual(
            {'PCPU': 2, 'MEMORY_MB': 4096, 'CUSTOM_FPGA': 1},
            Shape(name='m', vcpus=2, memory_mb=4096, disk_gb=20, extra_specs=specs).resources)

    def test_names_and_sizes(self):
        flavor = Shape(name='m1.small', vcpus=1, memory_mb=2048)
        self.assertEqual([flavor, shapes.parse('4:8192:40')],
                         shapes.named(['m1.small', '4:8192:40'], [flavor]))
        for text in ('m1.large', '4', '0:8192', '4:0', '4:x'):
            self.assertRaises(exception.RequestRefused, shapes.named, [text], [flavor])


class DevicesTest(testtools.TestCase):
    def test_a_device_is_counted_like_a_resource(self):
        nic = numa.Device(alias='nic')
        pools = (numa.Pool(alias='nic', total=4, used=3, cell=0), numa.Pool(alias='gpu', total=1))
        snapshot = clouds.cloud(
            [clouds.host('a', pools=pools), clouds.host('b', pools=()), clouds.host('c')],
            [clouds.server('one', 'a', devices=(nic,))])
        wanted = Shape(name='n', vcpus=1, memory_mb=1024, devices=(nic,))
        found = slots.SlotCounter(snapshot, ConstraintRules(), [wanted]).slots(0)
        # What devices c has is not known: there its VCPUs count.
        self.assertEqual(({'a': 1, 'b': 0, 'c': 8}, 'device nic'), (found.by_host, found.short))

    def test_a_server_moves_where_its_devices_are(self):
        nic = numa.Device(alias='nic', count=2)
        snapshot = clouds.cloud(
            [clouds.host('a', pools=(numa.Pool(alias='nic', total=2, used=2),), used={}),
             clouds.host('b', pools=(numa.Pool(alias='nic', total=2, used=1),), used={})],
            [clouds.server('one', 'a', devices=(nic,))])
        judge = failover.failover_of(snapshot, ConstraintRules())
        verdict = judge.judge([judge.index('a')])
        self.assertEqual('does_not_fit', verdict.verdict)
        self.assertIn('2 device nic', verdict.left['one'])
