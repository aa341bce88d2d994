"""``kronos-record``: a snapshot of a live cloud, for ``kronos-replay``."""

import argparse
import pathlib
import sys

from oslo_config import cfg
from pbr import version

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cmd.manage import load_config
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.metrics import prometheus
from kronos_nova.record import writer
from kronos_nova.record.anonymise import anonymise

EPILOG = """Exit status: 0 the snapshot is complete; 1 something could not be read or written, and
nothing was left that could be taken for a snapshot; 2 wrong usage."""


def make_parser():
    parser = argparse.ArgumentParser(
        prog='kronos-record', epilog=EPILOG,
        description='Record what Kronos would read of this cloud now.')
    parser.add_argument('folder', metavar='DIR', type=pathlib.Path,
                        help='a new folder for the snapshot')
    parser.add_argument('--config-file', action='append', metavar='PATH',
                        help='read this file instead of nova.conf; may be repeated')
    parser.add_argument('--config-dir', action='append', metavar='DIR',
                        help='read the files of this directory too; may be repeated')
    parser.add_argument('--policies', metavar='FILE', type=pathlib.Path,
                        help='these policies instead of [kronos] policies_file')
    parser.add_argument('--cloud', metavar='TEXT', default='',
                        help='what to call this cloud in the snapshot')
    parser.add_argument('--anonymise', action='store_true',
                        help='replace names, uuids and projects; a replay gives the same plan')
    return parser


def record(conf, args) -> writer.Taken:
    """Read the cloud of ``conf`` and write it as ``args`` say.

    :raises KronosException: something could not be read or written
    """
    path = args.policies or pathlib.Path(conf.kronos.policies_file)
    policy_set = policies.load(path)
    source = prometheus.from_conf(conf)
    taken = writer.take(
        OpenStackInventory(connect(conf)), source, policy_set,
        policies=path.read_bytes(), cloud=args.cloud,
        kronos_version=version.VersionInfo('kronos-nova').version_string())
    if args.anonymise:
        taken = anonymise(taken, policy_set)
    writer.write(taken, args.folder)
    return taken


def main(argv=None):
    """:returns: the exit status, see :data:`EPILOG`"""
    args = make_parser().parse_args(argv)
    try:
        taken = record(load_config(args), args)
    except (exception.KronosException, cfg.Error) as error:
        print(f'kronos-record: {error}', file=sys.stderr)
        return 1
    snapshot = taken.snapshot
    print(f'{args.folder}: {len(snapshot.hosts)} hosts, {len(snapshot.instances)} instances, '
          f'{len(snapshot.aggregates)} aggregates, {len(snapshot.server_groups)} server groups, '
          f'{len(taken.bodies)} answers of Prometheus')
    return 0
