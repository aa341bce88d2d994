"""A conductor worker that does nothing but reconcile, until all that is recent was looked at.

    python -m bench.cloud.reconciler HOST --config-file NOVA_CONF

What a worker of nova-conductor makes at its first tick is made, and its ticks follow each other
without the seconds between them. Ends when some worker has looked at everything; prints JSON:
seconds of the processor since the first tick, how many ticks, and whether it was the one that
looked.
"""

from nova import monkey_patch  # isort: skip

monkey_patch.patch(backend='threading')  # as in the conductor

# ruff: noqa: E402
import json
import sys
import time

import nova.conf
from nova import config
from nova import objects
from oslo_log import log as logging

from kronos_nova import clock
from kronos_nova import conf as kronos_conf
from kronos_nova.db import engine as db_engine
from kronos_nova.db import leases
from kronos_nova.db import repairs
from kronos_nova.db import tasks
from kronos_nova.plugin import placement
from kronos_nova.plugin import reconciling

CONF = nova.conf.CONF
PAUSE = 0.05
IDLE_PAUSE = 1.0


def main(host, *arguments):
    config.parse_args(['nova-conductor', *arguments])
    kronos_conf.register_opts(CONF)
    logging.setup(CONF, 'nova')
    objects.register_all()
    database = db_engine.Database(db_engine.control_engine(CONF))
    held = leases.Leases(database, host, clock.utcnow)
    cpu, wall, ticks, looked = time.process_time(), time.monotonic(), 0, False
    work = reconciling.Reconciling(
        CONF, placement.client(), repairs.Repairs(database, clock.utcnow),
        tasks.Tasks(database, host, clock.utcnow), held)
    while held.progress(leases.RECONCILER) is None:
        work.tick()
        ticks += 1
        looked = looked or work._work is not None
        time.sleep(PAUSE if work._work is not None else IDLE_PAUSE)
    json.dump({'cpu': time.process_time() - cpu, 'wall': time.monotonic() - wall, 'ticks': ticks,
               'looked': looked}, sys.stdout)


if __name__ == '__main__':
    main(*sys.argv[1:])
