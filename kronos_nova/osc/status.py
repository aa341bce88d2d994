"""``openstack kronos status``: what Kronos is doing now, on one page."""

import dataclasses

import msgspec
from osc_lib.command import command

from kronos_nova.api import views as v
from kronos_nova.cli import columns
from kronos_nova.cmd import status_view
from kronos_nova.operations import overview


class Status(command.Command):
    """Show what Kronos is doing: levels, last evaluations, plans under way, workers, problems.

    Exit codes, for monitoring: 0 all is well, 1 it could not be told, 3 something deserves a look,
    4 something has to be mended.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        columns.add_text_or_json(parser)
        return parser

    def take_action(self, parsed_args):
        found = _overview(self.app.client_manager.rebalancing)
        self.app.stdout.write(f'{status_view.shown(found, parsed_args.format)}\n')
        return status_view.EXIT[found.severity]


def _overview(client) -> overview.Overview:
    """What the command that reads the database shows, put together from what the API tells."""
    status = client.get('/v1/status', v.Status)
    maintenance = status.maintenance
    return _built(
        overview.Overview, status,
        aggregates=tuple(map(_aggregate, client.get('/v1/aggregates', v.Aggregates).aggregates)),
        workers=tuple(_built(overview.WorkerState, each) for each in status.workers),
        drains=tuple(_built(overview.DrainState, each, blocked=len(each.blocked))
                     for each in client.get('/v1/drains', v.Drains).drains),
        maintenance=maintenance and _built(overview.MaintenanceState, maintenance, hosts={
            each.host: each.state for each in maintenance.hosts}),
        problems=tuple(_built(overview.Trouble, each) for each in status.problems))


def _aggregate(found):
    return _built(
        overview.AggregateState, found, warnings=tuple(found.warnings),
        policies=tuple(_built(overview.PolicyState, each) for each in found.policies),
        plan=found.plan and _built(overview.OpenPlan, found.plan))


def _built(cls, view, **given):
    """A dataclass from a view of the same names."""
    values = msgspec.structs.asdict(view) | given
    return cls(**{field.name: values[field.name] for field in dataclasses.fields(cls)
                  if field.name in values})
