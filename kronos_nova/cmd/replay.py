"""``kronos-replay``: what Kronos would do, or would have done, with a recorded cloud.

Exit codes: 0 a report was made, whatever it says; 1 the snapshot or the policies are invalid, every
error is on stderr; 2 wrong usage or configuration.
"""

import argparse
import dataclasses
import gc
import sys

from oslo_config import cfg
from rich.console import Console

from kronos_nova import boundary
from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.engine import options as engine_options
from kronos_nova.planners import registry
from kronos_nova.record import html
from kronos_nova.record import render
from kronos_nova.record import replay

INVALID, USAGE = 1, 2


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog='kronos-replay', description=(
        'Plan a recorded cloud offline, with the engine that plans the live one.'))
    result.add_argument('folder', metavar='DIR',
                        help='a snapshot, as kronos-record writes it, or a folder of snapshots')
    result.add_argument('--config-file', metavar='FILE', action='append', default=[],
                        help='options of the [kronos...] groups; may be given several times')
    result.add_argument('--policies', metavar='FILE', help='plan with these policies instead')
    result.add_argument('--spread-planner', metavar='NAME', help='greedy or spread')
    result.add_argument('--pack-planner', metavar='NAME', help='ffd or pack')
    result.add_argument('--budget', metavar='N', type=_count,
                        help='moves at most, instead of max_migrations_per_cycle')
    result.add_argument('-f', dest='format', choices=('table', 'json'), default='table',
                        help='table for people (default), json for programs')
    result.add_argument('--html', metavar='FILE', help='write a page for a browser too')
    return result


def _count(text):
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError('must be 0 or more')
    return number


def main(argv=None) -> int:
    """:returns: the exit code"""
    arguments = parser().parse_args(argv)
    gc.disable()  # large trees of values without cycles
    try:
        options, durations = _configured(arguments)
    except (cfg.Error, ValueError, exception.ConfigurationError) as error:
        return _fail(USAGE, f'configuration: {error}')
    page, day = html.Page(), []
    for folder in replay.folders(arguments.folder):
        try:
            recording, policies = replay.read(folder, arguments.policies)
        except exception.ConfigurationError as error:
            return _fail(INVALID, error)
        try:
            report = replay.replay(recording, policies, options, durations)
        except exception.ConfigurationError as error:
            return _fail(USAGE, error)
        day.append((folder.name, report))
        if arguments.html:
            page.add(folder.name, recording.snapshot, report)
    if arguments.html:
        try:
            with open(arguments.html, 'w', encoding='utf-8') as file:
                page.write(file)
        except OSError as error:
            return _fail(USAGE, f'{arguments.html}: cannot be written: {error.strerror}')
    _print(day, arguments)
    return 0


def _print(day, arguments):
    is_one = len(day) == 1
    if arguments.format == 'json':
        print(render.as_json(day[0][1]) if is_one else render.day_as_json(day))
    elif is_one:
        render.print_tables(day[0][1], Console())
    else:
        render.print_day(day, Console())


def _configured(arguments):
    """The engine's options: the files', then the command line's."""
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    conf([], project='kronos-replay', default_config_files=arguments.config_file,
         default_config_dirs=[])
    options = engine_options.from_conf(conf)
    if not options.aggregates and not options.include_unassigned_hosts:
        options = dataclasses.replace(options, aggregates=None, include_unassigned_hosts=True)
    chosen = {name: value for name in ('spread_planner', 'pack_planner', 'budget')
              if (value := getattr(arguments, name)) is not None}
    options = dataclasses.replace(options, **chosen)
    for planner in (options.spread_planner, options.pack_planner):
        registry.check(planner)
    return options, replay.Durations(
        aggregate=conf.kronos.cooldown, instance=conf.kronos.instance_cooldown,
        quarantine=conf.kronos.instance_quarantine_seconds)


def _fail(code, message):
    for line in str(message).split('\n'):
        print(boundary.shown(line, render.LONGEST), file=sys.stderr)
    return code
