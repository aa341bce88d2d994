"""``kronos-replay``: plan a recorded cloud, without moving anything."""

import argparse
import dataclasses
import gc
import pathlib
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from rich.console import Console

from kronos_client.cli import arguments
from kronos_client.cli import command
from kronos_client.cli import room as change_arguments
from kronos_client.contract import room as contract
from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.cmd import program
from kronos_nova.cycle import options as engine_options
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners import base
from kronos_nova.policies import PolicySet
from kronos_nova.record import history as recorded_history
from kronos_nova.record import html
from kronos_nova.record import options as recorded_options
from kronos_nova.record import render
from kronos_nova.record import replay
from kronos_nova.record.reader import Recording
from kronos_nova.room.whatif import Changes

NAME = 'kronos-replay'

RECORDED, CONFIG_FILE, DEFAULTS = 'recorded', 'config-file', 'defaults'
WORDS = {RECORDED: 'Options as recorded', CONFIG_FILE: 'Options of --config-file',
         DEFAULTS: 'Options by default'}
"""Texts for people about the source of a replay's options: {source: text}."""


class Replay(program.Report):
    """Plan a recorded cloud offline, as Kronos plans the live one. Nothing is moved. Of several
    snapshots, those are planned that are valid, and that have the hosts of changes such as --lose.

    Exit codes: 0 the plan was made, with or without moves; 1 a snapshot or the policies are
    invalid, or a change does not apply to one of several snapshots, and stderr has every error; 2
    the arguments or the configuration are wrong.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('folder', metavar='DIR', help='Folder of a snapshot that kronos-record '
                            'wrote, or a folder with several snapshots.')
        chosen = parser.add_mutually_exclusive_group()
        chosen.add_argument('--config-file', metavar='FILE', action='append', default=[],
                            help='Plan with the options of the [kronos...] groups of this file '
                            'instead of the recorded options; may be repeated.')
        chosen.add_argument('--defaults', action='store_true',
                            help='Plan with the defaults of all options instead of the recorded '
                            'options.')
        parser.add_argument('--policies', metavar='FILE',
                            help='Plan with this policies file instead of the recorded policies.')
        parser.add_argument('--spread-planner', metavar='NAME',
                            help='Use this planner to spread load ("spread", "greedy" or one that '
                            'is installed), instead of [kronos] spread_planner.')
        parser.add_argument('--pack-planner', metavar='NAME',
                            help='Use this planner to free hosts ("pack", "ffd" or one that is '
                            'installed), instead of [kronos] pack_planner.')
        parser.add_argument('--budget', metavar='N', type=arguments.COUNT,
                            help='Maximum number of moves of a plan, instead of the '
                            'max_migrations_per_cycle of the policies.')
        change_arguments.add_change_arguments(parser)
        parser.add_argument('--html', metavar='FILE',
                            help='Write the result also to this file, as a page for a browser.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        gc.disable()  # the values form large trees without cycles
        try:
            configured = _configured(parsed_args)
        except (cfg.Error, ValueError, exception.ConfigurationError) as error:
            raise program.Refused(program.USAGE, f'The configuration is wrong: {error}') from error
        page = html.Page()
        self.day: list[render.Replayed] = []
        wrong: dict[str, None] = {}
        refused: dict[pathlib.Path, str] = {}
        changes = Changes(**change_arguments.changes(parsed_args))
        folders = replay.folders(parsed_args.folder)
        for folder in folders:
            try:
                recording, policies = replay.read(folder, parsed_args.policies)
                chosen = _in_force(configured, parsed_args, recording)
            except exception.SnapshotError as error:
                # Lines about a policies file are the same for every snapshot.
                wrong |= dict.fromkeys(str(error).split('\n'))
                continue
            try:
                replayed, snapshot = _replayed(folder.name, recording, policies, chosen, changes)
            except (exception.ConfigurationError, exception.HostNotFound) as error:
                refused[folder] = str(error)
                continue
            self.day.append(replayed)
            if parsed_args.html:
                page.add(folder.name, snapshot, replayed.report, chosen.note)
        self._tell(wrong, refused)
        if parsed_args.html:
            _write(page, parsed_args.html)
        self.is_one = len(folders) == 1
        return self.dict2columns(render.as_object(self.day[0]) if self.is_one
                                 else render.day_as_object(self.day))

    def _tell(self, wrong: Iterable[str], refused: Mapping[pathlib.Path, str]) -> None:
        """Report the snapshots that were not planned.

        :param wrong: lines about invalid snapshots
        :param refused: {folder of a snapshot: reason why it cannot be planned with the arguments}
        :raises Refused: the arguments are wrong for every valid snapshot
        :raises SnapshotError: no snapshot is valid
        """
        if refused and not self.day:
            raise program.Refused(program.USAGE, '\n'.join(dict.fromkeys(
                [*wrong, *refused.values()])))
        lines = [*wrong, *(f'{folder}: {problem}' for folder, problem in refused.items())]
        if not lines:
            return
        error = exception.SnapshotError('\n'.join(lines))
        if not self.day:
            raise error
        self.code = program.say(error, program.FAILED)

    def print_tables(self, console: Console, data: dict[str, Any]) -> None:
        if self.is_one:
            render.print_tables(self.day[0], console)
        else:
            render.print_day(self.day, console)


def main(argv: list[str] | None = None) -> int:
    """Run kronos-replay.

    :returns: the exit code
    """
    return program.run(Replay, NAME, argv)


def _write(page: html.Page, path: str) -> None:
    try:
        with open(path, 'w', encoding='utf-8') as file:
            page.write(file)
    except OSError as error:
        raise program.Refused(program.USAGE,
                              f'The file {path} cannot be written: {error.strerror}') from error


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChosenOptions:
    """The options of a replay.

    :ivar source: one of RECORDED, CONFIG_FILE, DEFAULTS
    :ivar note: source of the options, as a sentence for people
    """

    options: EngineOptions
    durations: replay.Durations
    source: str
    note: str


def _replayed(name: str, recording: Recording, policies: PolicySet, chosen: ChosenOptions,
              changes: Changes) -> tuple[render.Replayed, Snapshot]:
    """Replay a snapshot with ``changes``.

    :returns: pair (Replayed, Snapshot with the changes, for which the plan was made)
    """
    if changes == Changes(**dict.fromkeys(contract.Changes.__struct_fields__, [])):
        report = replay.replay(recording, policies, chosen.options, chosen.durations)
        return (render.Replayed(name, report, chosen.source, chosen.note), recording.snapshot)
    changed, found = replay.suppose(recording, policies, chosen.options, chosen.durations, changes)
    return (render.Replayed(name, found.report, chosen.source, chosen.note, changed, found.loads),
            changed.snapshot)


def _configured(arguments: argparse.Namespace) -> cfg.ConfigOpts:
    """Return the options in the configuration files that are named on the command line."""
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    kronos_conf.read(conf, [], project='kronos-replay', default_config_dirs=[],
                     default_config_files=arguments.config_file)
    _engine_options(conf, arguments)
    return conf


def _in_force(conf: cfg.ConfigOpts, arguments: argparse.Namespace,
              recording: Recording) -> ChosenOptions:
    """Choose the options of a replay. The first of these that applies is used:

    1. the options in the configuration files that the command line names
    2. the recorded options, if there are any and the command line does not ask for the defaults
    3. the defaults
    """
    source = (CONFIG_FILE if arguments.config_file
              else RECORDED if recording.options is not None and not arguments.defaults
              else DEFAULTS)
    if source == RECORDED and recording.options is not None:
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        kronos_conf.read(conf, [], project='kronos-replay', default_config_dirs=[],
                         default_config_files=[])
        recorded_options.apply(conf, recording.options, recording.folder)
    options = _engine_options(conf, arguments)
    if source == RECORDED and options.aggregates is not None:
        # A live evaluation ignores aggregates that do not exist, too.
        known = {aggregate.name for aggregate in recording.snapshot.aggregates}
        options = dataclasses.replace(options, aggregates=tuple(
            name for name in options.aggregates if name in known))
    if recording.options is None and not _is_set(conf, 'restraint'):
        options = dataclasses.replace(options, restraint=Restraint())
    return ChosenOptions(
        options=options, source=source, note=_note(source, recording, options),
        durations=replay.Durations(
            aggregate=conf.kronos.cooldown, instance=conf.kronos.instance_cooldown,
            quarantine=conf.kronos.instance_quarantine_seconds))


def _note(source: str, recording: Recording, options: EngineOptions) -> str:
    note = WORDS[source]
    if not options.restraint:
        return f'{note}, without restraint' + (
            '' if recording.options is not None
            else f': the snapshot has no {recorded_options.NAME}') + '.'
    return f'{note}, with restraint {options.restraint.amount:g}' + (
        '' if recording.has_history else f'; the snapshot has no {recorded_history.NAME}, so every '
        'load is expected to stay as it is') + '.'


def _engine_options(conf: cfg.ConfigOpts, arguments: argparse.Namespace) -> EngineOptions:
    """Return the options of ``conf`` for the engine. Arguments of the command line replace
    options."""
    options = engine_options.from_conf(conf)
    if not options.aggregates and not options.include_unassigned_hosts:
        options = dataclasses.replace(options, aggregates=None, include_unassigned_hosts=True)
    chosen = {name: value for name in ('spread_planner', 'pack_planner', 'budget')
              if (value := getattr(arguments, name)) is not None}
    options = dataclasses.replace(options, **chosen)
    base.check(options.spread_planner, options.pack_planner)
    return options


def _is_set(conf: cfg.ConfigOpts, option: str) -> bool:
    """Return true if an option of ``[kronos]`` is set, and false if it has its default."""
    found = conf.get_location(option, 'kronos')
    return found is not None and found.location.is_user_controlled
