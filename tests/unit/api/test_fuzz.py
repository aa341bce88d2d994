"""Any request gets an answer that the OpenAPI document describes, in the form it describes."""

import json

import hypothesis
import jsonschema
from hypothesis import strategies as st

from kronos_nova.api import application
from kronos_nova.api import openapi
from kronos_nova.api import routes
from kronos_nova.objects import plan as plans
from tests.unit.api import base
from tests.unit.cmd import test_host

FIELDS = ('skip', 'only', 'level', 'reason', 'aggregate', 'let_finish', 'hosts', 'check',
          'deadline', 'parallel', 'keep_spare', 'with_stopped', 'colour')
PARAMETERS = ('limit', 'marker', 'aggregate', 'state', 'plan', 'instance', 'all', 'colour')
LIKELY = st.sampled_from(('gpu', 'a', 'vm1', '*', 'auto', 'off', '', '1', 'true', 'x' * 300,
                          '2030-01-01T00:00:00Z', '../..', '%00', '\x00', 'ü\u202e', '-1', '1e99'))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | LIKELY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LIKELY, inner, max_size=3),
    max_leaves=6)
BODIES = st.one_of(
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4).map(
        lambda body: json.dumps(body).encode()),
    VALUES.map(lambda body: json.dumps(body).encode()), st.binary(max_size=40))
QUERIES = st.dictionaries(st.sampled_from(PARAMETERS), LIKELY | st.text(max_size=10), max_size=3)


class FuzzTest(test_host.WithRecordedCloud, base.ApiTestCase):
    """schemathesis in small: it is not in the test environment, and needs a server for hours."""

    def setUp(self):
        super().setUp()
        self.client = base.client(application.make(self.conf, self.services()))
        document = openapi.document()
        self.paths, self.components = document['paths'], document['components']
        plan = self.plan(('vm1', 'a', 'b'))
        self.plan(('vm2', 'a', 'b'), name='db', state=plans.EXECUTING)
        self.known = st.sampled_from((plan, self.journal.moves()[0].uuid, 'gpu', 'a', 'vm1'))

    def test_no_request_is_answered_in_another_way(self):
        @hypothesis.settings(max_examples=300, deadline=None, database=None,
                             suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(operation=st.sampled_from(
                              [each for each in routes.OPERATIONS if each.events is None]),
                          name=self.known | LIKELY.filter(bool), query=QUERIES, body=BODIES)
        def ask(operation, name, query, body):
            path = openapi.IN_PATH.sub(lambda _match: name.replace('/', '%2F'), operation.path)
            answer = self.client.simulate_request(
                operation.method, path, params=query, body=body,
                headers={'X-Auth-Token': base.ADMIN})
            self.check(operation, answer)

        ask()

    def check(self, operation, answer):
        said = self.paths[operation.path][operation.method.lower()]['responses']
        self.assertIn(str(answer.status_code), said, f'{operation.name}: {answer.text}')
        content = said[str(answer.status_code)].get('content')
        if content is None:
            self.assertEqual('', answer.text)
            return
        schema = content['application/json']['schema']
        jsonschema.validate(answer.json, {**schema, 'components': self.components})
