"""Texts with numbers."""

import testtools

from kronos_client.plural import agreeing
from kronos_client.plural import count


class PluralTest(testtools.TestCase):
    def test_nouns_and_verbs_agree_with_their_number(self):
        self.assertEqual(('1 host', '2 hosts', '0 hosts'),
                         tuple(count(number, 'host') for number in (1, 2, 0)))
        self.assertEqual(('1 move waits', '2 moves wait'),
                         tuple(count(number, 'move', 'wait') for number in (1, 2)))
        self.assertEqual(['is', 'has', 'are', 'have'],
                         [agreeing(number, verb) for number in (1, 2) for verb in ('are', 'have')])
