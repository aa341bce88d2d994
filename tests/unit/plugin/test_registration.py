"""The record of a live migration that a conductor worker prepares, when the preparation fails."""

import testtools
from keystoneauth1 import exceptions as ks_exc
from nova import exception as nova_exception

from kronos_nova.plugin import registration


class Tasks:
    """Tasks of the control database, as a list of calls."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *uuids: self.calls.append(name) or True


class RegistrationTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.tasks, self.outages = Tasks(), []

    def fails(self, error, prepare=lambda registered: None):
        """Prepare a migration that ends with ``error``; return the calls of the tasks."""
        def run():
            with registration.Registration(lambda: self.tasks, lambda: self.outages.append(1),
                                           'vm1') as registered:
                prepare(registered)
                raise error

        self.assertRaises(type(error), run)
        return self.tasks.calls

    def test_an_outage_that_nova_could_not_record_is_noted_for_the_executor(self):
        calls = self.fails(ks_exc.DiscoveryFailure('no version of placement'))
        self.assertEqual((['announce', 'leave'], [1]), (calls, self.outages))

    def test_another_error_that_nova_could_not_record_is_no_outage(self):
        calls = self.fails(ValueError('unexpected'))
        self.assertEqual((['announce', 'leave'], []), (calls, self.outages))

    def test_an_outage_after_the_request_to_the_source_says_nothing_about_the_migration(self):
        calls = self.fails(ks_exc.ConnectFailure('neutron'),
                           lambda registered: registered.hand_over())
        self.assertEqual((['announce', 'hand_over', 'leave'], []), (calls, self.outages))

    def test_a_failure_that_nova_has_recorded_ends_the_task(self):
        error = nova_exception.MigrationPreCheckError(reason='no host')
        calls = self.fails(error, lambda registered: registered.fail(error))
        self.assertEqual((['announce', 'end'], []), (calls, self.outages))
