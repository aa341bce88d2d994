"""``kronos-manage refusal``: commands for instances for which Nova refused several hosts."""


import argparse

from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_nova.cmd import database


class List(command.Lister):
    """List instances for which Nova refused several hosts, and which Kronos does not move for a
    while.

    No action is needed: Kronos tries to move them again later.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        refusals = database.refusals(self.app.conf)
        found = refusals.list(refusals.database.utcnow())
        names = database.names(self.app.conf).read(each.instance_uuid for each, *_times in found)
        return ('Instance', 'Name', 'Refused at', 'Rests until', 'Hosts',
                'Reason of the last one'), [
            (refusal.instance_uuid, columns.Optional(names.get(refusal.instance_uuid)),
             columns.Time(refused_at), columns.Time(until), ', '.join(refusal.hosts),
             refusal.reason) for refusal, until, refused_at in found]
