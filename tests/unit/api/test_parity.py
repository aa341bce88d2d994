"""Every operation of the contract: a client in the same process and one over HTTP get the same."""

import re
import sqlite3

import msgspec
from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint

from kronos_client.contract import errors
from kronos_client.contract import table
from kronos_client.http import HttpClient
from kronos_nova import clock
from kronos_nova.db import cooldowns
from kronos_nova.db import drains as db_drains
from kronos_nova.db import holds
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.drain import states as drains
from kronos_nova.objects import hold
from kronos_nova.objects import maintenance
from kronos_nova.objects import plan as plans
from kronos_nova.services.context import Context
from kronos_nova.services.in_process import InProcessClient
from tests.unit.api import base
from tests.unit.cmd import test_host
from tests.unit.db import test_holds

WHO = 'jane@Default (API)'
NEW = (re.compile(r'\d{4}-\d\d-\d\dT[\d:.]+Z'), re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-\w{12}'))
"""Times and uuids, which differ from call to call."""

PLAIN = frozenset((
    'status:show', 'aggregates:list', 'hosts:list', 'plans:list', 'moves:list', 'automation:show',
    'automation:history', 'automation:pause', 'automation:resume', 'automation:stop', 'drains:list',
    'maintenance:show', 'maintenance:stop', 'maintenance:end', 'quarantine:list', 'room:list',
    'servers:list'))
"""Operations whose requests may be empty."""


class ParityTest(test_host.WithRecordedCloud, base.ApiTestCase):
    kronos = 'aggregates = gpu, db\nautomation = approve'

    def setUp(self):
        super().setUp()
        self.here = InProcessClient(Context(
            conf=self.conf, database=self.database, who=WHO, read_cloud=self.read_cloud,
            read_flavors=self.read_flavors, host_api=self.host_api,
            room_allocations=self.room_allocations, planner_ports=self.planner_ports))
        self.there = HttpClient(adapter.Adapter(session.Session(
            token_endpoint.Token(self.url, base.ADMIN)), endpoint_override=self.url))
        self.evaluate(policies=(plans.PolicyReport(
            name='cpu', weight=1.0, threshold=0.2, imbalance_before=0.4, imbalance_after=0.4,
            state='ok'),))
        self.proposed = self.plan(('vm1', 'a', 'b'), ('vm2', 'b', 'c', 1))
        executing = self.plan(('vm3', 'a', 'b'), name='db', state=plans.EXECUTING)
        [self.move] = (each.uuid for each in self.journal.moves(executing))
        known = db_drains.Drains(self.database)
        known.request([drains.Drain(
            uuid='d', host='c', aggregate='gpu', state=drains.DRAINING, requested_by='jane',
            requested_at=clock.utcnow())])
        Maintenances(self.database).begin(maintenance.Maintenance(
            uuid='m', state=maintenance.RUNNING, requested_by='jane', requested_at=clock.utcnow(),
            options=maintenance.MaintenanceOptions(),
            hosts={'c': maintenance.DRAINING, 'b': maintenance.HOOK}))
        holds.Holds(self.database).request(test_holds.wish(
            'r', clock.utcnow(), state=hold.PROPOSED, hosts={'a': 1}))
        cooldowns.Cooldowns(self.database).quarantine('vm1', -1, 'it failed', clock.utcnow())
        self.before = sqlite3.connect(':memory:')
        self.addCleanup(self.before.close)
        self.copy(self.database.engine.raw_connection(), self.before)

    def copy(self, source, target):
        getattr(source, 'driver_connection', source).backup(
            getattr(target, 'driver_connection', target))

    def requests(self):
        """Requests of each operation, some of which are refused, by its name."""
        return {**{name: [{}] for name in PLAIN}, **{
            'aggregates:show': [{'aggregate': 'gpu'}, {'aggregate': 'x'}],
            'hosts:show': [{'host': 'a'}, {'host': 'x'}],
            'plans:show': [{'plan': self.proposed}, {'plan': 'x'}],
            'plans:approve': [{'plan': self.proposed, 'skip': [1]}, {'plan': 'x'},
                              {'plan': self.proposed, 'skip': [9]}],
            'plans:reject': [{'plan': self.proposed}, {'plan': 'x'}],
            'moves:show': [{'move': self.move}, {'move': 'x'}],
            'moves:abort': [{'move': self.move}, {'move': 'x'}],
            'servers:explain': [{'server': 'vm1'}, {'server': 'name-of-vm2'}, {'server': 'x'}],
            'automation:set': [{'aggregate': 'gpu', 'level': 'auto', 'reason': 'why'},
                               {'aggregate': 'x', 'level': 'off'}],
            'evaluations:show': [{'aggregate': 'gpu'}, {'aggregate': 'x'}],
            'evaluations:history': [{'aggregate': 'gpu'}, {'aggregate': 'x'}],
            'drains:show': [{'drain': 'd'}, {'drain': 'x'}],
            'drains:begin': [{'hosts': ['a'], 'check': True}, {'hosts': ['a']}, {'hosts': ['c']},
                             {'hosts': ['a', 'b']}, {'hosts': ['x']},
                             {'hosts': ['a'], 'deadline': '2020-01-01T00:00:00Z'}],
            'drains:release': [{'host': 'c'}, {'host': 'b'}],
            'drains:host': [{'host': 'a'}, {'host': 'c'}, {'host': 'x'}],
            'maintenance:done': [{'host': 'b'}, {'host': 'c'}, {'host': 'x'}],
            'room:capacity': [{'flavors': ['1:512', 'm1.small'], 'loss': True}, {'flavors': ['x']},
                              {'aggregate': 'x'}],
            'room:failover': [{}, {'hosts': ['x']}],
            'room:check': [{'flavor': '2:4096', 'count': 3}, {'flavor': 'x'}],
            'room:fragments': [{'flavor': '2:4096', 'moves': 3}, {'flavor': 'x'}],
            'room:what_if': [{'aggregate': 'x'}, {'lose': ['x']}],
            'room:make': [{'flavor': 'm1.small', 'aggregate': 'gpu'}, {'flavor': 'm1.small'},
                          {'flavor': '1:512', 'aggregate': 'gpu'},
                          {'flavor': 'm1.small', 'aggregate': 'x'}],
            'room:show': [{'room': 'r'}, {'room': 'x'}],
            'room:approve': [{'room': 'r'}, {'room': 'x'}],
            'room:release': [{'room': 'r'}, {'room': 'x'}],
            'report:show': [{'by': ['month', 'project']}, {'aggregate': 'x'}],
            'quarantine:end': [{'server': 'vm1'}, {'server': 'vm2'}]}}

    def outcome(self, client, operation, request):
        """The response or refusal as text, without times and new uuids."""
        self.copy(self.before, self.database.engine.raw_connection())
        try:
            found = msgspec.json.encode(client.call(operation, request)).decode()
        except (errors.Refused, errors.Unreachable) as error:
            found = f'{type(error).__name__} {getattr(error, "code", "")} {error}'
        for pattern in NEW:
            found = pattern.sub('', found)
        return found

    def test_both_clients_get_the_same_response_or_refusal(self):
        requests, refused = self.requests(), set()
        self.assertEqual({each.name for each in table.OPERATIONS}, {*requests})
        for operation in table.OPERATIONS:
            for given in requests[operation.name]:
                request = msgspec.convert(given, operation.request)
                here = self.outcome(self.here, operation, request)
                self.assertEqual(here, self.outcome(self.there, operation, request),
                                 (operation.name, given))
                if here.startswith('Refused'):
                    refused.add(operation.name)
        self.assertEqual({name for name, given in requests.items() if len(given) > 1}, refused)

    def test_both_clients_refuse_what_is_out_of_the_bounds_of_the_contract(self):
        requests, tried = self.requests(), set()
        for operation in table.OPERATIONS:
            request = msgspec.convert(requests[operation.name][0], operation.request)
            for name, most in _bounds(operation):
                beyond = msgspec.structs.replace(request, **{name: most + 1})
                here = self.outcome(self.here, operation, beyond)
                why = f'Expected `int` <= {most} - at `$.{name}`'
                self.assertEqual(f'Refused kronos.out_of_bounds {why}', here)
                self.assertEqual(f'Refused kronos.http_400 {why}',
                                 self.outcome(self.there, operation, beyond))
                tried.add((operation.name, name))
        self.assertLessEqual({('room:make', 'count'), ('room:make', 'hold_seconds'),
                              ('drains:begin', 'parallel'), ('plans:list', 'limit')}, tried)


def _bounds(operation):
    """[(name of a number in a request, the largest one)]"""
    for field in msgspec.inspect.type_info(operation.request).fields:
        kinds = getattr(field.type, 'types', (field.type,))
        for kind in kinds:
            if isinstance(kind, msgspec.inspect.IntType) and kind.le is not None:
                yield field.name, kind.le
