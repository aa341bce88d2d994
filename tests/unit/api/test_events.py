"""Server-sent events over HTTP: everything there is, then what changes, to many at once."""

import datetime
import socket
import socketserver
import threading
import time
import wsgiref.simple_server

import fixtures
import requests
from keystonemiddleware import fixture as keystone_fixture
from oslo_db import exception as db_exc

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.api import application
from kronos_nova.api import event_feed
from kronos_nova.api import events
from kronos_nova.cmd import api
from kronos_nova.db import drains as db_drains
from kronos_nova.db import event_queries
from kronos_nova.db import switches
from kronos_nova.drain import orders
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.api import base
from tests.unit.api import listeners

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)


class EventsTestCase(base.ApiTestCase):
    listeners = 9

    def listen(self, url=None, **given):
        made = listeners.Listener(url or self.url, **given)
        self.addCleanup(made.close)
        self.assertEqual(200, made.answer.status, made.answer)
        return made

    def begin_move(self):
        """A move that Nova was asked for."""
        self.plan(('vm1', 'a', 'b'), state=plans.EXECUTING)
        self.journal.dispatch(WIDE, clock.utcnow)
        move = self.journal.claim(self.journal.moves()[0].uuid, clock.utcnow())
        return self.advance(move, moves.MIGRATING, requested_at=clock.utcnow(),
                            memory_total=1000, memory_remaining=1000)

    def advance(self, move, state, **values):
        self.journal.advance(move, state, clock.utcnow(), **values)
        return self.journal.move(move.uuid)

    def end(self, move):
        now = clock.utcnow()
        return self.advance(self.advance(move, moves.VERIFYING), moves.COMPLETED, finished_at=now,
                            settled_at=now)

    def pause(self, reason='a test'):
        switches.SwitchBoard(self.database).set(automation.Switch(
            kind=automation.PAUSE, value='pause', aggregate='gpu', set_by='jane',
            set_at=clock.utcnow(), reason=reason))


class EventsTest(EventsTestCase):
    def test_first_comes_all_there_is_and_then_what_changes(self):
        move = self.begin_move()
        self.evaluate()
        listener = self.listen()
        self.assertEqual('text/event-stream', listener.answer.headers['Content-Type'])
        self.assertEqual('no', listener.answer.headers['X-Accel-Buffering'])
        there = listener.until('synced')
        self.assertEqual(
            {('plan', move.plan_uuid), ('move', move.uuid)},
            {(each.kind, each.data['uuid']) for each in there if 'uuid' in each.data})
        self.assertEqual({('automation', 'gpu'), ('automation', 'db'), ('evaluation', 'gpu')},
                         {(each.kind, each.data['aggregate']) for each in there
                          if each.kind in ('automation', 'evaluation')})
        move = self.advance(move, moves.MIGRATING, memory_remaining=250)
        reported = listener.until('move', progress=75.0)[-1].data
        self.assertEqual(('migrating', 'spread', 'name-of-vm1'),
                         (reported['state'], reported['phase'], reported['instance_name']))
        self.end(move)
        reported = listener.until('move', state='completed')[-1].data
        [shown] = self.ask(f'/v1/moves?plan={move.plan_uuid}')['moves']
        self.assertEqual(shown, reported)
        self.journal.close_plans(clock.utcnow())
        listener.until('plan', uuid=move.plan_uuid, state='done')

    def test_levels_pauses_evaluations_and_drains_are_reported(self):
        listener = self.listen()
        listener.until('synced')
        self.pause()
        self.assertIn('jane', listener.until('automation', aggregate='gpu')[-1].data['paused'])
        self.evaluate(outcome=plans.NO_MOVE)
        listener.until('evaluation', aggregate='gpu', outcome='no_move')
        drain = orders.Wish(who='jane').to_drain('a')
        known = db_drains.Drains(self.database)
        known.request([drain])
        listener.until('drain', host='a', state='requested')
        orders.release(known, drain, 'jane')
        listener.until('drain', host='a', state='releasing')

    def test_what_does_not_change_is_reported_once(self):
        self.begin_move()
        listener = self.listen()
        listener.until('synced')
        time.sleep(0.5)
        self.pause()
        self.assertEqual(['automation'], [each.kind for each in listener.until('automation')])

    def test_who_comes_back_gets_what_was_missed_and_nothing_else(self):
        move = self.begin_move()
        self.listen().until('synced')
        first = self.listen()
        last = first.until('synced')[-1].id
        first.close()
        self.end(move)
        self.pause()
        missed = self.listen(last_id=last)
        kinds = [each.kind for each in missed.until('automation')]
        if kinds[-1] == 'automation' and 'move' not in kinds:
            kinds += [each.kind for each in missed.until('move')]
        self.assertEqual({'move', 'automation'}, {*kinds})
        again = self.listen(last_id=last).until('move')
        self.assertNotIn('synced', [each.kind for each in again])

    def test_another_server_knows_as_well_what_ended_meanwhile(self):
        move = self.begin_move()
        last = self.listen().until('synced')[-1].id
        self.end(move)
        other = self.serve(application.make(self.conf, self.services()))
        reported = self.listen(other, last_id=last).until('synced')
        self.assertNotIn('reset', [each.kind for each in reported])
        self.assertIn('completed', [each.data['state'] for each in reported if each.kind == 'move'])

    def test_who_was_away_too_long_is_asked_to_begin_again(self):
        long_ago = (clock.utcnow() - 2 * event_feed.KEPT).isoformat()
        for last in (f'abcd.7.{long_ago}', f'abcd.7.{long_ago}+00:00', 'nonsense', 'a.b.c',
                     '.' * 99):
            kinds = [each.kind for each in self.listen(last_id=last).until('synced')]
            self.assertEqual(('reset', 'synced'), (kinds[0], kinds[-1]))

    def test_tenants_and_requests_without_a_token_may_not_listen(self):
        self.refuse('/v1/events', 403, token=base.TENANT)
        self.refuse('/v1/events', 401, token=None)

    def test_a_stream_ends_with_the_token(self):
        people = self.useFixture(keystone_fixture.AuthTokenFixture())
        people.add_token_data(
            token_id='short', expires=clock.utcnow() + datetime.timedelta(seconds=3),
            user_id='u', user_name='jane', role_list=['kronos_reader'])
        listener = self.listen(token='short')
        self.assertEqual('synced', list(listener.events())[-1].kind)
        self.refuse('/v1/events', 401, token='short')

    def test_heartbeats_keep_a_quiet_connection_open(self):
        self.patch(event_feed, 'HEARTBEAT_SECONDS', 0.1)
        self.patch(event_feed, 'LONGEST_SECONDS', 1.0)
        listener = self.listen()
        list(listener.events())
        self.assertGreater(listener.lines.count(': still here'), 2)

    def test_silence_of_the_database_is_not_taken_for_rest(self):
        listener, look = self.listen(), events.EventSource.read
        listener.until('synced')

        def fail(*_given):
            raise db_exc.DBConnectionError('mysql://secret@controller refused')

        self.patch(events.EventSource, 'read', fail)
        listener.until('stale')
        self.assertEqual('stale', self.listen().until('stale')[-1].kind)
        self.pause()
        self.patch(events.EventSource, 'read', look)
        self.assertEqual({'automation', 'synced'},
                         {each.kind for each in listener.until('synced')})

    def test_a_database_that_is_away_from_the_start_is_reported_as_everywhere(self):
        def fail(*_given):
            raise db_exc.DBConnectionError('mysql://secret@controller refused')

        self.patch(event_queries, 'evaluations', fail)
        self.assertNotIn('secret', str(self.refuse('/v1/events', 503)))

    def test_any_server_with_threads_does(self):
        class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
            daemon_threads = True

        class Quiet(wsgiref.simple_server.WSGIRequestHandler):
            def log_message(self, *_given):
                pass

        server = wsgiref.simple_server.make_server(
            '127.0.0.1', 0, application.make(self.conf, self.services()), Server, Quiet)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.server_close)
        listener = self.listen(f'http://127.0.0.1:{server.server_port}')
        listener.until('synced')
        self.pause()
        listener.until('automation')


class ManyTest(EventsTestCase):
    listeners = 110

    def test_a_hundred_listen_while_others_are_answered(self):
        looks, look = [], events.EventSource.read
        self.patch(events.EventSource, 'read',
                   lambda source, since: looks.append(since) or look(source, since))
        move = self.begin_move()
        began = time.monotonic()
        everybody = [self.listen() for _number in range(100)]
        for listener in everybody:
            listener.until('synced')
        for listener in everybody[::10]:
            listener.close()            # as a laptop that is shut: without a word
        there = everybody[1::10]
        self.advance(move, moves.MIGRATING, memory_remaining=400)
        for _number in range(20):
            asked = time.monotonic()
            self.ask('/v1/moves')
            self.assertLess(time.monotonic() - asked, 5)
        for listener in there:
            listener.until('move', progress=60.0)
        # One reader for all: as many looks as time permits one, however many listen.
        self.assertLess(len(looks), 3 + (time.monotonic() - began) / 0.05)

    def test_a_further_listener_is_refused_until_one_leaves(self):
        self.conf.set_override('listeners', 2, 'kronos_api')
        self.patch(event_feed, 'HEARTBEAT_SECONDS', 0.05)
        url = self.serve(application.make(self.conf, self.services()))
        first, _second = self.listen(url), self.listen(url)
        self.url = url
        self.assertEqual('kronos.too_many_listeners', self.refuse('/v1/events', 429)['code'])
        self.ask('/v1/plans')
        first.close()
        deadline = time.monotonic() + 30
        while requests.get(f'{url}/v1/events', headers={'X-Auth-Token': base.READER}, stream=True,
                           timeout=30).status_code != 200:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def test_a_listener_that_reads_nothing_delays_no_other_and_is_cut(self):
        self.patch(api, 'STUCK_SECONDS', 1)
        self.conf.set_override('listeners', 2, 'kronos_api')
        used = self.services()
        url = self.serve(application.make(self.conf, used))
        stuck = socket.socket()
        self.addCleanup(stuck.close)
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, port = url.removeprefix('http://').split(':')
        stuck.connect((host, int(port)))
        stuck.sendall(f'GET /v1/events HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {base.READER}\r\n\r\n'
                      .encode())
        quick = self.listen(url)
        quick.until('synced')
        for number in range(60):
            self.pause(f'{number} {"x" * 100_000}')
            quick.until('automation')
        deadline = time.monotonic() + 60
        while len(used.feed._listeners) > 1:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
        self.pause('over')
        quick.until('automation')


class FeedTest(EventsTestCase):
    """The behaviour of the feed that HTTP does not show."""

    def setUp(self):
        super().setUp()
        self.now = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
        self.there = {('plan', 'p'): 1}
        self.feed = event_feed.Feed(self, lambda: self.now, 9, pause=0.01)
        self.addCleanup(self.feed.close)

    def read(self, since):
        self.since = since
        return dict(self.there)

    def tell(self, changed):
        return {key: {'value': value} for key, value in changed.items()}

    def take(self, stream, wanted):
        """Everything up to and with a piece that has what is wanted."""
        taken = b''
        while wanted.encode() not in taken:
            taken += next(stream)
        return taken.decode()

    def test_a_look_goes_back_a_little_and_the_first_one_far(self):
        stream = self.feed.listen(None, 60)
        self.assertEqual(self.now - event_feed.KEPT - event_feed.OVERLAP, self.since)
        self.there[('plan', 'p')] = 2
        self.take(stream, '"value":2')
        self.assertEqual(self.now - event_feed.OVERLAP, self.since)

    def test_what_is_over_is_reported_for_a_while_and_then_forgotten(self):
        self.take(self.feed.listen(None, 60), 'synced')
        self.there.clear()
        self.assertIn('event: plan', self.take(self.feed.listen(None, 60), 'synced'))
        self.now += 2 * event_feed.KEPT
        deadline = time.monotonic() + 30
        while 'event: plan' in self.take(self.feed.listen(None, 60), 'synced'):
            self.assertLess(time.monotonic(), deadline)

    def test_who_falls_behind_is_given_all_there_is(self):
        self.patch(event_feed, 'MOST_KEPT', 500)
        slow, quick = self.feed.listen(None, 60), self.feed.listen(None, 60)
        self.take(slow, 'synced')
        for number in range(20):
            self.there[('plan', 'p')] = f'number {number}'
            self.take(quick, f'"number {number}"')
        reported = self.take(slow, 'synced')
        self.assertEqual((1, 1, 1), (reported.count('event: reset'), reported.count('event: plan'),
                                     reported.count('number 19')))

    def test_nothing_is_read_without_listeners(self):
        self.patch(event_feed, 'IDLE_SECONDS', 0.05)
        self.take(self.feed.listen(None, 60), 'synced')
        deadline = time.monotonic() + 30
        while self.feed._thread is not None:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.there[('plan', 'p')] = 'later'
        self.assertIn('later', self.take(self.feed.listen(None, 60), 'synced'))

    def test_one_user_with_all_streams_keeps_no_other_out(self):
        self.feed._most_listeners = 4
        streams = [self.feed.listen(None, 60 + number, 'greedy') for number in range(4)]
        self.assertRaises(exception.TooManyListeners, self.feed.listen, None, 60, 'greedy')
        others = []
        for greedy in streams[:2]:
            others.append(self.feed.listen(None, 60, 'jane'))
            self.take(others[-1], 'synced')
            self.assertTrue(greedy._is_closed)
            self.assertLessEqual(len(list(greedy)), 1)
        # Both have as many; which is fair.
        self.assertEqual(2, sum(each.who == 'greedy' for each in self.feed._listeners))

    def test_all_streams_end_when_the_server_does(self):
        stream = self.feed.listen(None, 60)
        self.take(stream, 'synced')
        self.feed.close()
        self.assertEqual([], list(stream))

    def test_a_closed_feed_reads_no_more_and_reports_no_error(self):
        log = self.useFixture(fixtures.FakeLogger())
        self.feed._pause = 60
        self.take(self.feed.listen(None, 60), 'synced')
        thread = self.feed._thread
        self.feed.close()
        thread.join(30)
        self.assertFalse(thread.is_alive())

        self.feed._source = None   # what a reading in progress finds when the database is gone
        self.feed._poll()
        self.assertEqual('', log.output)
