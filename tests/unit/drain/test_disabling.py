"""Hosts are disabled when their drain begins, and enabled when they are released."""

import dataclasses
import datetime
import types

import fixtures as testfixtures
import testtools

from kronos_nova import exception
from kronos_nova.db import cycles
from kronos_nova.db import drains as db_drains
from kronos_nova.db import journal as db_journal
from kronos_nova.drain import disabling
from kronos_nova.drain import states as drains
from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from tests.unit.db import fixtures

DAY, HOUR = 86400, 3600


class RecordedHosts:
    """Answers as the test sets, and carries out requests."""

    def __init__(self):
        self.services = {'a': snapshot.Service(state='up', status='enabled')}
        self.is_silent = False
        self.servers, self.elsewhere, self.asked = [], {}, []

    def stop(self, server):
        self.asked.append(('stop', server))

    def start(self, server):
        self.asked.append(('start', server))

    def put(self, **statuses):
        """Have servers with these statuses on the host, some of them busy or locked."""
        self.servers = [ServerOnHost(
            uuid=uuid, name=uuid, status=status.partition(' ')[0],
            task_state='busy' if ' busy' in status else None, is_locked=' locked' in status)
            for uuid, status in statuses.items()]

    def servers_on(self, _host):
        return self.servers

    def server(self, uuid):
        status = self.elsewhere.get(uuid)
        return status and ServerOnHost(uuid=uuid, name=uuid, status=status)

    def service(self, host):
        if self.is_silent:
            raise exception.NovaClientError(instance=host, reason='timed out')
        return self.services.get(host)

    def disable(self, host, reason):
        self.services[host] = snapshot.Service(state='up', status='disabled',
                                               disabled_reason=reason)

    def enable(self, host):
        self.services[host] = snapshot.Service(state='up', status='enabled')


class RecordedMasakari:
    """``watched`` are the hosts that it would act for."""

    def __init__(self):
        self.watched, self.is_silent = {'a', 'b'}, False

    def is_watched(self, host):
        return host in self.watched

    def watch(self, host, is_watched):
        if self.is_silent:
            raise exception.NovaClientError(instance=host, reason='masakari does not answer')
        (self.watched.add if is_watched else self.watched.discard)(host)


class DrainTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        database = self.useFixture(fixtures.ControlDatabase()).database
        self.nova = RecordedHosts()
        self.board = db_drains.Drains(database)
        self.service_journal = db_journal.Journal(database, 'one')
        self.passed = 0.0    # seconds of the service's own
        self.service = disabling.DrainService(types.SimpleNamespace(
            journal=self.service_journal, utcnow=self.clock, aggregates=['gpu'],
            seconds=lambda: self.clock().timestamp() + self.passed), self.nova,
            ha=RecordedMasakari())

    def step_the_clock(self, seconds):
        """Change the shared time, while no time passes."""
        self.clock.go(seconds)
        self.passed -= seconds

    def request(self, **what):
        self.board.request([drains.Drain(**{
            'uuid': 'd', 'host': 'a', 'aggregate': 'gpu', 'state': drains.REQUESTED,
            'requested_by': 'jane', 'requested_at': self.clock(), 'reason': 'new disks', **what})])

    def state(self):
        return self.board.get('d').state

    def release(self):
        fixtures.bring(self.board, self.board.get('d'), drains.RELEASING)


class DrainingTest(DrainTestCase):
    def test_a_host_that_ha_took_for_failed_in_the_middle_is_enabled_in_the_end(self):
        self.request()
        self.service.tick()
        self.nova.disable('a', 'Masakari detected host failed.')
        self.release()
        self.service.tick()
        self.assertEqual('enabled', self.nova.services['a'].status)
        self.assertEqual(drains.RELEASED, self.state())

    def test_a_host_that_ha_took_for_failed_between_two_drains_is_enabled_in_the_end(self):
        self.request()
        self.service.tick()
        fixtures.bring(self.board, self.board.get('d'), drains.EMPTY)
        self.nova.disable('a', 'Masakari detected host failed.')
        self.request(uuid='again')
        self.service.tick()
        fixtures.bring(self.board, self.board.get('again'), drains.RELEASING)
        self.service.tick()
        self.assertEqual('enabled', self.nova.services['a'].status)

    def test_ha_leaves_a_host_alone_while_it_is_drained(self):
        self.request()
        self.service.tick()
        self.assertEqual({'b'}, self.service.ha.watched)
        self.release()
        self.service.tick()
        self.assertEqual({'a', 'b'}, self.service.ha.watched)

    def test_ha_watches_a_host_again_that_is_enabled_by_hand(self):
        self.request()
        self.service.tick()
        self.nova.enable('a')
        self.clock.go(60)
        self.service.tick()
        self.assertEqual((drains.RELEASED, {'a', 'b'}), (self.state(), self.service.ha.watched))

    def test_ha_that_an_operator_has_told_to_leave_a_host_alone_still_does(self):
        self.service.ha.watched = {'b'}
        self.request()
        self.service.tick()
        self.release()
        self.service.tick()
        self.assertEqual({'b'}, self.service.ha.watched)

    def test_a_host_is_drained_once_more_and_then_watched_again(self):
        self.request(deadline=self.clock() + datetime.timedelta(minutes=5))
        self.service.tick()
        self.clock.go(301)
        self.service.tick()
        self.assertEqual((drains.OVERDUE, {'b'}), (self.state(), self.service.ha.watched))
        self.request(uuid='again')
        self.service.tick()
        fixtures.bring(self.board, self.board.get('again'), drains.RELEASING)
        self.service.tick()
        self.assertEqual({'a', 'b'}, self.service.ha.watched)

    def test_a_worker_that_dies_before_ha_knows_and_one_that_dies_after(self):
        self.request()
        self.service.ha.is_silent = True
        self.service.tick()
        self.assertEqual((drains.REQUESTED, 'enabled'),
                         (self.state(), self.nova.services['a'].status))
        self.service.ha.is_silent = False
        self.service.tick()
        self.assertEqual((drains.DRAINING, {'b'}), (self.state(), self.service.ha.watched))

    def test_a_host_is_not_released_before_ha_watches_it_again(self):
        self.request()
        self.service.tick()
        self.release()
        self.service.ha.is_silent = True
        self.service.tick()
        self.assertEqual((drains.RELEASING, {'b'}), (self.state(), self.service.ha.watched))
        self.service.ha.is_silent = False
        self.service.tick()
        self.assertEqual((drains.RELEASED, {'a', 'b'}), (self.state(), self.service.ha.watched))

    def test_the_reasons_of_ha_are_those_of_the_option(self):
        self.service.ha_reasons = lambda: ['fenced']
        self.request()
        self.service.tick()
        self.nova.disable('a', 'fenced by pacemaker')
        self.release()
        self.service.tick()
        self.assertEqual('enabled', self.nova.services['a'].status)

    def test_what_ha_had_disabled_before_the_drain_stays_disabled(self):
        self.nova.disable('a', 'Masakari detected host failed.')
        self.request()
        self.service.tick()
        self.release()
        self.service.tick()
        self.assertEqual('disabled', self.nova.services['a'].status)

    def test_what_an_operator_disables_in_the_middle_stays_disabled(self):
        self.request()
        self.service.tick()
        self.nova.disable('a', 'broken fan')
        self.release()
        self.service.tick()
        self.assertEqual('disabled', self.nova.services['a'].status)

    def test_the_host_is_disabled_with_who_and_why_and_enabled_in_the_end(self):
        self.request()
        self.service.tick()
        self.assertEqual('kronos drain by jane: new disks',
                         self.nova.services['a'].disabled_reason)
        self.assertEqual(drains.DRAINING, self.state())
        self.release()
        self.service.tick()
        self.assertEqual('enabled', self.nova.services['a'].status)
        self.assertEqual(drains.RELEASED, self.state())

    def test_a_host_that_was_disabled_before_stays_disabled(self):
        self.nova.services['a'] = snapshot.Service(state='up', status='disabled',
                                                   disabled_reason='broken fan')
        self.request()
        self.service.tick()
        self.release()
        self.service.tick()
        self.assertEqual('broken fan', self.nova.services['a'].disabled_reason)
        self.assertEqual(drains.RELEASED, self.state())

    def test_a_host_that_an_operator_disabled_since_stays_disabled(self):
        self.request()
        self.service.tick()
        self.nova.disable('a', 'broken fan')
        self.release()
        self.service.tick()
        self.assertEqual('broken fan', self.nova.services['a'].disabled_reason)

    def test_a_host_that_is_enabled_by_hand_is_not_drained_any_more(self):
        for state in (drains.DRAINING, drains.EMPTY):
            self.nova.services['a'] = snapshot.Service(state='up', status='enabled')
            self.request(uuid=state)
            self.service.tick()
            fixtures.bring(self.board, self.board.get(state), state)
            self.clock.go(60)
            self.service.tick()
            self.assertEqual(state, self.board.get(state).state)
            self.nova.enable('a')
            self.clock.go(60)
            self.service.tick()
            self.assertEqual(drains.RELEASED, self.board.get(state).state)

    def test_a_host_that_is_not_empty_any_more_is_drained_further(self):
        self.request()
        self.service.tick()
        fixtures.bring(self.board, self.board.get('d'), drains.EMPTY)
        unsettled = ServerOnHost(uuid='vm', name='web', status='VERIFY_RESIZE', is_unsettled=True)
        self.nova.servers = [unsettled]
        self.clock.go(60)
        self.service.tick()
        self.assertEqual(drains.EMPTY, self.state())
        self.nova.servers = [dataclasses.replace(unsettled, status='ACTIVE', is_unsettled=False)]
        self.clock.go(60)
        self.service.tick()
        self.assertEqual((drains.DRAINING, 1), (self.state(), self.board.get('d').left))

    def test_a_deadline_that_passes_before_it_begins_disables_nothing(self):
        self.request(deadline=self.clock() + datetime.timedelta(minutes=5))
        self.clock.go(301)
        self.service.tick()
        self.assertEqual((drains.RELEASED, 'enabled'),
                         (self.state(), self.nova.services['a'].status))

    def disable_without_an_answer(self, host, reason):
        """Nova disables the host, and its answer is lost."""
        RecordedHosts.disable(self.nova, host, reason)
        raise exception.NovaClientError(instance=host, reason='timed out')

    def test_a_deadline_that_passes_before_nova_answers_leaves_the_drain_overdue(self):
        self.nova.disable = self.disable_without_an_answer
        self.request(deadline=self.clock() + datetime.timedelta(minutes=5))
        self.service.tick()
        self.assertEqual((drains.REQUESTED, 'disabled'),
                         (self.state(), self.nova.services['a'].status))
        self.clock.go(301)
        self.service.tick()
        self.assertEqual((drains.OVERDUE, 'disabled', {'b'}), (
            self.state(), self.nova.services['a'].status, self.service.ha.watched))
        self.release()
        self.service.tick()
        self.assertEqual((drains.RELEASED, 'enabled', {'a', 'b'}), (
            self.state(), self.nova.services['a'].status, self.service.ha.watched))

    def test_a_deadline_that_passes_while_nova_is_away_lets_ha_watch_the_host_again(self):
        self.request(deadline=self.clock() + datetime.timedelta(minutes=5))

        def refuse(host, reason):
            raise exception.NovaClientError(instance=host, reason='timed out')
        self.nova.disable = refuse
        self.service.tick()
        self.assertEqual((drains.REQUESTED, {'b'}), (self.state(), self.service.ha.watched))
        self.clock.go(301)
        self.service.tick()
        self.assertEqual((drains.RELEASED, {'a', 'b'}), (self.state(), self.service.ha.watched))

    def test_a_deadline_that_passes_starts_again_what_the_drain_before_has_stopped(self):
        self.request()
        self.board.note(self.board.get('d'), drains.ACTIVE, stopped={'s': drains.STOPPED})
        self.nova.put(s='SHUTOFF')
        fixtures.bring(self.board, self.board.get('d'), drains.OVERDUE)
        self.request(uuid='again', deadline=self.clock() + datetime.timedelta(minutes=5))
        self.clock.go(301)
        self.service.tick()
        self.service.tick()
        self.assertEqual([('start', 's')], self.nova.asked)

    def test_the_moves_of_a_host_that_is_opened_again_are_not_begun(self):
        journal = self.service_journal
        for uuid, host in (('d', 'a'), ('e', 'b')):
            self.nova.services.setdefault(host, self.nova.services['a'])
            self.request(uuid=uuid, host=host)
        self.service.tick()
        journal.record_plan(fixtures.report([('vm1', 'a', 'c'), ('vm2', 'b', 'c')]),
                            plans.EXECUTING, self.clock(), self.clock(), purpose=automation.DRAIN)
        self.board.end(self.board.get('d'), drains.ACTIVE, drains.RELEASING, self.clock(), 'jane')
        self.assertEqual({'vm1': moves.ABANDONED, 'vm2': moves.PLANNED}, {
            move.instance_uuid: move.state for move in journal.moves()})

    def test_a_host_that_is_released_while_it_is_disabled_is_opened_again(self):
        self.request()
        disable = self.nova.disable

        def disable_late(host, reason):
            self.release()
            self.service.tick()     # of another worker, which finds it enabled
            disable(host, reason)
        self.nova.disable = disable_late
        self.service.tick()
        self.assertEqual((drains.RELEASED, 'enabled'),
                         (self.state(), self.nova.services['a'].status))

    def evaluated(self):
        known = cycles.Cycles(self.board.database)
        known.begin('gpu', 'one', self.clock(), 1)
        known.end('gpu', self.clock(), plans.BALANCED, False, None)
        self.clock.go(1)
        self.assertEqual([], known.due(['gpu'], self.clock(), 300))
        return known

    def test_the_aggregate_of_a_released_host_is_evaluated_at_once(self):
        self.request()
        known = self.evaluated()
        self.service.tick()
        self.release()
        self.service.tick()
        self.assertEqual(drains.RELEASED, self.state())
        self.assertEqual(['gpu'], known.due(['gpu'], self.clock(), 300))

    def test_so_is_the_aggregate_of_a_host_that_is_enabled_by_hand(self):
        self.request()
        known = self.evaluated()
        self.service.tick()
        self.nova.enable('a')
        self.clock.go(disabling.LOOK_AGAIN_SECONDS)
        self.service.tick()
        self.assertEqual(drains.RELEASED, self.state())
        self.assertEqual(['gpu'], known.due(['gpu'], self.clock(), 300))

    def test_a_worker_that_died_between_nova_and_the_row_is_made_up_for(self):
        self.request()
        self.nova.disable('a', disabling.reason(self.board.get('d')))
        self.service.tick()
        self.assertEqual(drains.DRAINING, self.state())
        self.release()
        self.service.tick()
        self.assertEqual((drains.RELEASED, 'enabled'),
                         (self.state(), self.nova.services['a'].status))

    def test_a_nova_that_does_not_answer_is_asked_again(self):
        self.request()
        self.nova.is_silent = True
        self.service.tick()
        self.assertEqual(drains.REQUESTED, self.state())
        self.nova.is_silent = False
        self.service.tick()
        self.assertEqual(drains.DRAINING, self.state())

    def test_an_unexpected_error_of_one_drain_does_not_stop_the_others(self):
        self.nova.services['b'] = snapshot.Service(state='up', status='enabled')
        self.request(uuid='c')
        self.request(uuid='d', host='b')

        def service(host):
            if host == 'a':
                raise ValueError('what Nova never answers')
            return self.nova.services[host]
        self.nova.service = service
        self.assertRaisesRegex(ValueError, 'what Nova never answers', self.service.tick)
        self.assertEqual((drains.REQUESTED, drains.DRAINING),
                         (self.board.get('c').state, self.state()))

    def test_a_drain_is_given_up_at_its_deadline(self):
        self.request(deadline=self.clock() + datetime.timedelta(minutes=5))
        self.service.tick()
        self.clock.go(301)
        self.service.tick()
        self.assertEqual((drains.OVERDUE, 'disabled'),
                         (self.state(), self.nova.services['a'].status))

    def test_a_step_of_the_clock_neither_ends_a_drain_nor_prolongs_it(self):
        for step in (-DAY, -HOUR, HOUR, DAY):
            self.request(uuid=f'{step}', host=f'{step}',
                         deadline=self.clock() + datetime.timedelta(minutes=5))
            self.nova.services[f'{step}'] = snapshot.Service(state='up', status='enabled')
            self.service.tick()
            self.step_the_clock(step)
            self.service.tick()
            self.assertEqual(drains.DRAINING, self.board.get(f'{step}').state)
            self.clock.go(301)
            self.service.tick()
            self.assertEqual(drains.OVERDUE, self.board.get(f'{step}').state)

    def test_a_host_is_looked_at_also_after_the_clock_was_set_back(self):
        self.request()
        self.service.tick()
        self.clock.go(60)
        self.service.tick()
        self.step_the_clock(-DAY)
        self.nova.enable('a')
        self.clock.go(60)
        self.service.tick()
        self.assertEqual(drains.RELEASED, self.state())

    def test_the_drains_of_other_aggregates_are_left_to_others(self):
        self.request(aggregate='web')
        self.service.tick()
        self.assertEqual(drains.REQUESTED, self.state())

    def test_a_host_is_released_although_its_aggregate_was_renamed_or_left_the_scope(self):
        self.request()
        self.service.tick()
        self.board.note(self.board.get('d'), (drains.DRAINING,),
                        stopped={'vm-1': drains.STOPPED})
        self.nova.put(**{'vm-1': 'SHUTOFF'})
        self.service.aggregates = ['gpu-renamed']
        self.release()
        self.service.tick()
        self.assertEqual('enabled', self.nova.services['a'].status)
        self.assertEqual([('start', 'vm-1')], self.nova.asked)
        self.nova.put(**{'vm-1': 'ACTIVE'})
        self.clock.go(60)
        self.service.tick()
        self.assertEqual(drains.RELEASED, self.state())

    def begin_and_leave_the_scope(self, **what):
        self.request(**what)
        self.service.tick()
        self.service.aggregates = ['gpu-renamed']
        self.clock.go(60)

    def test_a_drain_is_given_up_at_its_deadline_although_its_aggregate_left_the_scope(self):
        self.begin_and_leave_the_scope(deadline=self.clock() + datetime.timedelta(minutes=5))
        self.service.tick()
        self.assertEqual(drains.DRAINING, self.state())
        self.clock.go(301)
        self.service.tick()
        self.assertEqual((drains.OVERDUE, 'disabled'),
                         (self.state(), self.nova.services['a'].status))

    def test_so_it_ends_if_the_host_is_enabled_by_hand(self):
        self.begin_and_leave_the_scope()
        self.nova.enable('a')
        self.service.tick()
        self.assertEqual(drains.RELEASED, self.state())

    def test_no_server_is_stopped_in_an_aggregate_of_others(self):
        self.begin_and_leave_the_scope()
        self.nova.put(**{'vm-1': 'ACTIVE'})
        fixtures.bring(self.board, self.board.get('d'), drains.BLOCKED, to_stop=['vm-1'], left=1)
        self.service.tick()
        self.assertEqual([], self.nova.asked)
        self.service.aggregates = ['gpu']
        self.clock.go(60)
        self.service.tick()
        self.assertEqual([('stop', 'vm-1')], self.nova.asked)

    def test_the_drain_of_a_host_that_is_removed_before_it_is_empty_ends(self):
        for state in drains.ACTIVE:
            self.nova.services['a'] = snapshot.Service(state='up', status='enabled')
            self.request(uuid=state)
            if state != drains.REQUESTED:
                self.service.tick()
                fixtures.bring(self.board, self.board.get(state), state)
            self.nova.services.clear()
            self.clock.go(60)
            self.service.tick()
            found = self.board.get(state)
            self.assertEqual((drains.RELEASED, self.clock()), (found.state, found.finished_at))
            self.assertEqual('Nova has no nova-compute of that name any more', found.problem)
            self.assertEqual({'a', 'b'}, self.service.ha.watched)

    def test_an_emptied_host_that_is_removed_stays_drained_until_it_is_released(self):
        self.request()
        self.service.tick()
        fixtures.bring(self.board, self.board.get('d'), drains.EMPTY)
        self.nova.services.clear()
        self.clock.go(60)
        self.service.tick()
        self.assertEqual(drains.EMPTY, self.state())
        self.assertEqual('Nova has no nova-compute of that name any more; "host release a" ends '
                         'the drain', self.board.get('d').problem)
        self.release()
        self.service.tick()
        self.assertEqual(drains.RELEASED, self.state())

    def test_an_overdue_host_that_is_removed_and_comes_back_has_no_problem_any_more(self):
        self.request()
        self.service.tick()
        fixtures.bring(self.board, self.board.get('d'), drains.OVERDUE)
        known = dict(self.nova.services)
        for services, has_problem in (({}, True), (known, False)):
            self.nova.services = services
            self.clock.go(60)
            self.service.tick()
            found = self.board.get('d')
            self.assertEqual((drains.OVERDUE, has_problem), (found.state, bool(found.problem)))

    def test_what_the_drain_of_a_removed_host_has_stopped_starts_where_it_is(self):
        self.request()
        self.service.tick()
        fixtures.bring(self.board, self.board.get('d'), drains.BLOCKED,
                       stopped={'vm-1': drains.STOPPED})
        self.nova.services.clear()
        self.nova.elsewhere['vm-1'] = 'SHUTOFF'
        for _ in range(2):
            self.clock.go(60)
            self.service.tick()
        self.assertEqual([('start', 'vm-1')], self.nova.asked)
        self.assertEqual(drains.RELEASING, self.state())

    def test_a_host_is_not_drained_twice_at_once(self):
        self.request()
        self.assertRaises(exception.DrainPending, self.request, uuid='e')


class StoppingTest(DrainTestCase):
    """Servers that Nova does not migrate live, and that an operator has stopped."""

    def setUp(self):
        super().setUp()
        self.request()
        self.look()

    def look(self):
        self.clock.go(60)
        self.service.tick()
        return self.board.get('d').stopped

    def block(self, *to_stop):
        drain = self.board.get('d')
        if drain.state != drains.BLOCKED:
            fixtures.bring(self.board, drain, drains.BLOCKED)
        self.board.note(drain, (drains.BLOCKED,), to_stop=to_stop)

    def stop_all(self):
        self.nova.put(vm1='ACTIVE')
        self.block('vm1')
        self.look()
        self.nova.put(vm1='SHUTOFF')
        self.look()

    def test_a_server_is_stopped_once_a_plan_says_so_and_starts_after_the_release(self):
        self.nova.put(vm1='ACTIVE', vm2='ACTIVE')
        self.block()
        self.assertEqual({}, self.look())
        self.block('vm1', 'vm2')
        self.assertEqual({'vm1': 'stopping', 'vm2': 'stopping'}, self.look())
        self.assertEqual([('stop', 'vm1'), ('stop', 'vm2')], self.nova.asked)
        self.nova.put(vm1='SHUTOFF', vm2='ACTIVE busy')
        self.assertEqual({'vm1': 'stopped', 'vm2': 'stopping'}, self.look())
        self.nova.put(vm1='SHUTOFF', vm2='SHUTOFF')
        self.assertEqual({'vm1': 'stopped', 'vm2': 'stopped'}, self.look())
        fixtures.bring(self.board, self.board.get('d'), drains.EMPTY)
        self.look()
        self.assertEqual(drains.EMPTY, self.state())    # nothing else is on the host
        self.nova.asked.clear()
        self.release()
        self.assertEqual({'vm1': 'starting', 'vm2': 'starting'}, self.look())
        self.assertEqual((drains.RELEASING, 'enabled'),
                         (self.state(), self.nova.services['a'].status))
        self.nova.put(vm1='ACTIVE', vm2='SHUTOFF busy')
        self.assertEqual({'vm2': 'starting'}, self.look())
        self.nova.put(vm1='ACTIVE', vm2='ACTIVE')
        self.assertEqual(({}, drains.RELEASED), (self.look(), self.state()))
        self.assertEqual([('start', 'vm1'), ('start', 'vm2')], self.nova.asked)

    def fail_for_vm1(self, act):
        def fail(server):
            if server == 'vm1':
                raise exception.NovaClientError(instance=server, reason='HTTP 500')
            act(server)
        return fail

    def test_a_server_that_nova_fails_to_stop_is_not_in_the_way_of_others(self):
        self.nova.put(vm1='ACTIVE', vm2='ACTIVE')
        self.block('vm1', 'vm2')
        self.nova.stop = self.fail_for_vm1(self.nova.stop)
        self.look()
        self.assertEqual([('stop', 'vm2')], self.nova.asked)

    def test_a_server_that_nova_fails_to_start_is_not_in_the_way_of_others(self):
        self.nova.put(vm1='ACTIVE', vm2='ACTIVE')
        self.block('vm1', 'vm2')
        self.look()
        self.nova.put(vm1='SHUTOFF', vm2='SHUTOFF')
        self.look()
        self.nova.asked.clear()
        start = self.nova.start
        self.nova.start = self.fail_for_vm1(start)
        self.release()
        self.assertEqual({'vm1': 'stopped', 'vm2': 'starting'}, self.look())
        self.assertEqual([('start', 'vm2')], self.nova.asked)
        self.nova.start = start
        self.nova.put(vm1='SHUTOFF', vm2='ACTIVE')
        self.assertEqual({'vm1': 'starting'}, self.look())

    def test_neither_what_is_locked_nor_what_is_busy_is_stopped(self):
        self.nova.put(vm1='ACTIVE locked', vm2='ACTIVE busy', vm3='PAUSED', vm4='SHUTOFF')
        self.block('vm1', 'vm2', 'vm3', 'vm4', 'vm5')
        self.assertEqual(({}, []), (self.look(), self.nova.asked))

    def test_a_worker_that_dies_before_nova_is_asked_leaves_nothing_off(self):
        self.nova.put(vm1='ACTIVE')
        self.block('vm1')
        self.nova.stop = lambda server: self.fail('it is dead')
        self.assertRaises(AssertionError, self.look)
        self.assertEqual({'vm1': 'stopping'}, self.board.get('d').stopped)
        self.release()
        self.assertEqual(({}, drains.RELEASED, []), (self.look(), self.state(), self.nova.asked))

    def test_a_server_that_is_gone_or_does_not_start_does_not_hold_up_the_release(self):
        self.nova.put(vm1='ACTIVE', vm2='ACTIVE')
        self.block('vm1', 'vm2')
        self.look()
        self.nova.put(vm2='SHUTOFF')
        self.assertEqual({'vm1': 'stopping', 'vm2': 'stopped'}, self.look())
        self.release()
        self.assertEqual({'vm2': 'starting'}, self.look())
        self.assertEqual(({}, drains.RELEASED), (self.look(), self.state()))

    def test_a_server_that_was_moved_while_it_was_off_starts_where_it_is(self):
        """By an operator, or by a service for high availability."""
        self.stop_all()
        self.nova.put()
        self.nova.elsewhere['vm1'] = 'SHUTOFF'
        self.assertEqual({'vm1': 'stopped'}, self.look())
        self.release()
        self.assertEqual({'vm1': 'starting'}, self.look())
        self.assertEqual(('start', 'vm1'), self.nova.asked[-1])
        self.nova.elsewhere['vm1'] = 'ACTIVE'
        self.assertEqual(({}, drains.RELEASED), (self.look(), self.state()))

    def test_a_server_whose_resize_is_not_confirmed_is_named(self):
        self.stop_all()
        self.nova.put()
        self.nova.elsewhere['vm1'] = 'VERIFY_RESIZE'
        self.release()
        log = self.useFixture(testfixtures.FakeLogger())
        self.assertEqual(({}, drains.RELEASED), (self.look(), self.state()))
        self.assertIn('Server vm1, which the drain of host a stopped, cannot be started again',
                      log.output)

    def test_servers_start_again_on_a_host_that_is_enabled_by_hand(self):
        self.stop_all()
        self.nova.enable('a')
        self.look()
        self.assertEqual(drains.RELEASING, self.state())
        self.look()
        self.assertEqual(('start', 'vm1'), self.nova.asked[-1])

    def test_the_next_drain_of_the_host_starts_what_the_one_before_has_stopped(self):
        self.stop_all()
        fixtures.bring(self.board, self.board.get('d'), drains.EMPTY)
        self.request(uuid='e')
        self.assertEqual({'vm1': 'stopped'}, self.board.get('e').stopped)
