"""The JSON schema of the policies file says what the loader says."""

import json

import hypothesis
import jsonschema
import testtools
from hypothesis import strategies as st

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.policies import models
from kronos_nova.policies import schema

ABSENT = object()
QUERY = ('up', '', None, 3, ABSENT)
FRACTION = (0, 0.5, 1, 1.5, -0.1, None, 'high', ABSENT)
LABEL = ('host', 'a b', '', None, 7, ABSENT)
KEYS = {
    'name': ('cpu', 'CPU', '', 'a' * 63, 'a' * 64, None, ABSENT),
    'mode': ('spread', 'pack', 'relieve', 'both', None, ABSENT),
    'high': FRACTION, 'target': (0.4, 0.45, 0, 1.5, None, 'low', ABSENT), 'vm_high': FRACTION,
    'threshold': FRACTION, 'imbalance_query': QUERY, 'host_label': LABEL,
    'host_capacity_query': QUERY, 'vm_profile_query': QUERY, 'vm_profile_label': LABEL,
    'vm_profile_label_type': ('uuid', 'name', 'display_name', 'id', None, ABSENT),
    'vm_profile_fallback': ('skip', 'host_average', 'flavor_vcpu_ratio', 'guess', None, ABSENT),
    'capacity_query': QUERY, 'capacity_threshold': FRACTION,
    'forecast': ({}, {'horizon_hours': 12, 'quantile': .9, 'history_query': 'h'}, None,
                 {'vm_query': 'v'}, {'host_query': 'h'}, {'vm_query': 'v', 'host_query': 'h'},
                 {'horizon_hours': 13}, {'host_query': 'h', 'quantile': .9}),
    'max_migrations_per_cycle': (1, 10, 0, 2.5, 10**6, True, None, ABSENT),
    'colour': ('red', ABSENT)}
"""Values of each key of one policy, which has all the weight and is enabled: what policies say
taken together, no schema can tell."""


def sound():
    """A policy that is right, with up to three keys that may not be."""
    right = {'name': 'cpu', 'mode': 'spread', 'threshold': 0.1, 'imbalance_query': 'a',
             'vm_profile_query': 'b'}
    return st.dictionaries(st.sampled_from([*KEYS]), st.integers(0, 7), max_size=3).map(
        lambda chosen: right | {key: KEYS[key][at % len(KEYS[key])] for key, at in chosen.items()})


class SchemaTest(testtools.TestCase):
    validator = jsonschema.Draft202012Validator(schema.document())

    def test_it_is_a_schema_and_reports_every_key(self):
        self.validator.check_schema(schema.document())
        reported = schema.document()['$defs']['Policy']['properties']
        self.assertEqual({*models.Policy.model_fields}, {*reported})
        self.assertTrue(all(each['description'] for each in reported.values()))

    @hypothesis.settings(max_examples=300, deadline=None)
    @hypothesis.given(sound())
    def test_what_the_loader_takes_it_takes_and_nothing_else(self, policy):
        document = {'policies': [{key: value for key, value in policy.items()
                                  if value is not ABSENT} | {'weight': 1}]}
        try:
            policies.parse(json.dumps(document))
            taken = True
        except exception.PolicyError:
            taken = False
        self.assertEqual(taken, self.validator.is_valid(document))
