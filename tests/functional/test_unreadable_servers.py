"""Servers of whose records Nova itself can make nothing, as releases before it left some."""

import json

from nova import context as nova_context
from nova.db.main import api as main_db
from nova.db.main import models

from kronos_nova.objects import repair as repairs
from kronos_nova.placement import audit
from tests.functional import test_allocations_audit


class UnreadableTest(test_allocations_audit.AuditTestCase):
    """They do not keep an audit from finding and healing faults of others."""

    put = test_allocations_audit.BrokenByHandTest.put

    def check(self, spoil, is_told):
        bad, good = self.boot('host1'), self.boot('host1')
        context = nova_context.get_admin_context()
        with (nova_context.target_cell(context, self.cell_mappings['cell1']) as cell,
              main_db.get_context_manager(cell).writer.using(cell) as session):
            spoil(session, bad['id'])
        self.put(good['id'], {'host1': test_allocations_audit.SMALL,
                              'host2': test_allocations_audit.SMALL})

        reported = {(audit.STALLED, bad['id'])} if is_told else set()
        self.assertEqual({(audit.DOUBLED, good['id'])} | reported, {*self.findings()})
        states = {each.finding.instance: each.state for each in self.heal()}
        self.assertEqual(repairs.HEALED, states.pop(good['id']))
        self.assertEqual([repairs.SKIPPED] * is_told, [*states.values()])
        self.assert_holds(good['id'], test_allocations_audit.SMALL_ON_HOST1)
        self.assert_holds(bad['id'], test_allocations_audit.SMALL_ON_HOST1)

    def test_an_image_property_that_nova_does_not_know_any_more(self):
        """Its request has the properties that it asked for."""
        self.check(lambda session, uuid: session.add(models.InstanceSystemMetadata(
            instance_uuid=uuid, key='image_hw_disk_bus', value='punched-cards')), is_told=False)

    def test_an_extra_spec_that_nova_refuses_by_now(self):
        def spoil(session, uuid):
            row = session.query(models.InstanceExtra).filter_by(instance_uuid=uuid).one()
            flavor = json.loads(row.flavor)
            flavor['cur']['nova_object.data']['extra_specs'] = {
                'hw:cpu_policy': 'at times'}
            row.flavor = json.dumps(flavor)

        self.check(spoil, is_told=True)

    def test_no_flavor_at_all(self):
        def spoil(session, uuid):
            session.query(models.InstanceExtra).filter_by(instance_uuid=uuid).one().flavor = None

        self.check(spoil, is_told=True)
