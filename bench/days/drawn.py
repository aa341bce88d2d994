"""Plots of days: the imbalance over time, and what each strategy costs beside what it spares."""

import pathlib

import numpy as np

from bench.plots import SVG


def save(tallies: dict, threshold: float, directory: pathlib.Path) -> None:
    """
    :param tallies: {(scenario, size, strategy): Tally}
    """
    import matplotlib

    matplotlib.use('svg')
    matplotlib.rcParams.update(SVG)
    directory.mkdir(parents=True, exist_ok=True)
    scenario, size, _strategy = next(iter(tallies))
    first = {strategy: tally for (name, of, strategy), tally in tallies.items()
             if (name, of) == (scenario, size)}
    for name, figure in (('bench-days-imbalance', _over_time(first, threshold, scenario)),
                         ('bench-days-cost', _cost(tallies))):
        figure.savefig(directory / f'{name}.svg', metadata={'Date': None}, bbox_inches='tight')


def _over_time(tallies, threshold, title):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(tallies), 1, figsize=(7, 1.2 * len(tallies)), sharex=True,
                                   sharey=True, squeeze=False)
    for axis, (strategy, tally) in zip(axes[:, 0], tallies.items(), strict=True):
        hours = np.cumsum(tally.seconds) / 3600
        axis.plot(hours, tally.imbalance, linewidth=.6)
        axis.axhline(threshold, color='0.5', linewidth=.6)
        axis.set_title(f'{strategy}: {int(tally.moves.sum())} moves', fontsize=8, loc='left')
    axes[0, 0].set_ylim(0, None)
    axes[-1, 0].set_xlabel(f'hours of {title}; imbalance, and the threshold')
    return figure


def _cost(tallies):
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(5, 3.2))
    for strategy in dict.fromkeys(key[2] for key in tallies):
        found = [tally for key, tally in tallies.items() if key[2] == strategy]
        axis.plot([tally.gib for tally in found], [tally.hot / 60 for tally in found], 'o',
                  markersize=3, label=strategy)
    axis.set_xscale('symlog', linthresh=100)
    axis.set_ylim(0, None)
    axis.set_xlabel('GiB copied')
    axis.set_ylabel('hot host minutes')
    axis.legend()
    return figure
