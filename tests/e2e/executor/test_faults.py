"""Faults of single moves, each recognised as its kind."""


from kronos_nova import clock
from kronos_nova.objects import move as moves
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import base

TIMEOUT = 20

LIE = """
CREATE TRIGGER lie BEFORE UPDATE ON instances FOR EACH ROW
    SET NEW.host = IF(NEW.display_name = 'liar', OLD.host, NEW.host)
"""


class FaultsTest(base.ExecutorTestCase):
    computes, conductors, workers = 5, 1, 2
    executor = {'migration_timeout': TIMEOUT, 'max_retries': 1, 'retry_interval': 1,
                'max_concurrent_per_source': 9, 'max_concurrent_per_destination': 9,
                'max_concurrent_migrations': 9}
    nova_conf = {'DEFAULT': {'max_concurrent_live_migrations': 9}}

    def ended(self, *chosen, timeout=240):
        """{instance uuid: MoveRecord} of a plan that was carried out."""
        return {move.instance_uuid: move for move in self.carry_out(chosen, timeout=timeout)}

    def assert_abandoned(self, move, text):
        self.assertEqual((moves.ABANDONED, 'PlanOutdated'), (move.state, move.error_type), move)
        self.assertIn(text, move.error)
        self.assertNotIn(move.instance_uuid, self.cooldowns.quarantined(clock.utcnow()))

    def assert_failed(self, move, error_type, text, quarantined=True):
        self.assertEqual((moves.FAILED, error_type), (move.state, move.error_type), move)
        self.assertIn(text, move.error)
        self.assertEqual(quarantined, move.instance_uuid in
                         self.cooldowns.quarantined(clock.utcnow()))

    def test_what_happens_to_a_plan_before_it_is_carried_out(self):
        [(first, _)] = self.boot(1, 'compute1')
        self.orders(default={'seconds': 1}, instances={first: {'seconds': TIMEOUT - 8}})
        (disabled, deleted, locked, moved, stopped) = [
            uuid for uuid, _ in self.boot(5, 'compute2')]
        plan = self.start([
            base.planned(first, 'compute1', 'compute3', 1),
            base.planned(disabled, 'compute2', 'compute5', 2, (1,)),
            *[base.planned(uuid, 'compute2', 'compute3', order, (1,))
              for order, uuid in enumerate((deleted, locked, moved, stopped), 3)]])
        client = self.cloud.client
        service = client.services()['compute5']['id']
        client.compute('PUT', f'/os-services/{service}', json={'status': 'disabled'})
        self.addCleanup(client.compute, 'PUT', f'/os-services/{service}',
                        json={'status': 'enabled'})
        client.delete(deleted)
        client.compute('POST', f'/servers/{locked}/action', json={'lock': None})
        client.live_migrate(moved, 'compute4')
        client.compute('POST', f'/servers/{stopped}/action', json={'os-stop': None})
        self.wait_ended(240)
        ended = {move.instance_uuid: move for move in self.journal.moves(plan)}
        self.assertEqual(moves.COMPLETED, ended[first].state, ended[first].error)
        for uuid, text in ((disabled, 'destination compute5 is not up and enabled'),
                           (deleted, 'does not exist any more'), (locked, 'it is locked'),
                           (moved, 'it is on compute4'), (stopped, 'it is SHUTOFF')):
            self.assert_abandoned(ended[uuid], text)
        self.assert_allocations_exact()

    def test_a_server_that_is_being_resized_is_left_alone(self):
        [(first, _), (resized, _)] = self.boot(2, 'compute1')
        self.orders(default={'seconds': 1}, instances={first: {'seconds': TIMEOUT - 8}})
        self.cloud.client.create_flavor('m1.larger', vcpus=2, ram=128)
        plan = self.start([base.planned(first, 'compute1', 'compute2', 1),
                           base.planned(resized, 'compute1', 'compute2', 2, (1,))])
        self.cloud.client.compute('POST', f'/servers/{resized}/action',
                                  json={'resize': {'flavorRef': 'm1.larger'}})
        self.wait_ended(240)
        [_, move] = self.journal.moves(plan)
        self.assert_abandoned(move, 'Instance')

    def test_migrations_that_fail_hang_or_are_refused(self):
        servers = [uuid for uuid, _ in self.boot(3, 'compute1')]
        fails, hangs, refused = servers
        self.orders(default={'seconds': 1}, instances={
            fails: {'outcome': 'fail'}, hangs: {'outcome': 'hang'},
            refused: {'outcome': 'refuse'}})
        ended = self.ended(*[base.planned(uuid, 'compute1', 'compute2', order)
                             for order, uuid in enumerate(servers, 1)])
        self.assert_failed(ended[fails], 'MigrationFailed', 'ended as')
        self.assert_failed(ended[hangs], 'MigrationTimeout', f'not done after {TIMEOUT} s')
        self.assert_failed(ended[refused], 'PreFlightError', 'Nova refused to begin',
                           quarantined=False)
        self.assertEqual({1}, {move.retry_count for move in ended.values()})
        self.assert_asked_once_a_try(ended.values())
        self.assert_allocations_exact()

    def test_completed_is_not_believed_of_an_instance_that_is_still_on_its_source(self):
        [liar] = self.cloud.boot('liar', host='compute1')
        self.addCleanup(self._delete, [liar])
        self.cloud.database.query('nova_cell1', LIE)
        self.addCleanup(self.cloud.database.query, 'nova_cell1', 'DROP TRIGGER lie')
        move = self.ended(base.planned(liar, 'compute1', 'compute2', 1))[liar]
        # The second try finds what Nova makes of a server that is where it does not run.
        self.assert_failed(move, 'PreFlightError', 'Nova refused to begin', quarantined=False)
        self.assertTrue(any(
            detail.startswith('MigrationFailed')
            and 'completed, but the instance is on compute1' in detail
            for *_when, detail in self.journal.events(move.uuid)))

    def test_a_move_and_a_plan_are_aborted(self):
        servers = [uuid for uuid, _ in self.boot(3, 'compute1')]
        self.orders(default={'outcome': 'hang'})
        plan = self.start([base.planned(servers[0], 'compute1', 'compute2', 1),
                           base.planned(servers[1], 'compute1', 'compute3', 2),
                           base.planned(servers[2], 'compute1', 'compute4', 3, (2,))])
        first = self.journal.moves(plan)[0]
        wait_for(lambda: self.journal.move(first.uuid).migration_uuid, 60, 'it does not begin')
        for move in self.journal.moves(plan):
            self.journal.request_abort(move.uuid, 'jane', clock.utcnow())
        self.wait_ended(60)
        ended = self.journal.moves(plan)
        self.assertEqual([moves.ABANDONED] * 3, [move.state for move in ended])
        self.assertEqual({}, {uuid: 1 for uuid in servers
                              if uuid in self.cooldowns.quarantined(clock.utcnow())})
        self.assert_allocations_exact()
