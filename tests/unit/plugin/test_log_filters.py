"""Noise of client libraries, and what else they say."""

import logging

import fixtures
import nova.conf
import testtools

from kronos_nova import conf as kronos_conf
from kronos_nova.plugin.fixes import log_filters


class LogFiltersTest(testtools.TestCase):
    def test_deprecations_that_operators_cannot_avoid_are_not_logged(self):
        kronos_conf.register_opts(nova.conf.CONF)
        [name] = log_filters.NOISE
        log = self.useFixture(fixtures.FakeLogger(name))
        log_filters.install()
        log_filters.install()
        logger = logging.getLogger(name)
        self.assertEqual(1, len(logger.filters))
        logger.warning('The python binding code in neutronclient is deprecated in favor of %s', 'x')
        logger.warning('Neutron does not answer')
        self.assertEqual('Neutron does not answer\n', log.output)
