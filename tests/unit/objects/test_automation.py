"""The level of an aggregate, and what it permits."""

import datetime

import testtools

from kronos_nova.objects import automation
from kronos_nova.objects.automation import Defaults
from kronos_nova.objects.automation import Switches

NOON = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)


def switch(aggregate, value, kind=automation.LEVEL, reason=''):
    return automation.Switch(kind=kind, aggregate=aggregate, value=value, set_at=NOON,
                             set_by='jane@controller1', reason=reason)


class LevelTest(testtools.TestCase):
    def level(self, *switches, **defaults):
        return Switches.from_switches(switches).level('gpu', Defaults(**defaults))

    def test_the_level_of_nova_conf_holds_until_one_is_set(self):
        self.assertEqual('observe', self.level())
        self.assertEqual('auto', self.level(level='auto'))
        self.assertEqual('approve', self.level(level='auto', levels={'gpu': 'approve'}))
        self.assertEqual('auto', self.level(switch('gpu', 'auto'), levels={'gpu': 'approve'}))

    def test_what_is_set_for_the_aggregate_goes_before_what_is_set_for_all(self):
        self.assertEqual('off', self.level(switch('*', 'auto'), switch('gpu', 'off')))
        self.assertEqual('auto', self.level(switch('*', 'auto'), switch('db', 'off')))

    def test_a_level_for_all_lowers_but_does_not_raise_what_nova_conf_names(self):
        self.assertEqual('off', self.level(switch('*', 'auto'), levels={'gpu': 'off'}))
        self.assertEqual('observe', self.level(switch('*', 'observe'), levels={'gpu': 'auto'}))

    def test_no_level_is_above_the_ceiling(self):
        self.assertEqual('approve', self.level(switch('gpu', 'auto'), ceiling='approve'))
        self.assertEqual('observe', self.level(level='auto', ceiling='observe'))

    def test_a_paused_aggregate_is_observed(self):
        paused = Switches.from_switches([switch('*', 'pause', automation.PAUSE)])
        self.assertEqual('observe', paused.planning_level('gpu', Defaults(level='auto')))
        self.assertEqual('off', paused.planning_level('gpu', Defaults(level='off')))
        self.assertEqual('auto', paused.level('gpu', Defaults(level='auto')))


class RefusalTest(testtools.TestCase):
    def refusal(self, level, purpose=automation.BALANCE, is_approved=False):
        return Switches().refusal('gpu', Defaults(level=level), purpose, is_approved)

    def test_only_auto_carries_out_plans_without_approval(self):
        self.assertIsNone(self.refusal('auto'))
        self.assertIsNone(self.refusal('approve', is_approved=True))
        for level in ('approve', 'observe', 'off'):
            self.assertEqual(f'the level of gpu is {level} now', self.refusal(level))
        self.assertIsNotNone(self.refusal('observe', is_approved=True))

    def test_a_drain_is_carried_out_at_every_level(self):
        for level in automation.LEVELS:
            self.assertIsNone(self.refusal(level, purpose=automation.DRAIN))

    def test_a_pause_of_all_holds_every_aggregate_and_one_of_another_does_not(self):
        of_all = switch('*', 'stop', automation.PAUSE, 'network maintenance')
        self.assertEqual('Kronos is paused: stop by jane@controller1 (network maintenance)',
                         Switches.from_switches([of_all]).hold('gpu'))
        of_db = switch('db', 'pause', automation.PAUSE)
        self.assertIsNone(Switches.from_switches([of_db]).hold('gpu'))
