"""A rolling maintenance, look by look, with a control database and hosts that the test controls."""

import dataclasses

import sqlalchemy as sa
import testtools
from fixtures import MonkeyPatch
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.cmd import maintenance_runner
from kronos_nova.db import drains as db_drains
from kronos_nova.db import maintenances
from kronos_nova.db import models
from kronos_nova.drain import states as drains
from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.objects import maintenance as m
from kronos_nova.objects import snapshot
from tests.unit.db import fixtures

UP = snapshot.Service(state='up', status='disabled')
WEB = ServerOnHost(uuid='web', name='web', status='ACTIVE')
DOWN = snapshot.Service(state='down', status='disabled')


class Hook:
    """A process that ends on a signal."""

    def __init__(self):
        self.status = None

    def poll(self):
        return self.status


class FakeServices(dict):
    """The services of hosts, all of them UP, and the hosts that were asked for."""

    def __init__(self, asked):
        self.asked = asked

    def get(self, host, _default=None):
        self.asked.append(host)
        return UP


class _Hosts:
    """A HostApi of empty hosts whose services come from a function."""

    def __init__(self, service):
        self.service = service

    def servers_on(self, _host):
        return []


class MaintenanceRunnerTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        database = self.useFixture(fixtures.ControlDatabase()).database
        self.known = maintenances.Maintenances(database)
        self.drains = db_drains.Drains(database)
        self.service_of, self.servers, self.hooks, self.said, self.fit = {}, {}, {}, [], 9

    def begin(self, *hosts, **options):
        self.known.begin(m.Maintenance(
            uuid='m', state=m.RUNNING, requested_by='jane', requested_at=self.clock(),
            options=m.MaintenanceOptions(**{'hook': 'reboot', **options}),
            hosts=dict.fromkeys(hosts or 'abc', m.WAITING)))
        return self.run_anew()

    def begin_to_service(self, *hosts, **options):
        """To where the first host is empty, and its hook runs if there is one."""
        work = self.begin(*hosts, **options)
        work.advance()
        self.empty('a')
        work.advance()
        work.advance()
        return work

    def run_anew(self):
        return maintenance_runner.MaintenanceRunner(maintenance_runner.Dependencies(
            maintenances=self.known, drains=self.drains, hosts=self, drain=self.drain,
            fits=lambda wanted, _later: list(wanted[:self.fit]), say=self.said.append,
            run_hook=lambda _command, host: self.hooks.setdefault(host, Hook())), 'm')

    def service(self, host):
        return self.service_of.get(host, UP)

    def servers_on(self, host):
        return self.servers.get(host, [])

    def drain(self, host, avoid):
        self.clock.go(1)
        return drains.Drain(uuid=f'drain of {host}', host=host, aggregate='gpu',
                            state=drains.REQUESTED, requested_by='jane', avoid=avoid,
                            requested_at=self.clock())

    def empty(self, host):
        fixtures.bring(self.drains, self.drains.latest(host), drains.EMPTY, left=0)

    def released(self, host):
        fixtures.bring(self.drains, self.drains.latest(host), drains.RELEASED)

    def states(self):
        return [*self.known.get('m').hosts.values()]

    def test_host_after_host_is_emptied_serviced_and_released(self):
        work = self.begin()
        for position, host in enumerate('abc'):
            work.advance()
            self.assertEqual([m.FINISHED] * position + [m.DRAINING] + [m.WAITING] * (2 - position),
                             self.states())
            self.assertEqual(tuple('abc'[position + 1:]), self.drains.latest(host).avoid)
            self.empty(host)
            work.advance()
            work.advance()
            self.hooks[host].status = 0
            work.advance()
            work.advance()
            self.assertEqual(drains.RELEASING, self.drains.latest(host).state)
            self.released(host)
        work.advance()
        self.assertEqual([m.FINISHED] * 3, self.states())

    def test_a_host_is_serviced_with_the_servers_that_its_drain_has_stopped(self):
        work = self.begin('a')
        work.advance()
        self.empty('a')
        self.drains.note(self.drains.latest('a'), (drains.EMPTY,), stopped={'web': 'stopped'})
        self.servers['a'] = [WEB]
        work.advance()
        self.assertEqual([m.DRAINING], self.states())
        self.servers['a'] = [dataclasses.replace(WEB, status='SHUTOFF')]
        work.advance()
        work.advance()
        self.assertEqual(([m.HOOK], ['a']), (self.states(), [*self.hooks]))

    def test_no_hook_is_run_for_a_host_that_is_not_empty_whatever_its_drain_says(self):
        work = self.begin('a')
        work.advance()
        self.empty('a')
        self.servers['a'] = [WEB]
        for _ in range(2):
            work.advance()
        self.assertEqual(([m.DRAINING], {}), (self.states(), self.hooks))
        self.assertIn('not empty any more', self.said[-1])
        self.servers.clear()
        self.service_of['a'] = snapshot.Service(state='up', status='enabled')
        for _ in range(2):
            work.advance()
        self.assertEqual(([m.DRAINING], {}), (self.states(), self.hooks))
        self.service_of.clear()
        work.advance()
        self.assertEqual([m.HOOK], self.states())

    def test_a_host_that_was_emptied_before_and_is_not_any_more_is_drained_again(self):
        self.drains.request([dataclasses.replace(self.drain('a', ()), uuid='of old')])
        self.empty('a')
        self.servers['a'] = [WEB]
        self.begin('a').advance()
        self.assertEqual([drains.RELEASED, drains.REQUESTED], [
            self.drains.get(uuid).state for uuid in ('of old', 'drain of a')])

    def test_as_many_as_fit_are_serviced_together(self):
        work = self.begin(batch=2)
        work.advance()
        self.assertEqual([m.DRAINING, m.DRAINING, m.WAITING], self.states())

    def test_fewer_where_not_as_many_can_be_empty_at_once(self):
        self.fit = 1
        work = self.begin(batch=2)
        work.advance()
        self.assertEqual([m.DRAINING, m.WAITING, m.WAITING], self.states())

    def test_a_host_is_not_released_before_its_compute_reports(self):
        work = self.begin_to_service('a')
        self.service_of['a'] = DOWN
        self.hooks['a'].status = 0
        work.advance()
        work.advance()
        self.assertEqual(drains.EMPTY, self.drains.latest('a').state)
        self.service_of['a'] = UP
        work.advance()
        self.assertEqual(drains.RELEASING, self.drains.latest('a').state)

    def test_a_hook_that_fails_stops_the_maintenance_and_leaves_the_host_disabled(self):
        work = self.begin_to_service()
        self.hooks['a'].status = 7
        work.advance()
        work.advance()
        self.assertEqual([m.FAILED, m.WAITING, m.WAITING], self.states())
        self.assertEqual(drains.EMPTY, self.drains.latest('a').state)
        self.assertIn('the hook ended with 7', self.said[-1])

    def test_without_a_hook_an_operator_reports_that_it_is_done(self):
        work = self.begin_to_service('a', hook=None)
        self.assertEqual([m.HOOK], self.states())
        self.assertIn('maintenance done a', self.said[-1])
        self.assertFalse(self.known.set_host('m', 'a', m.RETURNING, (m.FAILED,)))
        self.known.set_host('m', 'a', m.RETURNING, (m.HOOK,))
        work.advance()
        self.assertEqual(drains.RELEASING, self.drains.latest('a').state)

    def test_a_run_that_died_goes_on_where_it_was(self):
        self.begin().advance()
        self.empty('a')
        work = self.run_anew()
        work.advance()
        work.advance()
        self.assertEqual([m.HOOK, m.WAITING, m.WAITING], self.states())
        self.assertEqual(1, len(self.drains.in_states((drains.EMPTY,))))

    def test_one_that_is_stopped_begins_with_no_further_host(self):
        work = self.begin()
        work.advance()
        self.known.set_state('m', m.STOPPED)
        self.empty('a')
        for _ in range(2):
            work.advance()
        self.hooks['a'].status = 0
        for _ in range(2):
            work.advance()
        self.released('a')
        work.advance()
        self.assertEqual([m.FINISHED, m.WAITING, m.WAITING], self.states())

    def test_a_released_host_is_left_out_and_the_others_are_serviced(self):
        work = self.begin()
        work.advance()
        fixtures.bring(self.drains, self.drains.latest('a'), drains.RELEASING)
        work.advance()
        work.advance()
        self.assertEqual([m.LEFT_OUT, m.DRAINING, m.WAITING], self.states())

    def test_a_host_that_is_released_while_it_is_serviced_by_hand_is_left_out(self):
        work = self.begin('a', hook=None)
        work.advance()
        self.empty('a')
        work.advance()
        fixtures.bring(self.drains, self.drains.latest('a'), drains.RELEASED)
        work.advance()
        self.assertEqual([m.LEFT_OUT], self.states())

    def test_a_host_whose_released_drain_is_deleted_ends_no_run(self):
        for state, then in ((m.DRAINING, m.LEFT_OUT), (m.HOOK, m.LEFT_OUT),
                            (m.RETURNING, m.FINISHED)):
            self.begin('a')
            self.known.set_host('m', 'a', state)
            self.run_anew().advance()
            self.assertEqual((state, [then]), (state, self.states()))
            with self.known.database.writer() as session:
                session.execute(sa.delete(models.MaintenanceRow))

    def test_a_stop_while_it_is_found_out_what_fits_holds(self):
        work = self.begin()
        work.dependencies = dataclasses.replace(
            work.dependencies,
            fits=lambda wanted, _later: wanted * self.known.set_state('m', m.STOPPED))
        work.advance()
        self.assertEqual([m.WAITING] * 3, self.states())

    def test_a_hook_that_failed_is_run_again_by_the_same_run(self):
        work = self.begin_to_service('a')
        self.hooks.pop('a').status = 7
        work.advance()
        self.known.set_host('m', 'a', m.HOOK)
        work.advance()
        self.assertIsNone(self.hooks['a'].status)

    def test_a_hook_whose_end_cannot_be_recorded_is_not_run_again(self):
        work = self.begin_to_service('a')
        self.hooks.pop('a').status = 0

        def fail(*_args):
            raise db_exc.DBConnectionError
        with MonkeyPatch('kronos_nova.db.maintenances.Maintenances.set_host', fail):
            self.assertRaises(db_exc.DBConnectionError, work.advance)
        work.advance()
        self.assertEqual(([m.RETURNING], {}), (self.states(), self.hooks))

    def test_a_hook_is_not_run_again_for_a_host_that_was_opened_and_is_full(self):
        self.begin_to_service('a')
        self.known.set_host('m', 'a', m.FAILED)
        fixtures.bring(self.drains, self.drains.latest('a'), drains.RELEASED)
        self.servers['a'] = [WEB]
        self.hooks.clear()
        self.known.set_host('m', 'a', m.HOOK)
        self.run_anew().advance()
        self.assertEqual(([m.LEFT_OUT], {}), (self.states(), self.hooks))

    def test_a_run_that_goes_on_runs_no_hook_for_a_host_that_got_servers_meanwhile(self):
        self.begin_to_service('a')
        self.hooks.clear()
        self.servers['a'] = [WEB]
        work = self.run_anew()
        work.advance()
        work.advance()
        self.assertEqual(([m.DRAINING], {}), (self.states(), self.hooks))
        self.servers.clear()
        work.advance()
        work.advance()
        self.assertEqual(([m.HOOK], ['a']), (self.states(), [*self.hooks]))

    def test_what_cannot_be_told_of_one_host_is_not_in_the_way_of_the_hook_of_another(self):
        work = self.begin('a', 'b', batch=2)
        work.advance()
        self.empty('b')

        def service(host):
            if host == 'a':
                raise exception.NovaClientError(instance=host, reason='its cell does not answer')
            return UP
        fixtures.bring(self.drains, self.drains.latest('a'), drains.EMPTY)
        work.dependencies = dataclasses.replace(work.dependencies, hosts=_Hosts(service))
        for _ in range(3):
            work.advance()
        self.assertEqual([m.DRAINING, m.HOOK], self.states())
        self.assertEqual(['b'], [*self.hooks])
        self.assertTrue(any('its cell does not answer' in line for line in self.said))

    def begin_without_a(self, **options):
        """Begin a maintenance, and then remove its first host from Nova."""
        work = self.begin(**options)

        def drain(host, avoid):
            if self.service(host) is None:
                raise exception.NotInScope(what=f'Host {host}', problem='is gone', remedy='')
            return self.drain(host, avoid)
        work.dependencies = dataclasses.replace(work.dependencies, drain=drain)
        return work

    def check_removed_before_its_turn(self, **options):
        work = self.begin_without_a(**options)
        self.service_of['a'] = None
        work.advance()
        work.advance()
        self.assertEqual([m.LEFT_OUT, m.DRAINING], self.states()[:2])
        self.assertIn('a: left out: Nova has no nova-compute of that name any more', self.said)

    def test_a_host_that_is_removed_before_its_turn_is_left_out_and_the_others_are_serviced(self):
        self.check_removed_before_its_turn()

    def test_a_host_that_is_removed_is_left_out_of_a_batch(self):
        self.check_removed_before_its_turn(batch=2)

    def check_removed_while_emptied(self, state):
        work = self.begin_without_a()
        work.advance()
        fixtures.bring(self.drains, self.drains.latest('a'), state)
        self.service_of['a'] = None
        work.advance()
        self.assertEqual([m.LEFT_OUT, m.DRAINING, m.WAITING], self.states())
        self.assertEqual(drains.RELEASING, self.drains.latest('a').state)

    def test_a_host_that_is_removed_once_it_is_empty_is_left_out(self):
        self.check_removed_while_emptied(drains.EMPTY)

    def test_a_host_that_is_removed_while_it_is_emptied_is_left_out(self):
        """The worker that disables hosts notices it, and ends the drain."""
        work = self.begin_without_a()
        work.advance()
        fixtures.bring(self.drains, self.drains.latest('a'), drains.RELEASED)
        self.service_of['a'] = None
        work.advance()
        self.assertEqual([m.LEFT_OUT, m.DRAINING, m.WAITING], self.states())
        self.assertIn('a: left out: Nova has no nova-compute of that name any more', self.said)

    def test_nova_is_not_asked_while_a_drain_is_in_progress(self):
        work = self.begin('a')
        work.advance()
        asked = []
        self.service_of = FakeServices(asked)
        for state in (drains.REQUESTED, drains.DRAINING, drains.BLOCKED):
            fixtures.bring(self.drains, self.drains.latest('a'), state)
            work.advance()
        self.assertEqual([], asked)
        self.empty('a')
        work.advance()
        self.assertEqual(['a', 'a'], asked)
        self.assertEqual([m.HOOK], self.states())

    def test_a_host_that_is_removed_after_the_deadline_of_its_drain_is_left_out(self):
        self.check_removed_while_emptied(drains.OVERDUE)

    def begin_with_a_outside(self, **options):
        """Begin a maintenance, and then take its first host out of the scope."""
        work = self.begin(**options)

        def drain(host, avoid):
            if host == 'a':
                raise exception.NotInScope(what='Host a', problem='is in no aggregate in scope',
                                           remedy='')
            return self.drain(host, avoid)
        work.dependencies = dataclasses.replace(work.dependencies, drain=drain)
        return work

    def test_a_host_that_left_the_scope_before_its_turn_is_left_out_and_the_others_serviced(self):
        work = self.begin_with_a_outside()
        work.advance()
        work.advance()
        self.assertEqual([m.LEFT_OUT, m.DRAINING, m.WAITING], self.states())
        self.assertIn('a: left out: Host a: is in no aggregate in scope', self.said[0])

    def test_a_host_that_left_the_scope_is_left_out_of_a_batch(self):
        self.begin_with_a_outside(batch=2).advance()
        self.assertEqual([m.LEFT_OUT, m.DRAINING, m.WAITING], self.states())

    def test_a_host_that_left_the_scope_is_left_out_after_the_deadline_of_its_drain(self):
        self.drains.request([self.drain('a', ())])
        work = self.begin_with_a_outside()
        work.advance()
        self.assertEqual([m.DRAINING, m.WAITING, m.WAITING], self.states())
        fixtures.bring(self.drains, self.drains.latest('a'), drains.OVERDUE)
        work.advance()
        self.assertEqual([m.LEFT_OUT, m.DRAINING, m.WAITING], self.states())

    def check_returns_never(self, service):
        """Service a host whose nova-compute does not report any more."""
        work = self.begin_to_service()
        self.hooks['a'].status = 0
        self.service_of['a'] = service
        for _ in range(3):
            work.advance()
        self.assertEqual([m.RETURNING, m.WAITING, m.WAITING], self.states())
        self.assertIn('"kronos-manage host release a" continues without it', self.said[-1])
        self.released('a')
        work.advance()
        self.assertEqual([m.FINISHED, m.DRAINING, m.WAITING], self.states())

    def test_a_serviced_host_that_is_removed_is_waited_for_until_it_is_released(self):
        self.check_returns_never(None)

    def test_a_serviced_host_that_stays_down_is_waited_for_until_it_is_released(self):
        self.check_returns_never(DOWN)

    def test_a_host_of_a_cell_that_does_not_answer_is_not_left_out(self):
        work = self.begin()

        def service(host):
            raise exception.NovaClientError(instance=host, reason='its cell does not answer')
        work.dependencies = dataclasses.replace(work.dependencies, hosts=_Hosts(service))
        work.advance()
        self.assertEqual([m.WAITING] * 3, self.states())
        self.assertIn('its cell does not answer', self.said[-1])

    def test_a_host_that_is_not_there_any_more_ends_no_run(self):
        def fits(_wanted, _later):
            raise exception.ConfigurationError(what='Host b', problem='is gone', remedy='')
        work = self.begin('a', 'b', 'c', batch=2)
        work.dependencies = dataclasses.replace(work.dependencies, fits=fits)
        work.advance()
        self.assertIn('is gone', self.said[-1])

    def test_a_host_that_is_just_being_released_is_waited_for(self):
        made = self.drain('a', ())
        self.drains.request([made])
        fixtures.bring(self.drains, made, drains.RELEASING)
        work = self.begin('a')
        self.drain = lambda host, _avoid: dataclasses.replace(
            made, uuid='later', requested_at=self.clock())
        self.clock.go(1)
        work.dependencies = dataclasses.replace(work.dependencies, drain=self.drain)
        work.advance()
        self.assertEqual([m.WAITING], self.states())
        self.released('a')
        work.advance()
        self.assertEqual([m.DRAINING], self.states())

    def test_a_process_that_ends_gives_the_maintenance_back(self):
        self.begin()
        now = self.clock()
        self.known.acquire('m', 'one', now, now)
        self.known.give_back('m', 'one')
        self.assertTrue(self.known.acquire('m', 'two', now, now))

    def test_one_that_is_ended_is_not_continued_and_another_may_begin(self):
        work = self.begin()
        work.advance()
        self.known.set_state('m', m.DONE)
        self.empty('a')
        self.assertEqual(m.DONE, work.advance().state)
        self.assertEqual([m.DRAINING, m.WAITING, m.WAITING], self.states())
        self.assertIsNone(self.known.current())
        self.assertFalse(self.known.set_state('m', m.STOPPED))
        self.assertEqual(m.DONE, self.known.get('m').state)

    def test_two_maintenances_are_not_run_at_once_nor_one_by_two(self):
        self.begin()
        self.assertRaises(exception.MaintenancePending, self.known.begin,
                          dataclasses.replace(self.known.get('m'), uuid='other'))
        now = self.clock()
        self.assertTrue(self.known.acquire('m', 'one', now, now))
        self.assertFalse(self.known.acquire('m', 'two', now, now))
        self.clock.go(60)
        self.assertTrue(self.known.acquire('m', 'two', self.clock(), self.clock()))
