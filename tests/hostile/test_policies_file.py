"""A policies file of any content is refused soon, in a few lines that can be printed."""

import os
import time

import ddt
import fixtures
import testtools

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.policies import loader

FILE = """policies:
- name: cpu
  mode: spread
  weight: {weight}
  threshold: 0.1
  imbalance_query: up
  vm_profile_fallback: flavor_vcpu_ratio
"""

CONTENTS = {
    'a weight that no float holds': FILE.format(weight='1' + '0' * 400),
    'one below zero': FILE.format(weight='-1' + '0' * 400),
    'a hexadecimal one': FILE.format(weight='0x' + 'f' * 5000),
    'more digits than Python reads': FILE.format(weight='9' * 5000),
    'a tag without a value': FILE.format(weight='!!int ""'),
    'an empty float': FILE.format(weight='!!float ""'),
    'no truth value': FILE.format(weight='!!bool perhaps'),
    'no time': FILE.format(weight='!!timestamp noon'),
    'escape codes in a name': 'policies:\n- {name: "\\e[31mcpu\\nERROR x", mode: spread}\n',
    'escape codes in a key': '"\\e[31mkey\\nERROR": 1\npolicies: []\n',
    'a lone surrogate': 'policies:\n- {name: "\\ud800", mode: spread}\n',
    'a name as long as the file': 'policies:\n- {name: "' + 'a' * 200_000 + '", mode: spread}\n',
    'many policies of one name': 'policies:\n' + '- {name: a}\n' * 20_000,
    'many that are none': 'policies:\n' + '- 1\n' * 60_000,
    'many unknown keys': FILE.format(weight=1.0) + ''.join(
        f'  key{number}: 1\n' for number in range(10_000)),
}

# Processor time; parsing YAML of the largest size that is read takes most of it.
SECONDS = 15


@ddt.ddt
class PoliciesFileTest(testtools.TestCase):
    @ddt.data(*CONTENTS)
    def test_is_refused_soon_and_in_a_few_lines(self, name):
        self.assertLessEqual(len(CONTENTS[name]), loader.MAX_BYTES)
        began = time.process_time()
        error = self.assertRaises(exception.PolicyError, policies.parse, CONTENTS[name])
        self.assertLess(time.process_time() - began, SECONDS)
        self.assertLess(len(str(error)), 20_000)
        self.assertTrue(all(line.isprintable() for line in str(error).split('\n')), str(error))

    def test_reading_a_pipe_does_not_block(self):
        path = self.useFixture(fixtures.TempDir()).join('policies.yaml')
        os.mkfifo(path)
        error = self.assertRaises(exception.PolicyError, policies.load, path)
        self.assertIn(f'{path}: is not a file', str(error).replace('\n', ' '))
