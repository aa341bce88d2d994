"""Starts an unmodified Nova service that dies by SIGKILL where it is told to.

    python -m tests.e2e.box.mortal compute|conductor ARGUMENTS...

``KRONOS_BOX_DEATH`` names a file. When it says ``dotted.path.of.Class.method before`` (or
``after``), the process that gets there next takes the file away and is gone.
"""

import functools
import importlib
import os
import pathlib
import signal
import sys

from oslo_utils import importutils

POINTS = {
    # What the conductor's task goes through, in order.
    'conductor': (
        'kronos_nova.db.tasks.Tasks.begin',
        'nova.conductor.tasks.live_migrate.LiveMigrationTask._check_host_is_up',
        'nova.scheduler.client.query.SchedulerQueryClient.select_destinations',
        'kronos_nova.plugin.live_migration.Claim.candidates',
        'kronos_nova.plugin.live_migration.Claim.take',
        'nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination',
        'kronos_nova.plugin.live_migration.AtomicLiveMigrationTask._record_destination',
        'kronos_nova.db.tasks.Tasks.hand_over',
        'nova.compute.rpcapi.ComputeAPI.live_migration',
        'kronos_nova.db.tasks.Tasks.end',
    ),
    # What nova-compute on the source goes through, whether the guest arrives or returns.
    'compute': (
        'nova.compute.manager.ComputeManager._do_live_migration',
        'nova.compute.manager.ComputeManager._post_live_migration',
        'nova.scheduler.client.report.SchedulerReportClient.delete_allocation_for_instance',
        'nova.compute.manager.ComputeManager._rollback_live_migration',
        'kronos_nova.plugin.compute.KronosComputeManager._revert_allocation',
    ),
}


def make_mortal(path, order):
    owner_path, name = path.rsplit('.', 1)
    owner = importutils.import_class(owner_path)
    real = getattr(owner, name)

    @functools.wraps(real)
    def method(*args, **kwargs):
        _die_if_told(order, f'{path} before')
        result = real(*args, **kwargs)
        _die_if_told(order, f'{path} after')
        return result

    setattr(owner, name, method)


def _die_if_told(order, here):
    try:
        if order.read_text() != here:
            return
        order.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    service = sys.argv.pop(1)
    sys.argv[0] = f'nova-{service}'
    if service == 'compute':
        importlib.import_module('tests.e2e.box.compute')
    command = importlib.import_module(f'nova.cmd.{service}')
    for path in POINTS[service]:
        make_mortal(path, pathlib.Path(os.environ['KRONOS_BOX_DEATH']))
    return command.main()


if __name__ == '__main__':
    sys.exit(main())
