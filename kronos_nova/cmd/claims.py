"""``kronos-manage claims``: commands for claims, which are stored on a compute host, or centrally
for all compute hosts."""

import argparse
import datetime
import json
from typing import Any

from oslo_config import cfg

from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_nova import clock
from kronos_nova.claims import claim_reader
from kronos_nova.cmd import db
from kronos_nova.db import migrate
from kronos_nova.objects.claim import PREPARED
from kronos_nova.objects.claim import Claim

COLUMNS = ('ID', 'Host', 'Node', 'Instance', 'VCPUs', 'Memory MB', 'Disk GB', 'Target', 'State',
           'Made')


def _claim_reader(conf: cfg.ConfigOpts) -> claim_reader.ClaimReader:
    """Open the store of claims that ``[kronos_claims] store`` names."""
    is_central = conf.kronos_claims.store == 'central'
    history = migrate.CONTROL if is_central else migrate.CLAIMS
    return claim_reader.ClaimReader(db.open_engine(conf, history.name), history)


def _row(claim: Claim) -> tuple[Any, ...]:
    amount = claim.amount
    return (claim.id, claim.host, claim.node, claim.instance_uuid, amount.vcpus, amount.memory_mb,
            amount.disk_gb, claim.resize_target, claim.state,
            columns.Time(claim.created_at))


class List(command.Lister):
    """List the resource claims of this compute host or, with [kronos_claims] store = central, of
    all compute hosts."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--node', help='List only claims on this compute node.')
        parser.add_argument('--instance', metavar='UUID',
                            help='List only claims of this instance.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        return COLUMNS, [
            _row(claim) for claim in _claim_reader(self.app.conf).all()
            if parsed_args.node in (None, claim.node) and
            parsed_args.instance in (None, claim.instance_uuid)]


class Show(command.ShowOne):
    """Show a claim, with its PCI devices, its NUMA topology, and the migration that it belongs
    to."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('id', type=arguments.COUNT, metavar='ID',
                            help='Number of the claim, as "claims list" shows it.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        claim = _claim_reader(self.app.conf).get(parsed_args.id)
        topology = claim.amount.numa_topology
        return (*COLUMNS, 'Migration', 'PCI devices', 'NUMA topology'), (
            *_row(claim), claim.migration_uuid, list(claim.amount.pci),
            topology and json.loads(topology))


class Clean(command.Lister):
    """Remove claims that are no longer needed, and list them. Without --apply, the command only
    lists the claims that it would remove.

    If no ID is given, the command selects the claims that were prepared for a move and are older
    than [kronos_claims] claim_expiry_time. While nova-compute is running, it removes such claims
    without this command.

    The resources of a removed claim become free at the next audit of nova-compute. If the claim
    belongs to an instance or a migration, this audit makes the claim again.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('ids', type=arguments.COUNT, nargs='*', metavar='ID',
                            help='Number of a claim to remove, as "claims list" shows it; may be '
                                 'repeated; default: all claims that have expired.')
        parser.add_argument('--apply', action='store_true',
                            help='Remove the claims, instead of only listing them.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        store = _claim_reader(self.app.conf)
        chosen = [store.get(claim_id) for claim_id in parsed_args.ids]
        if not parsed_args.ids:
            chosen = [claim for claim in store.all() if self._is_expired(claim)]
        if parsed_args.apply and chosen:
            store.remove(chosen)
        return COLUMNS, [_row(claim) for claim in chosen]

    def _is_expired(self, claim: Claim) -> bool:
        expiry = datetime.timedelta(seconds=self.app.conf.kronos_claims.claim_expiry_time)
        now = clock.utcnow()
        return claim.state == PREPARED and claim.created_at + expiry < now
