"""The lower bounds of what is required, held against published advisories."""

import pathlib

import testtools
from packaging import requirements

import kronos_nova

ROOT = pathlib.Path(kronos_nova.__file__).parents[1]

WITH_ADVISORIES = {
    'waitress': ('2.1.2', '3.0.0'),
    'keystonemiddleware': ('10.5.0', '10.7.1', '10.8.0', '10.9.0', '10.10.0', '10.12.0'),
    'webob': ('1.8.7',),
    'requests': ('2.31.0', '2.32.3'),
    'urllib3': ('2.5.0', '2.6.2'),
    'pyyaml': ('5.3.1',),
    'pydantic': ('2.3.0',),
}
"""Releases that an advisory in doc/source/security.rst names, the last of each range among them."""


def required():
    """Yield the Requirements of the package."""
    for line in (ROOT / 'requirements.txt').read_text().splitlines():
        text = line.partition('#')[0].strip()
        if text:
            yield requirements.Requirement(text)


class PinsTest(testtools.TestCase):
    def test_no_release_with_a_known_advisory_is_admitted(self):
        found = {each.name.lower(): each.specifier for each in required()}
        self.assertEqual([], [(name, release) for name, releases in WITH_ADVISORIES.items()
                              for release in releases if found[name].contains(release)])

    def test_every_requirement_is_in_the_list_of_those_that_were_checked(self):
        text = (ROOT / 'doc/source/security.rst').read_text()
        self.assertEqual([], [each.name for each in required()
                              if each.name not in text and not each.name.startswith('oslo.')])
