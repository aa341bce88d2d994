"""The text of errors that other services raise, which has the traceback of theirs in it."""

from unittest import mock

import oslo_messaging as messaging
import testtools
from keystoneauth1 import exceptions as ks_exc
from neutronclient.common import exceptions as neutron_exc
from nova import exception as nova_exception

from kronos_nova import exception
from kronos_nova.placement import errors
from kronos_nova.plugin import compute_api
from kronos_nova.plugin import dry_run

TEXT = 'There are not enough hosts available.\nTraceback (most recent call last):\n  File "a.py"\n'


class RemoteErrorsTest(testtools.TestCase):
    """The journal, the report and what operators are shown have the first line."""

    def check(self, text):
        self.assertIn('not enough hosts', text)
        self.assertNotIn('\n', text)

    def test_a_refusal_of_the_scheduler(self):
        asked = object.__new__(dry_run.SchedulerDryRun)     # without its RPC clients
        error = nova_exception.NoValidHost(reason=TEXT)
        self.check(asked._why_no_host(['a candidate'], mock.Mock(host='cmp1'), error))
        self.patch(dry_run.cells, 'target_instance', lambda *_args: True)
        asked._select = mock.Mock(side_effect=error)
        self.check(asked(mock.Mock(instance_uuid='vm'), None, None).refused)

    def test_an_outage_during_a_dry_run_is_no_refusal(self):
        asked = object.__new__(dry_run.SchedulerDryRun)     # as above
        self.patch(dry_run.cells, 'target_instance', lambda *_args: True)
        for error in (neutron_exc.ConnectionFailed(reason='refused'),
                      nova_exception.NeutronAdminCredentialConfigurationInvalid(),
                      ks_exc.ConnectFailure('refused'), messaging.MessagingTimeout('no answer')):
            asked._select = mock.Mock(side_effect=error)
            verdict = asked(mock.Mock(instance_uuid='vm'), None, None)
            self.assertEqual('', verdict.refused)
            self.assertIn('could not be asked', verdict.unasked)
            self.assertTrue(verdict.is_silent)

    def test_an_error_of_a_filter_about_one_server_is_neither_a_refusal_nor_an_outage(self):
        asked = object.__new__(dry_run.SchedulerDryRun)     # as above
        self.patch(dry_run.cells, 'target_instance', lambda *_args: True)
        asked._select = mock.Mock(side_effect=messaging.RemoteError('KeyError', 'cell', []))
        verdict = asked(mock.Mock(instance_uuid='vm'), None, None)
        self.assertEqual(('', False), (verdict.refused, verdict.is_silent))
        self.assertIn('could not be asked', verdict.unasked)

    def test_a_refusal_of_placement_about_one_server_ends_no_check_of_others(self):
        asked = object.__new__(dry_run.SchedulerDryRun)     # as above
        self.patch(dry_run.cells, 'target_instance', lambda *_args: True)
        for error, is_of_every_move in (
                (errors.PlacementRefused(problem='HTTP 400: no such trait'), False),
                (errors.NotFound(problem='HTTP 404: no such provider'), False),
                (errors.AccessRefused(problem='HTTP 403'), True),
                (errors.AnswerNotUnderstood(problem='a page of a proxy'), True),
                (errors.PlacementUnavailable(problem='HTTP 503'), True)):
            asked._select = mock.Mock(side_effect=error)
            verdict = asked(mock.Mock(instance_uuid='vm'), None, None)
            self.assertEqual(('', is_of_every_move), (verdict.refused, verdict.is_silent), error)
            self.assertIn('could not be asked', verdict.unasked)

    def test_a_faulty_record_is_a_refusal(self):
        asked = object.__new__(dry_run.SchedulerDryRun)     # as above
        self.patch(dry_run.cells, 'target_instance', lambda *_args: True)
        asked._select = mock.Mock(side_effect=KeyError('flavor'))
        self.assertIn('KeyError', asked(mock.Mock(instance_uuid='vm'), None, None).refused)

    def test_an_outage_at_the_destination_while_a_claim_is_released(self):
        """The claim expires, so the move goes on."""
        port = object.__new__(compute_api.InProcessComputeApi)
        port._requested, port.claims = mock.Mock(), mock.Mock()
        self.patch(compute_api.cells, 'target_host', lambda *_args: True)
        move = mock.Mock(uuid='a-move', instance_uuid='vm', destination='cmp1')
        for error in (nova_exception.ResourceProviderAllocationRetrievalFailed(
                rp_uuid='rp', error=TEXT), nova_exception.ComputeServiceUnavailable(host='cmp1')):
            port._held = {'a-move': 7}
            port.claims.abort.side_effect = error
            port.release_room(move, has_moved=False)
            self.assertEqual({}, port._held)

    def test_a_refusal_of_a_move(self):
        port = object.__new__(compute_api.InProcessComputeApi)     # as above
        port._instance = mock.Mock(return_value=mock.Mock(project_id='p'))
        port._listed = mock.Mock(return_value=())
        port._requested = mock.Mock()
        move = mock.Mock(instance_uuid='vm', uuid='1b4e28ba-2fa1-41d2-883f-0016d3cca427')
        for kind, expected in ((nova_exception.NoValidHost, exception.PreFlightError),
                               (compute_api.NOT_AS_PLANNED[0], exception.PlanOutdated)):
            act = mock.Mock(side_effect=kind(TEXT))
            self.check(str(self.assertRaises(expected, port._migrate, move, act)))
