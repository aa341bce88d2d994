"""An operation is added by what the page says, in nine files; both programs and the API have it."""

import contextlib
import io
import json
import pathlib
import re
from importlib import metadata
from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint

from kronos_client.cli import command
from kronos_client.contract.base import Name
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.operation import Operation
from kronos_client.http import HttpClient
from kronos_nova import exception
from kronos_nova.api import openapi
from kronos_nova.api import routes
from kronos_nova.api.operation import serve
from kronos_nova.cmd import manage
from kronos_nova.services import quarantine
from tests.unit.api import base

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / 'doc' / 'source' / 'architecture.rst'
MOST_FILES = 9


class Greeted(Response):
    text: str


class Greet(Request):
    name: Name


GREET = Operation(name='quarantine:greet', command='quarantine greet', method='GET',
                  path='/v1/greetings/{name}', request=Greet, response=Greeted, refusals=(404,),
                  summary='A toy.')


def greet(context, request):
    if request.name == 'nobody':
        raise exception.HostNotFound(what=request.name, problem='is not there', remedy='Ask.')
    return Greeted(text=f'{request.name}, asked by {context.who.partition("@")[0]}')


class GreetCommand(command.ShowOne):
    """Greet."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('name')
        return parser

    def take_action(self, parsed_args):
        return [('text',), (self.call(GREET, Greet(name=parsed_args.name)).text,)]


def listed_files():
    """The files of the page's numbered list."""
    section = PAGE.read_text().partition('How to add an operation')[2].partition('What reaches')[0]
    return [path for line in re.findall(r'^\d\. .*(?:\n   .*)*', section, re.MULTILINE)
            for path in re.findall(r'``([\w./]+\.(?:py|cfg|rst))``', line)]


class AddingTest(base.ApiTestCase):
    def setUp(self):
        for patched in (
                mock.patch.object(routes, 'OPERATIONS', (*routes.OPERATIONS, serve(GREET))),
                mock.patch.dict(quarantine.FUNCTIONS, {GREET.name: greet})):
            patched.start()
            self.addCleanup(patched.stop)
        super().setUp()

    def test_the_api_has_it_with_its_policy_and_its_document(self):
        self.assertEqual({'text': 'joe, asked by jane'}, self.ask('/v1/greetings/joe'))
        self.assertIn('kronos:quarantine:greet',
                      self.refuse('/v1/greetings/joe', 403, token=base.TENANT)['detail'])
        self.refuse('/v1/greetings/nobody', 404)
        self.assertIn('/v1/greetings/{name}', openapi.document()['paths'])
        client = HttpClient(adapter.Adapter(session.Session(
            token_endpoint.Token(self.url, base.READER)), endpoint_override=self.url))
        self.assertEqual('joe, asked by jane', client.call(GREET, Greet(name='joe')).text)

    def test_a_command_has_it(self):
        config = self.folder / 'manage.conf'
        config.write_text((self.folder / 'nova.conf').read_text()
                          + f'[kronos_database]\nconnection = {self.database.engine.url}\n')
        toy = metadata.EntryPoint('quarantine_greet', f'{__name__}:GreetCommand', manage.NAMESPACE)
        real, out = metadata.distribution(manage.DISTRIBUTION), io.StringIO()
        installed = mock.Mock(wraps=real, version=real.version, entry_points=metadata.EntryPoints(
            [*real.entry_points, toy]))
        with mock.patch.object(metadata, 'distribution', lambda _name: installed), (
                contextlib.redirect_stdout(out)):
            self.assertEqual(0, manage.main([
                f'--config-file={config}', 'quarantine', 'greet', 'joe', '-f', 'json']))
        self.assertIn('joe, asked by ', json.loads(out.getvalue())['text'])

    def test_the_page_has_so_many_files_and_they_exist(self):
        found = listed_files()
        self.assertEqual(sorted(set(found)), sorted(found))
        self.assertLessEqual(5, len(found))
        self.assertLessEqual(len(found), MOST_FILES)
        self.assertEqual([], [path for path in found if not (ROOT / path).is_file()])
