"""A story in which everything happens that is notified."""

import datetime
import json
import re
from unittest import mock

from kronos_nova.db import drains as db_drains
from kronos_nova.db import journal as db_journal
from kronos_nova.db import outbox
from kronos_nova.db import server_names
from kronos_nova.db import switches
from kronos_nova.drain import states as drains
from kronos_nova.executor import broker
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)
SERVERS = {f'c0ffee00-0000-4000-8000-00000000000{number}': f'web-{number}' for number in range(4)}
UUID = re.compile('[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')


class Story:
    """Changes of a control database that may be announced."""

    def __init__(self, database):
        self.database = database
        self.clock = fixtures.Clock()
        self.journal = db_journal.Journal(database, 'controller1:4711:0a1b2c3d')
        self.board = switches.SwitchBoard(database)
        self.drains = db_drains.Drains(database)
        self.outbox = outbox.Outbox(database)

    def reported(self):
        """Return the notifications since the last call."""
        while self.outbox.number():
            pass
        found = self.outbox.waiting(1000)
        self.outbox.mark_sent([each.uuid for each in found], self.clock())
        return found

    def events(self):
        return [each.event_type for each in self.reported()]

    def plan(self, *pairs, state=plans.EXECUTING):
        """A plan that moves servers from one host to another."""
        self.clock.go(60)
        report = fixtures.report([(uuid, *pair)
                                  for uuid, pair in zip(SERVERS, pairs, strict=False)])
        return self.journal.record_plan(report, state, self.clock(),
                                        self.clock() + datetime.timedelta(hours=1))

    def begin(self):
        """The moves that may go, as migrations of Nova."""
        going = []
        for move in self.journal.dispatch(WIDE, self.clock):
            taken = self.journal.claim(move.uuid, self.clock())
            self.clock.go(1)
            going.append(self.journal.begin(taken, self.clock(), lambda _session, _plan: None,
                                            requested_at=self.clock()))
        return going

    def end(self, move, state, **values):
        self.clock.go(12)
        if state == moves.COMPLETED:
            move = self.journal.advance(move, moves.VERIFYING, self.clock())
        self.journal.advance(move, state, self.clock(), finished_at=self.clock(),
                             settled_at=self.clock(), **values)

    def retry(self, move):
        """Fail, with a try left; the move as it is then."""
        self.clock.go(5)
        return self.journal.advance(
            move, moves.PLANNED, self.clock(), detail='NovaClientError: no answer', owner=None,
            retry_count=move.retry_count + 1, error_type='NovaClientError', error='no answer')

    def switch(self, kind, value, aggregate='gpu', reason='month end'):
        self.clock.go(1)
        self.board.set(automation.Switch(kind=kind, aggregate=aggregate, value=value,
                                         set_by='jane@controller1', set_at=self.clock(),
                                         reason=reason))

    def drain(self, host='compute7'):
        self.clock.go(1)
        wish = drains.Drain(
            uuid='d7a10000-0000-4000-8000-000000000001', host=host, aggregate='gpu',
            state=drains.REQUESTED, requested_by='jane@controller1', requested_at=self.clock(),
            reason='new memory')
        self.drains.request([wish])
        return wish

    def tell_all(self):
        """Let everything happen at least once."""
        server_names.ServerNames(self.database).save(SERVERS, self.clock())
        uuid = self.plan(('a', 'b'), ('a', 'c'), ('c', 'b'), ('a', 'd'), state=plans.PROPOSED)
        report = plans.AggregateReport.from_json(self.journal.plan(uuid).report)
        self.clock.go(30)
        self.journal.approve_plan(uuid, report.moves[:3], 'jane@controller1', self.clock())
        self.journal.start_plan(uuid, report.moves[:3], self.clock())
        first, second, third = self.begin()
        self.end(first, moves.COMPLETED)
        self.retry(second)
        [second] = self.begin()
        self.end(second, moves.FAILED, detail='MigrationFailed: guest is too busy',
                 error_type='MigrationFailed', error='guest is too busy')
        self.end(third, moves.ABANDONED, detail='aborted by an operator')
        self.journal.close_plans(self.clock())
        rejected = self.plan(('a', 'b'), state=plans.PROPOSED)
        self.journal.reject_plan(rejected, 'jane@controller1', self.clock())
        self.switch(automation.LEVEL, 'auto')
        self.switch(automation.PAUSE, 'stop', automation.EVERY, 'the storage is slow')
        wish = self.drain()
        fixtures.bring(self.drains, wish, drains.DRAINING, is_ours=True)
        fixtures.bring(self.drains, wish, drains.BLOCKED, looked_at=self.clock(),
                           servers=4, left=1, blocked={[*SERVERS][3]: 'no host has room'})
        fixtures.bring(self.drains, wish, drains.EMPTY, looked_at=self.clock(), left=0,
                           blocked={}, finished_at=self.clock())


def samples(reported):
    """{event type: the first message of it as it goes over the broker, as text}, with uuids that
    are the same whenever this is run."""
    found, known = {}, {}

    def same(match):
        uuid = match.group()
        if uuid in SERVERS or uuid.startswith('d7a10000'):
            return uuid
        return known.setdefault(uuid, f'00000000-0000-4000-8000-{len(known) + 1:012}')

    for each in reported:
        if each.event_type not in found:
            message = dict(sorted(sent(each).items()))
            found[each.event_type] = UUID.sub(same, f'{json.dumps(message, indent=2)}\n')
    return found


def sent(notification):
    """The message that goes over the broker."""
    transports = mock.Mock()
    broker.NotificationSender(transports, ['topic'], 'controller1').send(notification)
    return transports.notification._send_notification.call_args.args[2]
