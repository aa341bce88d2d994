"""A large plan, by three conductors of two workers each."""

from kronos_nova.objects import move as moves
from tests.e2e.executor import base


class LargePlanTest(base.ExecutorTestCase):
    computes, conductors, workers = 6, 3, 2

    def test_each_move_is_done_once_within_the_caps_and_in_order(self):
        servers = self.boot(base.MOVES)
        done = self.carry_out(self.round_robin(servers), timeout=120 + 6 * base.MOVES,
                              start_interval=0.2)
        self.assertEqual(base.MOVES, len(done))
        self.assert_well_done(done)
        self.assert_caps_kept(done)
        self.assert_in_order(done)
        owners = {move.owner for move in done}
        self.assertGreater(len(owners), 1, 'only one worker did anything')
        self.assertEqual([moves.COMPLETED] * base.MOVES, [move.state for move in done])
