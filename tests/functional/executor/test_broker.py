"""Tasks and results over a real RabbitMQ."""

import dataclasses
import datetime
import pathlib
import queue
import shutil
import time

import fixtures
import oslo_messaging as messaging
import testtools
from oslo_config import cfg
from oslo_messaging import conffixture

from kronos_nova.executor import broker
from kronos_nova.executor import messages
from kronos_nova.executor import pending_stops
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import snapshot
from tests.e2e.box import rabbitmq
from tests.e2e.box import settings

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
MOVE = moves.MoveRecord(
    uuid='move', plan_uuid='plan', aggregate='gpu', ordinal=1, phase='spread',
    instance_uuid='vm1', source='a', destination='b', memory_mb=1024, reason='spreads',
    state=moves.DISPATCHED, not_before=NOW, created_at=NOW, dispatched_at=NOW)
FAILED = dataclasses.replace(MOVE, state=moves.FAILED, error_type='MigrationFailed', error='why',
                             finished_at=NOW, retry_count=2)
PATIENCE = 10
SILENCE = 1


class Broker(fixtures.Fixture):
    """``conf`` leads to a RabbitMQ that is gone after the test."""

    def _setUp(self):
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.server = rabbitmq.RabbitMQ(self.root, settings.Ports())
        self.addCleanup(self._end)
        self.server.start(60)
        self.server.server.wait_ready(60)
        # oslo.messaging itself reads some of its options from the process-wide one.
        self.conf = self.useFixture(conffixture.ConfFixture(cfg.CONF)).conf
        self.conf([], default_config_files=[])
        self.conf.set_override('transport_url', self.server.url)
        self.addCleanup(self.conf.clear_override, 'transport_url')

    def _end(self):
        for process in (self.server.server, self.server.epmd):
            if process.alive():
                process.kill()
        shutil.rmtree(self.root, ignore_errors=True)


class BrokerTest(testtools.TestCase):
    """One test in several chapters, for the server takes seconds to start."""

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(Broker())
        self.conf = self.broker.conf
        self.sender = broker.TaskSender(self.transports())
        self.notifier = broker.ResultNotifier(self.transports(), 'one')

    def transports(self):
        made = broker.Transports(self.conf)
        self.addCleanup(made.close)
        return made

    def executor(self, name, *aggregates):
        """A queue of the uuids that an executor of these aggregates receives."""
        reported = queue.Queue()
        listening = broker.listen_for_tasks(self.transports(), aggregates, name, reported.put,
                                            pending_stops.PendingStops())
        self.addCleanup(listening.stop)
        return reported

    def assert_silence(self, *reported):
        for each in reported:
            self.assertRaises(queue.Empty, each.get, timeout=SILENCE)

    def test_what_is_said_over_it(self):
        self.one_of_two_executors_gets_each_task_of_its_aggregate()
        self.a_newer_minor_version_is_handled_and_a_newer_major_one_refused()
        self.results_reach_one_listener_and_only_final_ones_count()
        self.a_stop_reaches_every_executor()

    def a_stop_reaches_every_executor(self):
        hosts = [pending_stops.PendingStops() for _ in range(3)]
        for number, (stops, name) in enumerate(zip(hosts, ('gpu', 'gpu', 'db'), strict=True)):
            listening = broker.listen_for_tasks(self.transports(), [name], f'host{number}',
                                                lambda _uuid: None, stops)
            self.addCleanup(listening.stop)
        stop = pending_stops.PendingStop(automation.Switch(
            kind=automation.PAUSE, aggregate=automation.EVERY, value='stop', set_at=NOW,
            set_by='jane'))
        broker.fan_out(self.transports(), ['gpu', 'db'], 'stop_moves', stop=stop.to_json())
        self.wait_for(lambda: [{'*': stop}] * 3 == [stops.read() for stops in hosts])
        broker.fan_out(self.transports(), ['gpu'], 'resume_moves', aggregate=automation.EVERY)
        self.wait_for(lambda: [{}, {}, {'*': stop}] == [stops.read() for stops in hosts])

    def wait_for(self, is_so):
        end = time.monotonic() + PATIENCE
        while not is_so():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def one_of_two_executors_gets_each_task_of_its_aggregate(self):
        one, two = self.executor('one', 'gpu'), self.executor('two', 'gpu')
        pool = self.executor('three', snapshot.UNASSIGNED, 'a name: with #. and *')
        for number in range(10):
            self.sender.cast(dataclasses.replace(MOVE, uuid=f'move{number}'))
        self.sender.cast(dataclasses.replace(MOVE, aggregate='a name: with #. and *'))
        self.sender.cast(dataclasses.replace(MOVE, aggregate=snapshot.UNASSIGNED))
        self.assertEqual(['move', 'move'], [pool.get(timeout=PATIENCE) for _ in range(2)])
        self.assert_silence(pool)
        got = [*one.queue, *two.queue]
        self.assertEqual([f'move{number}' for number in range(10)], sorted(got))
        self.assertNotIn(0, (one.qsize(), two.qsize()))

    def a_newer_minor_version_is_handled_and_a_newer_major_one_refused(self):
        reported = self.executor('four', 'versions')
        topic = messages.migrations_topic('versions')
        for version, extra in (('1.7', {'priority': 3}), ('2.0', {})):
            messaging.get_rpc_client(
                self.transports().rpc, messaging.Target(topic=topic, version=version)).cast(
                    {}, 'execute_migration', task={'move_uuid': version, 'colour': 'red'}, **extra)
        self.assertEqual('1.7', reported.get(timeout=PATIENCE))
        self.assert_silence(reported)

    def results_reach_one_listener_and_only_final_ones_count(self):
        reported = [queue.Queue(), queue.Queue()]
        for each in reported:
            listening = broker.listen_for_results(self.transports(), ['gpu'], each.put)
            self.addCleanup(listening.stop)
        self.notifier.announce(dataclasses.replace(
            FAILED, uuid='to be tried again', state=moves.PLANNED, finished_at=None))
        self.notifier.announce(FAILED)
        self.notifier._to('gpu').info({}, messages.FAILED, {
            **messages.result(FAILED)[1], 'version': '1.9', 'move_uuid': 'newer minor'})
        self.notifier._to('gpu').info({}, messages.FAILED, {
            **messages.result(FAILED)[1], 'version': '2.0', 'move_uuid': 'newer major'})
        self.assert_silence(queue.Queue())
        self.assertEqual(['move', 'newer minor'], sorted([*reported[0].queue, *reported[1].queue]))
