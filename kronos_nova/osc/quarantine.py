"""``openstack kronos quarantine``: servers that are not tried again for a while."""

from osc_lib.command import command

from kronos_nova.api import views as v
from kronos_nova.cmd import tables
from kronos_nova.osc.client import at


class List(command.Lister):
    """List servers in quarantine, since when, until when and why."""

    def take_action(self, parsed_args):
        found = self.app.client_manager.rebalancing.get('/v1/quarantine', v.Quarantine)
        return tables.QUARANTINE, [
            tables.quarantined(each.instance_uuid, each.instance_name, each.since, each.until,
                               each.reason) for each in found.servers]


class Remove(command.Command):
    """Let a server be moved again."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('server', metavar='<uuid>')
        return parser

    def take_action(self, parsed_args):
        self.app.client_manager.rebalancing.ask(
            'DELETE', at('/v1/quarantine/{}', parsed_args.server))
