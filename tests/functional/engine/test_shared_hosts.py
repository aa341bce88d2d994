"""Two workers, aggregates that share hosts, and real locks: nothing is planned twice."""

import pathlib

import fixtures
import testtools

from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from tests.functional.engine import shared_rounds


class SharedHostsTest(testtools.TestCase):
    """A short run of what ``python -m tests.functional.engine.shared_rounds`` does for long."""

    def test_no_instance_is_planned_twice_and_no_move_is_refused_by_placement(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        url = f'sqlite:///{folder}/kronos.sqlite'
        engine = db_engine.create_engine(url)
        self.addCleanup(engine.dispose)
        migrate.sync(engine, migrate.CONTROL)
        with shared_rounds.placement(folder) as client:
            rounds = shared_rounds.Rounds(client, folder, url)
            self.addCleanup(rounds.close)
            tally = rounds.run(8)
        self.assertEqual(([], []), (tally.twice, tally.refused))
        self.assertGreater(tally.moves, 10)
        self.assertTrue(all(tally.planned_by.values()), tally.planned_by)
