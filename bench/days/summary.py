"""One row a strategy, over all days, weeks and sizes."""

import math

COLUMNS = ('strategy', 'moves / greedy', 'GiB / greedy', 'time above threshold',
           'hot host minutes / no moves', 'hot host minutes / oracle',
           'hot host minutes / without forecast', 'contention / no moves',
           'mean imbalance', 'p95 imbalance', 'most moves of a VM', 'VMs with 5 or more',
           'returns in 24 h', 'VM minutes in migration', 'CPU s')
FORECAST, WITHOUT_FORECAST = ', forecast', 'without forecast'
"""The end of the name of a strategy that looks ahead, and the word for the same without."""
LEAST = ('scenario', 'size', 'strategy', 'hot host minutes / no moves', 'GiB', 'GiB at least')
GOAL, GOAL_HOT, GOAL_GIB = 'goal', 0.25, 0.3
"""Goal of large clusters: hot host minutes in ratio to no moves, and GiB in ratio to greedy."""
RATIOS = {'moves / greedy': ('moves', 'greedy'), 'GiB / greedy': ('GiB', 'greedy'),
          'hot host minutes / no moves': ('hot host minutes', 'no moves'),
          'hot host minutes / oracle': ('hot host minutes', 'oracle'),
          'hot host minutes / without forecast': ('hot host minutes', WITHOUT_FORECAST),
          'contention / no moves': ('contention minutes', 'no moves')}
MEANS = ('time above threshold', 'mean imbalance', 'p95 imbalance')
WORST = ('most moves of a VM', 'VMs with 5 or more')
SOFTENED = 1.0
"""Added to both sides of a ratio, either of which may be nothing: a move, a GiB, a minute. Where
both are, there is nothing to compare."""


def rows(columns, found) -> list[tuple]:
    """
    :param found: rows of ``columns``, of which the first three are scenario, size and strategy
    """
    cases = {row[:3]: dict(zip(columns, row, strict=True)) for row in found}
    return [_row(strategy, {case[:2]: values for case, values in cases.items()
                            if case[2] == strategy}, cases)
            for strategy in dict.fromkeys(case[2] for case in cases)]


def least_rows(columns, found, least) -> list[tuple]:
    """Return the rows of the table :data:`LEAST` for one scenario: one for each strategy that moves
    servers, and one for the goal.

    :param found: rows of ``columns``
    :param least: a LeastGib
    """
    cases = [dict(zip(columns, row, strict=True)) for row in found]
    marks = [(case['strategy'], case['hot host minutes'], case['GiB']) for case in cases
             if case['moves']]
    greedy = next((gib * GOAL_GIB for name, _minutes, gib in marks if name == 'greedy'), None)
    marks.append((GOAL, GOAL_HOT * least.minutes, greedy))
    return [(*found[0][:2], strategy, minutes / least.minutes if least.minutes else None, gib,
             least.gib(minutes)) for strategy, minutes, gib in marks]


def _row(strategy, own, cases):
    values = {'strategy': strategy}
    for name, (column, other) in RATIOS.items():
        if other == WITHOUT_FORECAST:
            other = strategy.removesuffix(FORECAST) if strategy.endswith(FORECAST) else ''
        pairs = [(mine[column], cases[*case, other][column]) for case, mine in own.items()
                 if (*case, other) in cases and (mine[column] or cases[*case, other][column])]
        values[name] = _geometric([(a + SOFTENED) / (b + SOFTENED) for a, b in pairs])
    for name in COLUMNS:
        if name not in values:
            cells = [each[name] for each in own.values()]
            values[name] = (sum(cells) / len(cells) if name in MEANS else
                            max(cells) if name in WORST else sum(cells))
    return tuple(values[name] for name in COLUMNS)


def _geometric(ratios):
    """Return the geometric mean of ratios; None where there are none."""
    if not ratios:
        return None
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
