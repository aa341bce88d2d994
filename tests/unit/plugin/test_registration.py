"""The record of a live migration that a conductor worker prepares, when the preparation fails."""

import oslo_messaging as messaging
import testtools
from keystoneauth1 import exceptions as ks_exc
from nova import exception as nova_exception
from oslo_db import exception as db_exc

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


class ReceiptTest(testtools.TestCase):
    """A request for a migration that ends before Nova or Kronos could record anything."""

    def calls(self, error, handle=lambda tasks: None):
        """Handle a request that ends with ``error``; return the calls of the tasks."""
        tasks = Tasks()

        def run():
            with registration.Receipt(lambda: tasks, 'vm1'):
                handle(tasks)
                raise error

        self.assertRaises(type(error), run)
        return tasks.calls

    def test_an_outage_before_anything_was_recorded(self):
        self.assertEqual(['record_later'], self.calls(db_exc.DBConnectionError()))

    def test_other_errors_are_left_to_nova(self):
        for error in (ValueError(), nova_exception.NoValidHost(reason='full'), SystemExit()):
            self.assertEqual([], self.calls(error))

    def test_an_outage_that_nova_has_handled(self):
        try:
            raise db_exc.DBConnectionError
        except db_exc.DBConnectionError:
            error = messaging.ExpectedException()
        error.__context__ = db_exc.DBConnectionError()
        self.assertEqual([], self.calls(error))

    def test_an_outage_after_the_request_went_on(self):
        self.assertEqual([], self.calls(db_exc.DBConnectionError(),
                                        lambda tasks: registration.close_receipt()))

    def test_one_request_says_nothing_about_the_next(self):
        self.calls(ValueError(), lambda tasks: registration.close_receipt())
        registration.close_receipt()    # outside any request
        self.assertEqual(['record_later'], self.calls(db_exc.DBConnectionError()))

    def live(self, prepare=lambda registered: None, announces=True):
        """Return what handles a request for a live migration that ends with an outage."""
        def handle(tasks):
            def make_tasks():
                if not announces:
                    raise db_exc.DBConnectionError
                return tasks

            with registration.Registration(make_tasks, lambda: None, 'vm1') as registered:
                prepare(registered)
                raise db_exc.DBConnectionError
        return handle

    def test_an_outage_that_a_task_records(self):
        self.assertEqual(['announce', 'leave'],
                         self.calls(db_exc.DBConnectionError(), self.live()))

    def test_an_outage_without_a_task(self):
        self.assertEqual(['record_later'], self.calls(
            db_exc.DBConnectionError(), self.live(announces=False)))

    def test_an_outage_without_a_task_after_the_request_to_the_source(self):
        self.assertEqual([], self.calls(db_exc.DBConnectionError(), self.live(
            lambda registered: registered.hand_over(), announces=False)))
