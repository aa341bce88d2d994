"""What the caps leave, given what is under way."""

import collections


class ConcurrencySlots:
    """Counts moves against :class:`kronos_nova.objects.move.Caps`, and an instance against itself.

    :param under_way: moves, each with instance_uuid, source and destination
    """

    def __init__(self, caps, under_way):
        self.caps = caps
        self.sources, self.destinations = collections.Counter(), collections.Counter()
        self.instances = set()
        for move in under_way:
            self._count(move)

    @property
    def is_full(self):
        return len(self.instances) >= self.caps.total

    def enter(self, move):
        """Count a move in, if a slot is free for it."""
        fits = (not self.is_full and move.instance_uuid not in self.instances and
                self.sources[move.source] < self.caps.sources.get(
                    move.source, self.caps.per_source) and
                self.destinations[move.destination] < self.caps.per_destination)
        if fits:
            self._count(move)
        return fits

    def _count(self, move):
        self.sources[move.source] += 1
        self.destinations[move.destination] += 1
        self.instances.add(move.instance_uuid)
