"""One list separates what does not answer from what says no."""

import oslo_messaging as messaging
import testtools
from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.executor import openstack
from kronos_nova.executor import outages
from kronos_nova.placement import errors

SILENT = (
    ks_exc.ConnectFailure('refused'), ks_exc.ConnectTimeout('nova'), ks_exc.GatewayTimeout(),
    ks_exc.Unauthorized('keystone'), ks_exc.DiscoveryFailure('no versions'),
    sdk_exc.ServiceDiscoveryException('no versions'),
    exception.NovaUnavailable(instance='vm', reason='503'),
    exception.InventoryError(problem='timed out'), errors.PlacementUnavailable(problem='502'),
    errors.AccessRefused(problem='403'), errors.AnswerNotUnderstood(problem='a page of a proxy'),
    errors.PlacementTooOld(offered='1.10', needed='1.36', lacks='all'),
    errors.ProviderChanged(problem='409'), messaging.RemoteError('AccessRefused', '403'),
    messaging.MessagingTimeout('check'), db_exc.DBConnectionError(ValueError('gone away')),
    messaging.RemoteError('ConnectFailure', 'in nova-compute'))
REFUSED = (
    None, ValueError('no'), ks_exc.BadRequest(), ks_exc.Conflict(),
    sdk_exc.NotSupported('microversion'), sdk_exc.InvalidRequest('wrong'),
    exception.NovaClientError(instance='vm', reason='no'),
    errors.InsufficientInventory(problem='full'), messaging.RemoteError('LibvirtError', 'no'),
    errors.PlacementRefused(problem='HTTP 400: no such trait'),
    errors.NotFound(problem='HTTP 404: no such provider'),
    # Nova, neutron and glance have exceptions of this name.
    messaging.RemoteError('NotFound', 'in nova-compute'))


class OutagesTest(testtools.TestCase):
    def test_what_does_not_answer_is_an_outage(self):
        self.assertEqual([], [each for each in SILENT if not outages.is_outage(each)])

    def test_what_says_no_is_none(self):
        self.assertEqual([], [each for each in REFUSED if outages.is_outage(each)])

    def test_the_public_api_is_judged_by_the_same_list(self):
        for error, expected in (
                (ks_exc.ConnectFailure('refused'), exception.NovaUnavailable),
                (sdk_exc.ServiceDiscoveryException('none'), exception.NovaUnavailable),
                (sdk_exc.NotSupported('microversion'), exception.NovaClientError)):
            self.assertEqual(expected, type(self.assertRaises(
                exception.NovaClientError, self.ask, error)))

    def ask(self, error):
        with openstack._answered('vm'):
            raise error
