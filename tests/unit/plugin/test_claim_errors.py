"""Errors of a compute host that could not hold room."""

from unittest import mock

import oslo_messaging as messaging
import testtools
from nova import exception as nova_exception

from kronos_nova import exception
from kronos_nova.plugin import claim_rpc

REFUSED = 'Unable to establish connection to http://placement/'
TRACEBACK = ['Traceback (most recent call last):\n', '  File "a.py", line 1, in b\n'] * 50


class ClaimErrorsTest(testtools.TestCase):
    def prepare(self, error):
        client = claim_rpc.ClaimsClient()
        with mock.patch.object(client, '_call', side_effect=error):
            return client.prepare(None, 'cmp1', mock.Mock(uuid='vm'))

    def test_the_traceback_of_another_host_is_not_part_of_the_reason(self):
        """The journal keeps the reason, and status and the page show it."""
        error = self.assertRaises(
            exception.NovaUnavailable, self.prepare,
            messaging.RemoteError('ConnectFailure', REFUSED, TRACEBACK))
        self.assertIn(f'ConnectFailure {REFUSED}', str(error))
        self.assertNotIn('Traceback', str(error))
        self.assertNotIn('\n', str(error))

    def test_nor_is_one_of_what_does_not_fit(self):
        error = self.assertRaises(
            exception.PreFlightError, self.prepare,
            nova_exception.ComputeResourcesUnavailable(reason='no PCI device\nTraceback'))
        self.assertTrue(str(error).endswith('no PCI device'), error)

    def test_what_nova_refuses_there_is_no_failure_of_the_instance(self):
        """A server whose move fails rests in quarantine; one that is refused does not."""
        error = self.assertRaises(
            exception.PreFlightError, self.prepare,
            nova_exception.FlavorImageConflict('encryption needs UEFI\nTraceback'))
        self.assertTrue(str(error).endswith('encryption needs UEFI'), error)

    def test_an_error_of_the_code_there_does_not_make_the_move_wait(self):
        """It says the same each time, so another host is chosen."""
        for kind in 'KeyError', 'ClaimError':
            error = self.assertRaises(
                exception.PreFlightError, self.prepare,
                messaging.RemoteError(kind, 'no such cell', TRACEBACK))
            self.assertTrue(str(error).endswith(f'{kind} no such cell'), error)

    def test_a_host_that_cannot_be_reached_refuses_nothing(self):
        for silent in (messaging.MessagingTimeout('no answer'),
                       messaging.MessageDeliveryFailure('no broker'),
                       messaging.ClientSendError('cmp1', ValueError('no broker'))):
            self.assertRaises(exception.NovaUnavailable, self.prepare, silent)

    def test_a_host_without_kronos_holds_no_room(self):
        for unserved in (messaging.UnsupportedVersion('1.0'),
                         messaging.RemoteError('NoSuchMethod', 'prepare', [])):
            self.assertIsNone(self.prepare(unserved))

    def test_a_service_that_is_out_there_is_no_refusal(self):
        self.assertRaises(exception.NovaUnavailable, self.prepare,
                          nova_exception.CinderConnectionFailed(reason='timed out'))
