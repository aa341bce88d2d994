"""The OpenAPI document is valid, complete, and what is answered fits it."""

import os
import pathlib

import jsonschema
import openapi_spec_validator

from kronos_nova.api import openapi
from kronos_nova.api import routes
from kronos_nova.objects import plan as plans
from tests.unit.api import base
from tests.unit.cmd import test_host

DOCUMENTATION = pathlib.Path(__file__).parents[3] / 'doc/source'


def table():
    """The operations as a table of the documentation."""
    lines = ['.. list-table::', '   :header-rows: 1', '', '   * - Operation', '     - For',
             '     - What']
    for each in routes.OPERATIONS:
        lines += [f'   * - ``{each.method} {each.path}``', f'     - {each.audience}s',
                  f'     - {each.summary}']
    return '\n'.join(lines) + '\n'


class DocumentTest(test_host.WithRecordedCloud, base.ApiTestCase):
    def setUp(self):
        super().setUp()
        self.document = openapi.document()

    def test_it_is_valid(self):
        openapi_spec_validator.validate(self.document)

    def test_it_has_every_operation_once_under_a_name_of_its_own(self):
        found = [operation['operationId'] for methods in self.document['paths'].values()
                 for operation in methods.values()]
        self.assertEqual(len(routes.OPERATIONS), len({*found}))

    def test_each_field_of_a_request_stands_in_one_place(self):
        bodies = 0
        for operation in routes.OPERATIONS:
            if operation.contract is None:
                continue
            found = self.document['paths'][operation.path][operation.method.lower()]
            body = found.get('requestBody', {'content': {'application/json': {'schema': {
                'properties': {}}}}})['content']['application/json']['schema']
            bodies += bool(body['properties'])
            self.assertEqual(
                sorted(operation.contract.request.__struct_fields__),
                sorted([*(each['name'] for each in found['parameters']), *body['properties']]),
                operation.name)
        self.assertGreater(bodies, 5)

    def test_what_the_documentation_has_is_made_of_it(self):
        """KRONOS_WRITE_SAMPLES=1 writes it again."""
        made = {'openapi.json': f'{openapi.text()}\n', 'api-operations.inc': table()}
        for name, text in made.items():
            if os.environ.get('KRONOS_WRITE_SAMPLES'):
                (DOCUMENTATION / name).write_text(text)
            self.assertEqual(text, (DOCUMENTATION / name).read_text())

    def test_what_is_answered_is_what_it_says(self):
        self.evaluate(policies=(plans.PolicyReport(
            name='cpu', weight=1.0, threshold=0.1, imbalance_before=0.4, imbalance_after=0.4,
            state='ok'),))
        plan = self.plan(('vm1', 'a', 'b'), state=plans.EXECUTING)
        [move] = self.journal.moves(plan)
        for operation in routes.OPERATIONS:
            path = operation.path.format(aggregate='gpu', plan=plan, move=move.uuid, server='vm1',
                                         drain='none', host='a', snapshot='none', room='none')
            if operation.method == 'GET' and operation.gives is not None and (
                    operation.name not in ('drains:show', 'hosts:show', 'maintenance:show',
                                           'room:show', 'room:what_if')):
                query = '?flavor=1:512' if operation.name in (
                    'room:check', 'room:fragments') else ''
                self.check(self.ask(path + query), operation.gives.__name__)
        for path in ('/v1/maintenance', '/v1/hosts/a'):
            self.check(self.ask(path, expected=404), 'Errors')

    def check(self, given, name):
        jsonschema.validate(given, {'$ref': f'#/components/schemas/{name}',
                                    'components': self.document['components']})
