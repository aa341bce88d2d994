"""Single and double bit flips in the SQLite files of Kronos.

``python -m tests.hostile.flips --flips 20000`` damages a file of claims, and one of the control
database, that many times, and looks at each as a service would that starts with it. The gate runs
a few hundred of them.
"""

import argparse
import collections
import dataclasses
import logging
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.claims import base as stores
from tests.unit.claims import contract

HOST = 'compute1'
MOST_SECONDS = 2

TOPOLOGY = '{"nova_object.name": "InstanceNUMATopology", "nova_object.data": {"cells": []}}'


@dataclasses.dataclass
class Verdict:
    """Damaged files by what became of them, and what must not have happened.

    ``wrong`` lists (bits, problem)."""

    outcomes: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    wrong: list = dataclasses.field(default_factory=list)
    slowest: float = 0

    def timed(self, bits, seconds):
        self.slowest = max(self.slowest, seconds)
        if seconds > MOST_SECONDS:
            self.wrong.append((bits, f'took {seconds:.1f} s'))


def flipped(content, bits):
    """Return ``content`` with some bits inverted."""
    damaged = bytearray(content)
    for bit in bits:
        damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def draws(content, count, seed):
    """Yield ``count`` tuples of one or two bits, the same ones for a seed.

    Most of an SQLite file is free space; seven in eight flips hit what is not zero.
    """
    drawn = random.Random(seed)
    used = [place for place, byte in enumerate(content) if byte]
    for _ in range(count):
        yield tuple(
            8 * (drawn.choice(used) if drawn.random() < 7 / 8 else drawn.randrange(len(content)))
            + drawn.randrange(8) for _ in range(drawn.choice((1, 1, 2))))


class ClaimFiles:
    """A file with claims of every form, whole or damaged.

    :param directory: Path of an empty directory
    """

    def __init__(self, directory):
        self.path = directory / 'claim.sqlite'
        self._conf = cfg.ConfigOpts()
        kronos_conf.register_opts(self._conf)
        self._conf([], default_config_files=[])
        self._conf.set_override('state_path', str(directory))
        self.claims = [contract.claim(
            f'5f1e3f6a-0000-4000-8000-{number:012}', node=HOST, resize_target=number % 5 == 0,
            state='prepared' if number % 5 == 0 else 'claimed',
            amount=dataclasses.replace(contract.AMOUNT, vcpus=number, numa_topology=(
                TOPOLOGY if number % 3 else None))) for number in range(1, 21)]
        store = self.store()
        store.write(self.claims, [])
        store.close()
        self.content = self.path.read_bytes()

    def store(self):
        return stores.load_store('sqlite', self._conf, HOST)

    def place(self, content):
        """Leave nothing but a file of ``content``."""
        for path in self.path.parent.glob('claim.sqlite*'):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.path.write_bytes(content)

    def judge(self, bits, verdict, content=None):
        """Open a damaged file as nova-compute does, and go on with it."""
        self.place(flipped(self.content, bits) if content is None else content)
        # Of the processor: on a busy machine a process may stand still for seconds.
        store, began = self.store(), time.process_time()
        try:
            self._use(store, bits, verdict)
        except (exception.ClaimError, exception.DatabaseVersionError) as error:
            verdict.outcomes[f'refused: {type(error).__name__}'] += 1
            if not isinstance(error, exception.DatabaseVersionError):
                verdict.wrong.append((bits, f'{type(error).__name__}: {error}'))
        except Exception as error:  # which no service handles
            verdict.wrong.append((bits, f'unhandled {type(error).__name__}: {error}'))
        finally:
            store.close()
        verdict.timed(bits, time.process_time() - began)

    def _use(self, store, bits, verdict):
        store.open()
        known = {self._words(claim) for claim in self.claims}
        strange = [claim for claim in store.load() if self._words(claim) not in known]
        verdict.outcomes['set aside' if list(self.path.parent.glob('*.corrupt-*'))
                         else 'believed'] += 1
        if strange:
            verdict.wrong.append((bits, f'believed {strange}'))
        store.write(self.claims[:2], [self.claims[2].key])

    @staticmethod
    def _words(claim):
        return dataclasses.replace(claim, id=None, created_at=contract.NOON)


def claims(count, seed=0):
    """Return the Verdict on ``count`` damaged files of claims."""
    logging.disable()
    verdict = Verdict()
    # In memory where that is possible: most of the time would be waiting for the disk.
    memory = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        files = ClaimFiles(pathlib.Path(directory))
        for bits in draws(files.content, count, seed):
            files.judge(bits, verdict)
    logging.disable(logging.NOTSET)
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--flips', type=int, default=20000)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()
    verdict = claims(args.flips, args.seed)
    print(f'claims: {dict(verdict.outcomes)}, slowest {verdict.slowest:.2f} s, '
          f'{len(verdict.wrong)} wrong')
    for bits, problem in verdict.wrong[:20]:
        print(f'  bits {bits}: {problem}')
    return bool(verdict.wrong)


if __name__ == '__main__':
    sys.exit(main())
