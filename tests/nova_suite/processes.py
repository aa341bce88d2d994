"""Runs tests in worker processes, and ends those that hang."""

import asyncio
import dataclasses
import json
import os
import pathlib
import signal
import sys
from collections.abc import Callable
from collections.abc import Iterable

from tests.nova_suite import records

# A traceback or the log of a test comes as one line.
LONGEST_LINE = 256 << 20
# Importing Nova and a module of tests, on a machine that does much else.
START_SECONDS = 300
NOTHING = {'live': 0, 'atomic': 0, 'writes': 0}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """:param path: the tree in which ``nova`` is found
    :param time_limit: seconds after which a test counts as hanging
    :param patience: how many times as long as they say tests wait for a state
    :param log: where what workers print goes
    """

    path: pathlib.Path
    variant: str
    environment: dict[str, str]
    workers: int
    time_limit: float
    patience: float
    log: pathlib.Path

    def run(self, orders: Iterable[dict], ended: Callable[[dict], None]) -> None:
        """Carry out ``orders``, as :mod:`tests.nova_suite.worker` has them, and report each test
        that ended."""
        asyncio.run(self._run(list(orders), ended))

    async def _run(self, orders, ended):
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self.workers, len(orders))):
                group.create_task(self._carry_out(orders, ended))

    async def _carry_out(self, orders, ended):
        worker = None
        try:
            while orders:
                order = orders.pop(0)
                while order is not None:
                    if worker is None or worker.returncode is not None:
                        worker = await self._start()
                    order = await self._module(worker, order, ended)
        finally:
            if worker is not None:
                await _end(worker)

    async def _start(self):
        arguments = [f'--patience={self.patience}']
        if self.variant == records.STOCK:
            arguments.append('--stock')
        with self.log.open('ab') as log:
            return await asyncio.create_subprocess_exec(
                sys.executable, '-m', 'tests.nova_suite.worker', *arguments,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
                limit=LONGEST_LINE, start_new_session=True,
                env=os.environ | self.environment | {'PYTHONPATH': f'{self.path}:{os.getcwd()}'})

    async def _module(self, worker, order, ended):
        """Let a worker run a module; what is left to do of it where it hung or died, or None."""
        worker.stdin.write(json.dumps(order).encode() + b'\n')
        running, done = None, []
        while True:
            try:
                line = await asyncio.wait_for(
                    worker.stdout.readline(), self.time_limit if running else START_SECONDS)
            except TimeoutError:
                line = b''
            if not line:
                await _end(worker)
                if running is None:
                    # Not even the module could be loaded.
                    running = f'{order["module"]}.(loading)'
                    ended(_cut_off(running, self.time_limit))
                    return None
                ended(_cut_off(running, self.time_limit))
                return order | {'without': [*order['without'], *done, running]}
            message = json.loads(line)
            if 'module' in message:
                return None
            if 'started' in message:
                running = message['started']
                continue
            done.append(running)
            running = None
            ended(message)


def _cut_off(test, seconds):
    return {'id': test, 'outcome': records.HUNG, 'seconds': seconds, 'cpu': 0, 'counts': NOTHING,
            'details': 'The test hung, or its process died.'}


async def _end(worker):
    if worker.returncode is None:
        os.killpg(worker.pid, signal.SIGKILL)
    await worker.wait()
