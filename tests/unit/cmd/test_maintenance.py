"""``kronos-manage maintenance``: what an operator types while one runs, and what happens then."""

import dataclasses
import datetime
import json
import os
import signal
import types

from oslo_db import exception as db_exc

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.cmd import maintenance as commands
from kronos_nova.cmd import maintenance_runner
from kronos_nova.cmd import manage
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.objects import maintenance as m
from kronos_nova.objects import snapshot
from tests.unit.cmd import test_host


class MaintenanceTest(test_host.HostTestCase):
    def setUp(self):
        super().setUp()
        self.known = Maintenances(self.database)
        self.patch(commands, 'LOOK_SECONDS', 0)
        self.ended = 0

    def begin(self, state=m.RUNNING, hook='reboot', **hosts):
        self.known.begin(m.Maintenance(
            uuid='m', state=state, requested_by='jane', requested_at=clock.utcnow(),
            options=m.MaintenanceOptions(hook=hook), hosts=hosts or {'a': m.HOOK}))

    def runs_since(self, seconds):
        long_ago = clock.utcnow() - datetime.timedelta(seconds=seconds)
        self.known.acquire('m', 'another', long_ago, long_ago)

    def script(self, *results):
        """Script the steps of a run, and count how often its hooks are ended."""
        left = iter(results)

        def advance(_work):
            result = next(left)
            if isinstance(result, Exception):
                raise result
            return result()
        self.patch(maintenance_runner.MaintenanceRunner, 'advance', advance)
        self.patch(maintenance_runner.MaintenanceRunner, 'end',
                   lambda _work: setattr(self, 'ended', self.ended + 1))

    def finished(self):
        self.assertEqual(0, self.ended)
        self.known.set_host('m', 'a', m.FINISHED)
        return self.known.get('m')

    def test_it_is_said_how_long_it_takes_although_a_host_is_empty(self):
        for server, host in self.cloud.placed.items():
            self.cloud.placed[server] = 'a' if host == 'b' else host

        def advance(work):
            self.known.set_state(work.uuid, m.DONE)
            return self.known.get(work.uuid)
        self.patch(maintenance_runner.MaintenanceRunner, 'advance', advance)
        for hosts in (['a'], ['a', 'b']):
            said = self.manage('maintenance', 'run', *hosts, expected=commands.STOPPED)
            self.assertIn('to move at least once, about ', said)

    def test_hosts_of_an_aggregate_that_cannot_be_read_are_not_left_out(self):
        read = self.cloud.read
        self.cloud.read = lambda: dataclasses.replace(
            read(), unread={'gpu': 'cell one does not answer'})
        for which in (('--aggregate', 'gpu'), ('--domain', 'rack=r1')):
            self.assertIn('aggregate gpu: cell one does not answer',
                          self.manage('maintenance', 'run', *which, expected=1))
        self.assertIsNone(self.known.current())

    def test_policies_that_cannot_be_read_end_neither_the_run_nor_its_hooks(self):
        self.begin()
        self.script(exception.PoliciesUnreadable(problem='is not YAML'), self.finished)
        said = self.manage('maintenance', 'resume')
        self.assertIn('is tried again soon: The request was refused, because the policies file',
                      said)
        self.assertIn('All hosts are serviced.', said)

    def test_a_database_that_is_away_ends_neither_the_run_nor_its_hooks(self):
        self.begin()
        self.script(db_exc.DBConnectionError(ValueError('gone away')), self.finished)
        acquire, answers = Maintenances.acquire, iter([True, False])

        def flaky(known, *args):
            if next(answers, True):
                return acquire(known, *args)
            raise db_exc.DBConnectionError(ValueError('gone away'))
        self.patch(Maintenances, 'acquire', flaky)
        said = self.manage('maintenance', 'resume')
        self.assertEqual(
            1, said.count('is tried again soon: A database does not answer, or refuses'))
        self.assertIn('All hosts are serviced.', said)

    def signalled(self, number, handler):
        """Resume a maintenance to which a signal is sent, with what the signal does before."""
        self.addCleanup(signal.signal, number, signal.signal(number, handler))
        self.begin()
        self.script(lambda: os.kill(os.getpid(), number) or self.known.get('m'), self.finished)
        try:
            return manage.main([f'--config-file={self.config}', 'maintenance', 'resume'])
        finally:
            self.assertEqual((1, None), (self.ended, self.known.get('m').runner))
            self.assertIs(handler, signal.getsignal(number))

    def test_a_signal_ends_the_hooks_and_gives_the_run_back(self):
        self.assertEqual(commands.STOPPED, self.signalled(signal.SIGTERM, lambda *_: None))
        self.assertEqual({'a': m.HOOK}, self.known.get('m').hosts)

    def test_so_does_the_end_of_its_terminal(self):
        self.assertEqual(commands.STOPPED, self.signalled(signal.SIGHUP, lambda *_: None))

    def test_under_nohup_the_end_of_its_terminal_changes_nothing(self):
        self.assertEqual(commands.DONE, self.signalled(signal.SIGHUP, signal.SIG_IGN))

    def test_a_run_that_cannot_be_given_back_ends_as_it_was(self):
        self.begin()
        self.script(self.finished)

        def give_back(*_args):
            raise db_exc.DBConnectionError
        self.patch(Maintenances, 'give_back', give_back)
        self.assertIn('All hosts are serviced.', self.manage('maintenance', 'resume'))

    def test_it_is_heard_of_before_each_reading_of_a_cloud_that_may_be_large(self):
        self.begin()
        heard = []

        def check(wanted):
            heard.append(self.known.get('m').runner_at)
            return self.cloud.read(), [('gpu', wanted, types.SimpleNamespace(
                blocked=len(wanted) > 1))]
        checker = types.SimpleNamespace(check=check, cloud=types.SimpleNamespace(hosts=None),
                                        lowered_failover=lambda *_args: '')
        dependencies = commands.Run(None, None)._dependencies(checker, self.known, 'm')
        self.assertEqual(['a'], dependencies.fits(['a', 'b'], []))
        self.assertEqual('a', dependencies.drain('a', ()).host)
        self.assertEqual(2, len({*heard} - {None}))

    def test_a_host_that_left_the_scope_stops_no_batch(self):
        self.begin(a=m.WAITING, b=m.WAITING)
        self.cloud.placed.clear()

        def advance(work):
            self.assertEqual(['a'], work.dependencies.fits(['a', 'removed'], []))
            self.assertEqual(['removed'], work.dependencies.fits(['removed', 'a'], []))
            self.assertRaises(exception.NotInScope, work.dependencies.drain, 'removed', ())
            self.known.set_state('m', m.DONE)
            return self.known.get('m')
        self.patch(maintenance_runner.MaintenanceRunner, 'advance', advance)
        self.manage('maintenance', 'resume', expected=commands.STOPPED)

    def test_the_last_hosts_of_an_aggregate_are_not_serviced_at_once(self):
        self.cloud.placed.clear()
        self.begin(a=m.WAITING, b=m.WAITING, c=m.WAITING)

        def advance(work):
            self.assertEqual(['a', 'b'], work.dependencies.fits(['a', 'b', 'c'], []))
            self.drain('b')
            self.drain('c')
            self.assertRaises(exception.DrainRefused, work.dependencies.drain, 'a', ())
            self.known.set_state('m', m.DONE)
            return self.known.get('m')
        self.patch(maintenance_runner.MaintenanceRunner, 'advance', advance)
        self.manage('maintenance', 'resume', expected=commands.STOPPED)

    def test_the_only_host_of_an_aggregate_is_serviced_where_its_drain_is_forced(self):
        self.cloud.placed.clear()
        self.drain('b')
        self.drain('c')
        said = self.manage('maintenance', 'run', 'a', expected=1)
        self.assertIn('Aggregate gpu would have no host left', said)
        self.assertIsNone(self.known.current())
        self.manage('host', 'drain', 'a', '--force')

        def advance(work):
            self.known.set_host(work.uuid, 'a', m.FINISHED)
            return self.known.get(work.uuid)
        self.patch(maintenance_runner.MaintenanceRunner, 'advance', advance)
        self.assertIn('All hosts are serviced.', self.manage('maintenance', 'run', 'a'))

    def test_hosts_after_which_others_could_not_be_lost_are_serviced_with_force_only(self):
        self.configure('aggregates = gpu\nfailover_hosts = 1')
        said = self.manage('maintenance', 'run', 'a', expected=1)
        self.assertIn('After this drain, the servers of b could not all restart elsewhere', said)
        self.assertIsNone(self.known.current())

        def advance(work):
            self.assertEqual('a', work.dependencies.drain('a', ()).host)
            self.known.set_host(work.uuid, 'a', m.FINISHED)
            return self.known.get(work.uuid)
        self.patch(maintenance_runner.MaintenanceRunner, 'advance', advance)
        self.manage('maintenance', 'run', 'a', '--force')

    def test_a_later_host_is_refused_once_others_could_not_be_lost_after_it(self):
        self.configure('aggregates = gpu\nfailover_hosts = 1')
        self.begin(a=m.WAITING)

        def advance(work):
            self.assertRaises(exception.DrainRefused, work.dependencies.drain, 'a', ())
            self.known.set_state('m', m.DONE)
            return self.known.get('m')
        self.patch(maintenance_runner.MaintenanceRunner, 'advance', advance)
        self.manage('maintenance', 'resume', expected=commands.STOPPED)

    def test_hosts_that_were_left_out_were_not_serviced(self):
        self.begin(a=m.FINISHED, b=m.LEFT_OUT)
        self.script(lambda: self.known.get('m'))
        said = self.manage('maintenance', 'resume', expected=commands.STOPPED)
        self.assertIn('left out, and not serviced: b.', said)
        self.assertIsNone(self.known.current())

    def test_a_host_is_not_serviced_while_its_hook_runs(self):
        self.begin()
        self.runs_since(1)
        self.assertIn('a hook that still runs', self.manage('maintenance', 'done', 'a', expected=1))
        self.assertEqual({'a': m.HOOK}, self.known.get('m').hosts)

    def test_one_whose_run_has_died_may_be_said_to_be_serviced(self):
        self.begin()
        self.runs_since(99)
        self.assertIn('no process runs the maintenance', self.manage('maintenance', 'done', 'a'))
        self.assertEqual({'a': m.RETURNING}, self.known.get('m').hosts)

    def test_it_shows_how_many_hosts_are_serviced_and_until_when_it_lasts(self):
        self.begin(a=m.FINISHED, b=m.HOOK, c=m.WAITING)
        self.assertIn('1 of 3 hosts serviced, running until about ',
                      self.manage('maintenance', 'show'))
        self.assertEqual(3, len(json.loads(self.manage('maintenance', 'show', '-f', 'json'))))
        self.known.set_state('m', m.STOPPED)
        self.assertIn('1 of 3 hosts serviced, stopped\n', self.manage('maintenance', 'show'))

    def test_the_hosts_that_are_left_take_as_long_as_those_before_them(self):
        began = clock.utcnow()
        found = m.Maintenance(
            uuid='m', state=m.RUNNING, requested_by='jane', requested_at=began,
            options=m.MaintenanceOptions(), hosts={'a': m.FINISHED, 'b': m.HOOK, 'c': m.WAITING,
                                                   'd': m.LEFT_OUT})
        self.assertEqual(began + datetime.timedelta(seconds=300),
                         found.expected_end(began + datetime.timedelta(seconds=100)))
        self.assertIsNone(dataclasses.replace(found, hosts={'a': m.HOOK}).expected_end(began))

    def test_hosts_are_named_or_those_of_an_aggregate_or_a_domain(self):
        cloud = snapshot.Snapshot(
            taken_at='', instances=(), hosts=tuple(snapshot.Host(
                name=name, uuid=name, inventory={}, domains={'rack': 'r1'} if name == 'c' else {},
                service=snapshot.Service(state='up', status='enabled')) for name in 'abc'),
            aggregates=(
                snapshot.Aggregate(name='gpu', uuid='g', hosts=('b', 'a')),
                snapshot.Aggregate(name='new', uuid='n', hosts=())))

        def hosts(aggregate=None, *named, domain=None):
            return commands.hosts_of(types.SimpleNamespace(
                hosts=list(named), aggregate=aggregate, domain=domain), cloud)
        self.assertEqual((['a', 'b'], ['c']), (hosts('gpu'), hosts(None, 'c', 'c')))
        self.assertEqual(['c'], hosts(domain='rack=r1'))
        for wrong in ((), ('gpu', 'c'), ('nope',), ('new',)):
            self.assertRaises(exception.ConfigurationError, hosts, *wrong)
        self.assertRaises(exception.ConfigurationError, hosts, 'gpu', domain='rack=r1')
        self.assertRaises(exception.RequestRefused, hosts, domain='rack=r2')

    def test_one_that_ended_just_now_is_neither_stopped_nor_resumed(self):
        self.begin(a=m.FAILED)
        found = self.known.get('m')
        self.known.set_state('m', m.DONE)
        self.patch(Maintenances, 'current', lambda _known: found)
        for word in ('stop', 'end', 'resume'):
            self.manage('maintenance', word, expected=1)
        self.assertEqual((m.DONE, {'a': m.FAILED}),
                         (self.known.get('m').state, self.known.get('m').hosts))
