"""Noise of client libraries, and what else they say."""

import logging

import fixtures
import testtools

from kronos_nova.plugin import quiet


class QuietTest(testtools.TestCase):
    def test_what_nobody_can_help_is_not_in_the_log(self):
        [name] = quiet.NOISE
        log = self.useFixture(fixtures.FakeLogger(name))
        quiet.install()
        quiet.install()
        logger = logging.getLogger(name)
        self.assertEqual(1, len(logger.filters))
        logger.warning('The python binding code in neutronclient is deprecated in favor of %s', 'x')
        logger.warning('Neutron does not answer')
        self.assertEqual('Neutron does not answer\n', log.output)
