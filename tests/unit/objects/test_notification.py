"""Notifications keep their form: a payload that changes gets another version."""

import dataclasses
import hashlib

import testtools

from kronos_nova.objects import notification as n

# A payload whose hash is another one has other fields, or fields of other types. One that was added
# makes a new minor version, one that went or changed a new major one: raise VERSION, then write the
# new hash here.
KNOWN = {
    'PlanPayload': ('1.0', '459e4e118ecfa0ae'),
    'MovePayload': ('1.0', 'e88803f3ccf8e843'),
    'AutomationPayload': ('1.0', '495dae270569a7b1'),
    'DrainPayload': ('1.0', '1b1c56a62d25181a'),
}


def fingerprint(payload):
    said = [(field.name, str(field.type)) for field in dataclasses.fields(payload)]
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


class PayloadTest(testtools.TestCase):
    def test_a_payload_that_has_changed_has_another_version(self):
        self.assertEqual(KNOWN, {payload.__name__: (payload.VERSION, fingerprint(payload))
                                 for payload in n.PAYLOADS})

    def test_a_text_has_a_length_that_a_message_can_bear(self):
        payload = n.AutomationPayload(kind='pause', aggregate='gpu', value='stop', set_by='jane',
                                      set_at=None, reason='x' * 10 * n.LONGEST)
        self.assertEqual(n.LONGEST, len(n.data(payload)['reason']))
