"""The live view: panels where there is a terminal, lines where there is none."""

import threading
import time

from rich import box
from rich import console
from rich import live
from rich import panel
from rich import table
from rich import text

BAR = 24
SILENCE_SECONDS = 10
"""Seconds of silence after which a user wonders whether anything happens."""


class Plain:
    """A line for everything that changed, and one now and then while nothing does."""

    def __init__(self, out):
        self._out = out
        self._begun = self._spoke = time.monotonic()
        self._said, self._step = {}, ''
        self._ended = threading.Event()

    def __enter__(self):
        threading.Thread(target=self._keep_talking, daemon=True).start()
        return self

    def __exit__(self, *_exc):
        self._ended.set()

    def step(self, line):
        self._step = line
        self._print(line)

    def _print(self, line):
        self._spoke = time.monotonic()
        self._out.print(f'{self._spoke - self._begun:6.1f} s  {line}', markup=False,
                        highlight=False, soft_wrap=True)

    def _keep_talking(self):
        while not self._ended.wait(1):
            if time.monotonic() - self._spoke >= SILENCE_SECONDS:
                self._print(f'... still {self._step}')

    def show(self, picture, threshold):
        for rack, policies in picture.imbalance.items():
            figures = ', '.join(f'{name} {_figure(value)}' for name, value in policies.items())
            self._changed(rack, f'{rack}: imbalance now {figures} (threshold {threshold:.2f}); '
                          f'last evaluation: {picture.cycles.get(rack) or "none yet"}',
                          key=(picture.cycles.get(rack), *map(_coarse, policies.values())))
        for move in picture.moves:
            self._changed(move['uuid'], f'server {move["instance_uuid"][:8]} {move["source"]} -> '
                          f'{move["destination"]}: {move["state"]} {move["error"] or ""}',
                          key=move['state'])

    def _changed(self, subject, line, key):
        if self._said.get(subject) != key:
            self._said[subject] = key
            self.step(line.rstrip())


class Panels:
    """Steps, hosts, moves and policies, redrawn in place."""

    def __init__(self, out, names, racks):
        """
        :param names: server uuid -> name, filled while servers are made
        :param racks: aggregate name -> its hosts
        """
        self._names, self._racks = names, racks
        self._begun = time.monotonic()
        self._steps = []
        self._picture = self._threshold = None
        self._live = live.Live(get_renderable=self._render, console=out, refresh_per_second=4)

    def __enter__(self):
        self._live.__enter__()
        return self

    def __exit__(self, *exc):
        self._live.__exit__(*exc)

    def step(self, line):
        self._steps.append((time.monotonic() - self._begun, line))

    def show(self, picture, threshold):
        self._picture, self._threshold = picture, threshold

    def _render(self):
        parts = [self._step_panel()]
        if self._picture:
            parts += [self._hosts(), self._policies(), self._moves()]
        return console.Group(*parts)

    def _step_panel(self):
        lines = text.Text()
        # Once there is more to see, the room is for that: terminals may have 24 lines.
        shown = self._steps[-2 if self._picture else -8:]
        for at, line in shown:
            lines.append(f'{at:6.1f} s  ', style='dim')
            lines.append(f'{line}\n')
        if shown:
            for_so_long = time.monotonic() - self._begun - shown[-1][0]
            lines.append(f'          for {for_so_long:.0f} s', style='dim')
        title = f'Kronos for Nova: demo, {time.monotonic() - self._begun:.0f} s'
        return panel.Panel(lines, title=title, title_align='left', box=box.ROUNDED)

    def _hosts(self):
        shown = table.Table('host', 'servers', box=box.SIMPLE_HEAD, title='Hosts',
                            title_justify='left')
        for policy in self._picture.loads:
            shown.add_column(policy, width=BAR + 6)
        for rack, hosts in self._racks.items():
            for host in hosts:
                bars = [_bar(loads.get(host)) for loads in self._picture.loads.values()]
                shown.add_row(f'{rack}/{host}', str(self._picture.guests.get(host, 0)), *bars)
            shown.add_section()
        return shown

    def _policies(self):
        shown = table.Table('aggregate', 'last evaluation', *self._picture.loads,
                            box=box.SIMPLE_HEAD, title='Imbalance (highest - lowest)',
                            title_justify='left')
        for rack, policies in self._picture.imbalance.items():
            cells = [self._against_threshold(value) for value in policies.values()]
            shown.add_row(rack, self._picture.cycles.get(rack) or '-', *cells)
        return shown

    def _against_threshold(self, value):
        if value is None:
            return text.Text('no data', style='dim')
        over = value > self._threshold
        return text.Text(f'{value:.3f} {">" if over else "<="} {self._threshold:.2f}',
                         style='red' if over else 'green')

    def _moves(self):
        counts = ', '.join(f'{number} {state}' for state, number in
                           self._picture.counts().items()) or 'none planned yet'
        shown = table.Table('server', 'from', 'to', 'state', box=box.SIMPLE_HEAD,
                            title=f'Moves: {counts}', title_justify='left')
        for move in self._picture.under_way():
            shown.add_row(self._names.get(move['instance_uuid'], move['instance_uuid']),
                          move['source'], move['destination'], move['state'])
        return shown


def _bar(load):
    if load is None:
        return text.Text('no data', style='dim')
    filled = round(min(load, 1.0) * BAR)
    style = 'red' if load > 0.8 else 'yellow' if load > 0.5 else 'green'
    bar = text.Text('█' * filled, style=style)
    bar.append('░' * (BAR - filled), style='dim')
    return bar.append(f' {load:4.0%}')


def _figure(value):
    return 'no data' if value is None else f'{value:.2f}'


def _coarse(value):
    """To tenths: the figures always move a little."""
    return value if value is None else round(value, 1)


def for_terminal(out, names, racks):
    """The view that fits where ``out`` goes."""
    return Panels(out, names, racks) if out.is_terminal else Plain(out)
