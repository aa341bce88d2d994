"""A worker that is killed between any two of its calls: the next one carries the move out, once.

A call is one to the journal, to the broker or to Nova. The worker dies before it or after it, and
nothing of it runs from then on.
"""

import contextlib
import datetime
import functools
import itertools

from kronos_nova.db import cooldowns
from kronos_nova.db import journal as db_journal
from kronos_nova.objects import move as moves
from tests.unit.db import fixtures
from tests.unit.executor import test_executor

CALLS = {'journal': ('dispatch', 'claim', 'advance', 'begin'), 'worker': ('cast',),
         'nova': ('hold_room', 'live_migrate', 'release_room')}
MOMENTS = BEFORE, AFTER = 'before', 'after'
MIGRATION_SECONDS = 20
TICK_SECONDS = 10
LONGEST_SECONDS = 600


class Killed(BaseException):
    """The end of a process: no handler of the process sees it."""


class Death:
    """The end of a worker at one of its calls.

    ``where`` is None until the worker is dead.

    :param number: of the call, from 0
    :param moment: BEFORE or AFTER the call
    """

    def __init__(self, number, moment):
        self._number, self._moment = number, moment
        self._count = 0
        self.where = None

    def arm(self, owner, name):
        real = getattr(owner, name)

        @functools.wraps(real)
        def call(*args, **kwargs):
            is_last = self._count == self._number
            self._count += 1
            if not is_last:
                return real(*args, **kwargs)
            if self._moment == AFTER:
                real(*args, **kwargs)
            self.where = f'{self._moment} {name}'
            raise Killed

        setattr(owner, name, call)


class ActingNova(test_executor.RecordedNova):
    """Migrates its instance within MIGRATION_SECONDS of the first request."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock
        self._ends_at = None

    def live_migrate(self, move):
        super().live_migrate(move)
        if self._ends_at is None:
            self._ends_at = self._clock() + datetime.timedelta(seconds=MIGRATION_SECONDS)
            self.puts('a', task_state='migrating')
            self.says('running')

    def act(self):
        if self._ends_at is not None and self._clock() >= self._ends_at:
            self.puts('b')
            self.says('completed')


class DeathTest(test_executor.ExecutorTestCase):
    def carry_out(self, death):
        """Carry a move out by a worker that dies, and by the next one."""
        database = self.useFixture(fixtures.ControlDatabase()).database
        self.nova, self.journal = ActingNova(self.clock), db_journal.Journal(database, 'victim')
        self.cooldowns = cooldowns.Cooldowns(database)
        self.plan()
        victim = self.new_worker(self.journal)
        owners = {'journal': self.journal, 'worker': victim, 'nova': self.nova}
        for owner, names in CALLS.items():
            for name in names:
                death.arm(owners[owner], name)
        heir = self.new_worker(db_journal.Journal(database, 'heir'))
        for _tick in range(LONGEST_SECONDS // TICK_SECONDS):
            self.clock.go(TICK_SECONDS)
            self.nova.act()
            with contextlib.suppress(Killed):
                (heir if death.where else victim).tick()
            if self.move().state in moves.TERMINAL:
                return

    def problems(self):
        """Return what is wrong in the end."""
        move = self.move()
        if move.state != moves.COMPLETED:
            yield f'it is {move.state}: {move.error}'
        if len(self.nova.requests) != 1:
            yield f'Nova was asked {len(self.nova.requests)} times'
        if self.cooldowns.quarantined(self.clock()):
            yield 'its instance is in quarantine'

    def test_each_move_is_made_once(self):
        places, wrong = set(), []
        for moment in MOMENTS:
            for number in itertools.count():
                death = Death(number, moment)
                self.carry_out(death)
                wrong += [(number, death.where, problem) for problem in self.problems()]
                if death.where is None:     # the move needs no more calls than that
                    break
                places.add(death.where)
        self.assertEqual([], wrong)
        self.assertEqual({f'{moment} {name}' for names in CALLS.values() for name in names
                          for moment in MOMENTS}, places)
