"""The metrics of a control database on a real server, and of one that is silent."""

import socket
import time

from oslo_config import cfg

from kronos_nova import clock
from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import prometheus_collector
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from tests.functional.db import test_mariadb

SCRAPE_SECONDS = 10
"""Seconds after which Prometheus gives up, by default."""


class DatabasesTest(test_mariadb.MariaDBTestCase):
    def reported(self, url):
        """{name: first value} of a scrape."""
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([], default_config_files=[])
        conf.set_override('connection', url, 'kronos_database')
        database = db_engine.ImpatientDatabase(db_engine.impatient_control_engine(conf))
        self.addCleanup(database.engine.dispose)
        collector = prometheus_collector.Collector(conf, database, clock.utcnow)
        return {family.name: family.samples[0].value
                for family in collector.collect() if family.samples}

    def test_it_has_a_size(self):
        url = self.server.empty()
        engine = db_engine.create_engine(url)
        self.addCleanup(engine.dispose)
        migrate.sync(engine, migrate.CONTROL)
        found = self.reported(url)
        self.assertEqual(1, found['kronos_control_database_up'])
        self.assertLess(100_000, found['kronos_control_database_size_bytes'])

    def test_one_that_takes_connections_and_says_nothing_is_down_before_prometheus_gives_up(self):
        silent = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(silent.close)
        begun = time.monotonic()
        found = self.reported(f'mysql+pymysql://k:k@127.0.0.1:{silent.getsockname()[1]}/kronos')
        self.assertEqual({'kronos_control_database_up': 0.0}, found)
        self.assertLess(time.monotonic() - begun, SCRAPE_SECONDS)
