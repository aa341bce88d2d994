"""Looks at the cloud from outside: Prometheus for loads, the control database for plans."""

import dataclasses

UNDER_WAY = ('dispatched', 'checking', 'claiming', 'migrating', 'verifying')


@dataclasses.dataclass(frozen=True)
class Picture:
    """The state of the demo at one moment.

    :param loads: policy -> host -> 0 to 1
    :param imbalance: rack -> policy -> highest load less the lowest, None where a host has no
        data
    :param guests: host -> number of servers
    :param moves: rows of the journal, oldest first
    :param cycles: rack -> outcome of the last evaluation
    """

    loads: dict
    imbalance: dict
    guests: dict
    moves: list
    cycles: dict

    def under_way(self):
        return [move for move in self.moves if move['state'] in UNDER_WAY]

    def counts(self):
        """State -> number of moves."""
        states = [move['state'] for move in self.moves]
        return {state: states.count(state) for state in dict.fromkeys(states)}


class Observer:
    def __init__(self, cloud, plan):
        self._cloud = cloud
        self._scenario = plan

    def look(self):
        loads = {name: self._loads(imbalance)
                 for name, (imbalance, _profile) in self._scenario.queries.items()}
        moves, cycles = self._journal()
        return Picture(loads=loads, imbalance=self._imbalances(loads),
                       guests=self._scenario.guests_on(self._cloud), moves=moves, cycles=cycles)

    def _loads(self, query):
        return {labels['host']: value for labels, value in self._cloud.monitoring.query(query)}

    def _imbalances(self, loads):
        def spread(policy, hosts):
            values = [loads[policy].get(host) for host in hosts]
            return None if None in values else max(values) - min(values)
        return {rack: {policy: spread(policy, hosts) for policy in loads}
                for rack, hosts in self._scenario.hosts.items()}

    def _journal(self):
        """Moves as dicts and the last outcome of each rack."""
        query = self._cloud.database.query
        moves = query('kronos', 'SELECT moves.*, plans.created_at AS planned_at FROM moves '
                      'JOIN plans ON plans.uuid = moves.plan_uuid '
                      'ORDER BY plans.created_at, moves.ordinal')
        cycles = query('kronos', 'SELECT aggregate, outcome FROM cycles')
        return moves, {row['aggregate']: row['outcome'] for row in cycles}
