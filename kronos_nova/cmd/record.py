"""``kronos-record``: a snapshot of a live cloud, for ``kronos-replay``."""

import argparse
import pathlib
import sys

from oslo_config import cfg
from oslo_db import exception as db_exc

from kronos_client.cli import command
from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cmd import database as databases
from kronos_nova.cmd import manage
from kronos_nova.cmd import program
from kronos_nova.cooldown.planning_history import PlanningHistory
from kronos_nova.cycle import observe
from kronos_nova.cycle import options as engine_options
from kronos_nova.cycle.ports import CyclePorts
from kronos_nova.cycle.ports import CycleRules
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.policies import PolicySet
from kronos_nova.record import history as recorded_history
from kronos_nova.record import options
from kronos_nova.record import writer
from kronos_nova.record.anonymise import anonymise

NAME = 'kronos-record'


class Record(command.ShowOne):
    """Record a snapshot of this cloud: everything that Kronos reads for an evaluation.
    "kronos-replay" plans with such a snapshot.

    Exit codes: 0 the snapshot is complete; 1 something could not be read or written, and no
    snapshot was left behind; 2 the arguments are wrong.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('folder', metavar='DIR', type=pathlib.Path,
                            help='Folder to write the snapshot to: a new folder, or an existing '
                                 'folder that is empty.')
        manage.add_config_arguments(parser)
        parser.add_argument('--policies', metavar='FILE', type=pathlib.Path,
                            help='Use this policies file instead of [kronos] policies_file.')
        parser.add_argument('--cloud', metavar='TEXT', default='',
                            help='Name of this cloud, which is written into the snapshot.')
        parser.add_argument('--anonymise', action='store_true',
                            help='Replace all names, uuids and projects in the snapshot by made-up '
                                 'ones; a replay of the snapshot gives the same plan.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        taken = record(manage.load_config(parsed_args), parsed_args)
        snapshot = taken.snapshot
        return self.dict2columns({
            'folder': str(parsed_args.folder), 'taken_at': snapshot.taken_at,
            'hosts': len(snapshot.hosts), 'instances': len(snapshot.instances),
            'aggregates': len(snapshot.aggregates), 'server_groups': len(snapshot.server_groups),
            'answers_of_prometheus': len(taken.bodies)})


def record(conf: cfg.ConfigOpts, args: argparse.Namespace) -> writer.Taken:
    """Read the cloud to which ``conf`` gives access, and write a snapshot. ``args`` determine the
    content and the folder of the snapshot.

    :raises KronosException: something could not be read or written
    """
    path = args.policies or pathlib.Path(conf.kronos.policies_file)
    policy_set = policies.load(path)
    source = prometheus.from_conf(conf)
    inventory = OpenStackInventory(connect(conf), domain_keys=conf.kronos.failure_domain_key)
    taken = writer.read_cloud(
        inventory, source, policy_set,
        policies=path.read_bytes(), cloud=args.cloud,
        kronos_version=manage.version_string(), options=options.in_force(conf),
        history=_history(conf, inventory, source, policy_set))
    if args.anonymise:
        taken = anonymise(taken, policy_set)
    writer.write(taken, args.folder)
    return taken


def _history(conf: cfg.ConfigOpts, inventory: OpenStackInventory, source: MetricsSource,
             policy_set: PolicySet) -> PlanningHistory | None:
    """Return the PlanningHistory, which describes the past evaluations and moves that planning
    uses; None if the control database cannot be read."""
    chosen, rules = engine_options.from_conf(conf), CycleRules.from_conf(conf)
    try:
        database = databases.control_database(conf)
        cycle_ports = CyclePorts.over(
            database, journal.Journal(database, 'observer'), inventory=inventory, metrics=source,
            history=inventory.past_moves)
        return observe.planning_history(cycle_ports, chosen, rules, database.utcnow(), names=None,
                                        units={}, proposals={}, policies=policy_set)
    except (exception.ConfigurationError, db_exc.DBError) as error:
        print(f'{recorded_history.NAME} is left out, and a replay expects every load to stay as '
              f'it is: {db_engine.first_line(error)}', file=sys.stderr)
        return None


def main(argv: list[str] | None = None) -> int:
    """Run kronos-record.

    :returns: the exit code
    """
    return program.run(Record, NAME, argv)
