"""How the control database is connected to."""

import fixtures
import sqlalchemy as sa
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.db import engine as db_engine


class ImpatientTest(testtools.TestCase):
    """What a request of Nova's waits for."""

    def test_the_default_a_file_below_the_state_path_is_connected_to(self):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[])
        conf.set_override('state_path', self.useFixture(fixtures.TempDir()).path)
        engine = db_engine.impatient_control_engine(conf)
        self.addCleanup(engine.dispose)
        with engine.connect() as connection:
            self.assertEqual(1, connection.execute(sa.text('SELECT 1')).scalar())
            self.assertEqual(
                1000, connection.execute(sa.text('PRAGMA busy_timeout')).scalar())
