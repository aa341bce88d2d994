"""``kronos-manage quarantine``: instances that are not tried again for a while."""

from cliff import command
from cliff import lister

from kronos_nova.cmd import database
from kronos_nova.cmd import tables


class List(lister.Lister):
    """List instances in quarantine, since when, until when and why."""

    def take_action(self, parsed_args):
        cooldowns = database.cooldowns(self.app.conf)
        rows = cooldowns.quarantines(cooldowns.database.utcnow())
        names = database.names(self.app.conf).read(row[0] for row in rows)
        return tables.QUARANTINE, [
            tables.quarantined(uuid, names.get(uuid), since, until, reason)
            for uuid, until, reason, since in rows]


class Remove(command.Command):
    """Let an instance be moved again."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('instance', metavar='UUID')
        return parser

    def take_action(self, parsed_args):
        database.cooldowns(self.app.conf).release(parsed_args.instance)
