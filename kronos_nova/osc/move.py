"""``openstack kronos move``: where the moves of plans stand."""

from osc_lib.command import command

from kronos_nova.api import views as v
from kronos_nova.cmd import arguments
from kronos_nova.cmd import tables
from kronos_nova.objects import move as moves
from kronos_nova.osc.client import at


class List(command.Lister):
    """List moves: those that have not ended, or all of a plan.

    Progress is the share of memory that is copied, in percent, where the hypervisor's driver says.
    The estimated end goes by how long moves of about the same memory took.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--plan', metavar='<uuid>', help='All moves of this plan')
        parser.add_argument('--server', metavar='<uuid>', help='Only those of this server')
        parser.add_argument('--all', action='store_true', help='Ended ones too')
        parser.add_argument('--limit', type=arguments.POSITIVE, default=200, metavar='<n>',
                            help='How many; default: 200')
        return parser

    def take_action(self, parsed_args):
        client, wanted = self.app.client_manager.rebalancing, [None]
        if not (parsed_args.all or parsed_args.plan):
            wanted = [moves.PLANNED, *moves.IN_FLIGHT]
        found = [each for state in wanted for each in client.pages(
            '/v1/moves', v.Moves, 'moves', parsed_args.limit, plan=parsed_args.plan,
            instance=parsed_args.server, state=state)]
        # As the journal gives them: by plan, the newest first, and then in their order.
        found.sort(key=lambda move: (-move.created_at.timestamp(), move.plan_uuid, move.ordinal))
        return tables.MOVES, [
            tables.move(each, each.instance_name, each.progress, each.estimated_end)
            for each in found[:parsed_args.limit]]


class Show(command.ShowOne):
    """Show a move and everything that happened to it."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('move', metavar='<uuid>')
        return parser

    def take_action(self, parsed_args):
        found = self.app.client_manager.rebalancing.get(
            at('/v1/moves/{}', parsed_args.move), v.MoveDetail)
        return tables.move_details(found, found.instance_name, found.worker, [
            (each.at, each.old_state, each.new_state, each.worker, each.detail)
            for each in found.events])


class Abort(command.Command):
    """End a move: it is not begun, or Nova is asked to abort its migration.

    Returns at once; "kronos move show" tells what came of it. A move ended like this is neither
    tried again nor does it put its instance into quarantine.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('move', metavar='<uuid>')
        return parser

    def take_action(self, parsed_args):
        self.app.client_manager.rebalancing.ask('POST', at('/v1/moves/{}/abort', parsed_args.move))
        self.app.stdout.write('Asked to end; "openstack kronos move show" tells what came of it.\n')
