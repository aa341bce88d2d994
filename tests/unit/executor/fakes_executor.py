"""An executor and its dispatcher in one thread, with nothing between them."""

from concurrent import futures

from kronos_nova.executor import dispatcher
from kronos_nova.executor import executor
from kronos_nova.executor import late_arrivals
from kronos_nova.executor import outcome
from kronos_nova.executor import permits
from kronos_nova.executor import ports
from kronos_nova.executor import runner
from kronos_nova.objects import automation
from kronos_nova.objects import snapshot


class InlinePool(futures.Executor):
    """Does what is submitted at once."""

    def submit(self, work, *args, **kwargs):
        work(*args, **kwargs)


class Worker:
    """A conductor worker without a broker: a task goes straight to the executor, a result
    straight to the handler of outcomes.

    :param is_heard: whether tasks and results arrive
    """

    def __init__(self, journal, compute, cooldowns, options, utcnow, is_heard=True,
                 monotonic=None, stops=None, aggregates=('gpu', snapshot.UNASSIGNED)):
        self.journal = journal
        self.is_heard = is_heard
        self.announced = []
        self.is_open = self.trusts_clock = True
        self.complaint = None
        self.automation = automation.Defaults(level=automation.AUTO)
        wired = ports.ExecutorPorts(
            journal=journal, cooldowns=cooldowns, utcnow=utcnow, monotonic=monotonic,
            is_clock_right=lambda: self.trusts_clock,
            aggregates=aggregates,
            permits=permits.Permits(journal.database, self._defaults,
                                    lambda _aggregate, _now: self.is_open,
                                    stops.hold if stops else lambda _aggregate: None))
        self.outcomes = outcome.OutcomeHandler(wired, options)
        self.runner = runner.Runner(wired, compute, self._announce, options)
        self.late_arrivals = late_arrivals.LateArrivals(wired, compute, InlinePool())
        self.executor = executor.Executor(wired, self.runner, InlinePool(), options)
        self.dispatcher = dispatcher.Dispatcher(wired, self, self.outcomes, options)

    def _defaults(self):
        if self.complaint:
            raise self.complaint
        return self.automation

    def cast(self, move):
        if self.is_heard:
            self.executor.accept(move.uuid)

    def _announce(self, move):
        self.announced.append(move)
        if self.is_heard:
            self.outcomes.settle_move(move)

    def tick(self):
        self.late_arrivals.tick()
        self.executor.tick()
        self.dispatcher.tick()
