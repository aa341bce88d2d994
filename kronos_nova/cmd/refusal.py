"""``kronos-manage refusal``: instances that Nova would not let go anywhere."""

from cliff import lister
from oslo_utils import timeutils

from kronos_nova.cmd import control


class List(lister.Lister):
    """List instances for which Nova refused several hosts, and that are left alone for a while.

    Nothing is wrong with them: they are tried again by themselves.
    """

    def take_action(self, parsed_args):
        found = control.refusals(self.app.conf).list(timeutils.utcnow())
        return ('Instance', 'Refused at', 'Rests until', 'Hosts', 'Reason of the last one'), [
            (refusal.instance_uuid, refused_at.isoformat(' '), until.isoformat(' '),
             ', '.join(refusal.hosts), refusal.reason) for refusal, until, refused_at in found]
