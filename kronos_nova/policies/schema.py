"""The JSON schema of the policies file, for editors and pipelines. It is made from the models that
the loader uses.

Some checks cannot be expressed in a schema. Only the loader checks that names are unique, that
``target`` of a policy is below its ``high``, that all policies have the same mode, and that the
weights of the enabled policies sum to 1. The schema refuses numbers in quotes. The loader accepts
such numbers, because templates may write numbers in quotes.
"""

import json
from typing import Any

from kronos_nova.policies import loader
from kronos_nova.policies import models


def text() -> str:
    return f'{json.dumps(document(), indent=1, ensure_ascii=False)}\n'


def document() -> dict:
    """Return the JSON schema of the policies file, in draft 2020-12."""
    made = models.PolicySet.model_json_schema()
    policy = made['$defs']['Policy']
    policy['allOf'] = [
        {'if': {'properties': {'mode': {'const': 'pack'}}, 'required': ['mode']},
         'then': _given('capacity_query')},
        {'if': {'properties': {'mode': {'const': 'relieve'}}, 'required': ['mode']},
         'then': _given('high'), 'else': {'required': ['threshold']}},
        {'if': _given('vm_high'), 'then': _given('high')},
        {'anyOf': [{'allOf': [_given('high'), _given('target')]},
                   {'not': {'anyOf': [_given('high'), _given('target')]}}]},
        {'if': {'properties': {'mode': {'const': 'pack'}}, 'required': ['mode']},
         'then': {'not': _given('high')}},
        {'anyOf': [_given('vm_profile_query'),
                   {'properties': {'vm_profile_fallback': {'not': {'const': 'skip'}}},
                    'required': ['vm_profile_fallback']}]},
        {'anyOf': [{'allOf': [_given('capacity_query'), _given('capacity_threshold')]},
                   {'not': {'anyOf': [_given('capacity_query'), _given('capacity_threshold')]}}]}]
    forecast = made['$defs']['Forecast']
    forecast['allOf'] = [
        {'not': {'allOf': [_given('vm_query'), _given('host_query')]}},
        {'if': {'anyOf': [_given('vm_query'), _given('host_query')]},
         'then': {'properties': {'quantile': {'const': 0.5}}}}]
    policy['allOf'].append(
        {'if': {'properties': {'forecast': {'type': 'object', **_given('vm_query')}},
                'required': ['forecast']},
         'then': _given('vm_profile_query')})
    made['properties']['policies']['maxItems'] = loader.MOST_POLICIES
    for each in (made, *made['$defs'].values()):
        del each['description']     # these are docstrings, which are not written for operators
        for key in each['properties'].values():
            key['description'] = key['description'].replace('``', '"')
    return {'$schema': 'https://json-schema.org/draft/2020-12/schema', **made,
            'title': 'Policies of Kronos for Nova'}


def _given(key: str) -> dict[str, Any]:
    """Return a schema that requires a key whose value is not null."""
    return {'properties': {key: {'not': {'type': 'null'}}}, 'required': [key]}
